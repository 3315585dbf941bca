//! Runs many sequences.
#![expect(
    clippy::panic,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a test fails by panicking, and a long one says what it did"
)]

use std::cell::Cell;

use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};

use super::check::check_sampled;
use super::steps::Step;
use super::strategies;
use crate::fixture::{Fixture, is_missing};
use crate::soak::{self, Tally};

/// The most steps of one sequence.
#[doc(hidden)]
pub const STEPS: usize = 40;

/// Compares two stores on `sequences` sequences.
///
/// `ONWARD_SEQUENCES` overrides the number of sequences. `ONWARD_SEED` sets the random seed, a
/// whole number; by default each run has another one. A failure names its seed. Prints a line that
/// counts sequences: those generated (`attempted`), those on which the stores agree
/// (`acknowledged`) and disagree (`lost`), and the restarts in them (`recovered`).
///
/// # Panics
/// Panics if the stores differ, with the shortest sequence found that shows it.
pub fn run(one: &dyn Fixture, other: &dyn Fixture, sequences: u64) {
    run_sampled(one, other, sequences, 1);
}

/// Compares two stores as [`run`] does, with fewer reads. After each step it compares one in
/// `one_in` reads, each time others, and at the end of the sequence all of them. Use it for stores
/// on which each read is a network round trip. It finds the same differences, some steps later.
///
/// # Panics
/// Panics as [`run`] does.
pub fn run_sampled(one: &dyn Fixture, other: &dyn Fixture, sequences: u64, one_in: usize) {
    if is_missing(one) || is_missing(other) {
        return;
    }
    let seed = soak::seed();
    let sequences = soak::number("ONWARD_SEQUENCES").unwrap_or(sequences);
    let found = find_difference(one, other, sequences, one_in, seed);
    println!("{}", found.tally);
    if let Some(difference) = found.difference {
        panic!("ONWARD_SEED={seed} ONWARD_SEQUENCES={sequences} shows a mismatch\n{difference}");
    }
}

/// The result of a search.
#[doc(hidden)]
#[derive(Debug)]
pub struct Found {
    /// The numbers of sequences.
    pub tally: Tally,
    /// A sequence on which the stores differ, with the difference.
    pub difference: Option<String>,
}

/// Searches for a sequence on which two stores differ.
#[doc(hidden)]
#[must_use]
pub fn find_difference(one: &dyn Fixture, other: &dyn Fixture, sequences: u64, one_in: usize, seed: u64) -> Found {
    let config = Config {
        cases: u32::try_from(sequences).unwrap_or(u32::MAX),
        failure_persistence: None,
        max_shrink_iters: 4096,
        ..Config::default()
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime can be made");
    let mut runner = TestRunner::new_with_rng(config, generator(seed));
    let tally = Cell::new(Tally { seed, ..Tally::default() });
    let result = runner.run(&strategies::sequences(STEPS), |steps| {
        let equal = runtime.block_on(check_sampled(one, other, &steps, one_in));
        tally.set(count(tally.get(), &steps, equal.is_ok()));
        equal.map(drop).map_err(|mismatch| TestCaseError::fail(mismatch.to_string()))
    });
    let difference = result.err().map(|error| {
        let differs = |steps: &[Step]| runtime.block_on(check_sampled(one, other, steps, one_in)).err();
        match &error {
            TestError::Fail(_, steps) => shortened(steps.clone(), differs),
            TestError::Abort(_) => None,
        }
        .map_or_else(|| error.to_string(), |(steps, mismatch)| format!("{mismatch}\nthe sequence: {steps:#?}"))
    });
    Found { tally: tally.get(), difference }
}

/// Removes single steps, from the last to the first, as long as the stores differ. proptest removes
/// parts of a sequence, and stops after a number of attempts. Returns `None` if the stores agree
/// when the sequence is played again.
fn shortened<T>(mut steps: Vec<Step>, differs: impl Fn(&[Step]) -> Option<T>) -> Option<(Vec<Step>, T)> {
    let mut found = differs(&steps)?;
    for at in (0..steps.len()).rev() {
        let mut fewer = steps.clone();
        fewer.remove(at);
        if let Some(difference) = differs(&fewer) {
            (steps, found) = (fewer, difference);
        }
    }
    Some((steps, found))
}

/// Counts a sequence. Sequences after the first mismatch are shrunk forms of it and do not
/// count.
fn count(mut tally: Tally, steps: &[Step], equal: bool) -> Tally {
    if tally.lost > 0 {
        return tally;
    }
    tally.attempted += 1;
    tally.acknowledged += u64::from(equal);
    tally.lost += u64::from(!equal);
    tally.recovered += steps.iter().filter(|step| matches!(step, Step::Reopen)).count() as u64;
    tally
}

/// Returns a random number generator that depends only on the seed.
#[doc(hidden)]
#[must_use]
pub fn generator(seed: u64) -> TestRng {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    TestRng::from_seed(RngAlgorithm::ChaCha, &bytes)
}
