//! Many sequences.
#![expect(clippy::panic, clippy::expect_used, reason = "a test fails by panicking")]

use std::env;
use std::hash::{BuildHasher, RandomState};

use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner};

use super::check::check;
use super::strategy::sequences;
use crate::fixture::Fixture;

/// The most steps of one sequence.
pub(super) const STEPS: usize = 40;

/// Holds two stores against one another.
///
/// `ONWARD_SEQUENCES` says how many sequences are made up (default: 256), and `ONWARD_SEED` which (a whole number; by default
/// others each time). A failure names its seed.
///
/// # Panics
/// If the stores differ, with the shortest sequence found that shows it.
pub fn run(one: &impl Fixture, other: &impl Fixture) {
    let seed = number("ONWARD_SEED").unwrap_or_else(|| RandomState::new().hash_one(()));
    let sequences = number("ONWARD_SEQUENCES").unwrap_or(256);
    if let Err(difference) = find_difference(one, other, sequences, seed) {
        panic!("ONWARD_SEED={seed} ONWARD_SEQUENCES={sequences} shows a disagreement\n{difference}");
    }
}

/// Searches for a sequence on which two stores differ; answers it with what differs.
pub(super) fn find_difference(one: &impl Fixture, other: &impl Fixture, cases: u64, seed: u64) -> Result<(), String> {
    let config = Config {
        cases: u32::try_from(cases).unwrap_or(u32::MAX),
        failure_persistence: None,
        max_shrink_iters: 4096,
        ..Config::default()
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime can be made");
    let mut runner = TestRunner::new_with_rng(config, generator(seed));
    let result = runner.run(&sequences(STEPS), |steps| match runtime.block_on(check(one, other, &steps)) {
        Ok(_) => Ok(()),
        Err(disagreement) => Err(TestCaseError::fail(disagreement.to_string())),
    });
    result.map_err(|error| error.to_string())
}

/// Random numbers that follow from a seed alone.
pub(super) fn generator(seed: u64) -> TestRng {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    TestRng::from_seed(RngAlgorithm::ChaCha, &bytes)
}

fn number(variable: &str) -> Option<u64> {
    let text = env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable} is `{text}`; it must be a whole number")))
}
