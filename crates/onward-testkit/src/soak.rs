//! The settings and the summary line that tests with a long form share.
#![expect(clippy::panic, reason = "a test fails by panicking")]

use std::env;
use std::fmt;
use std::hash::{BuildHasher, RandomState};

/// The counts of a run. `cargo xtask soak` adds up the lines that it prints as.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Tally {
    /// The number of operations attempted.
    pub attempted: u64,
    /// The number of operations acknowledged.
    pub acknowledged: u64,
    /// The number of operations that were acknowledged and are missing. More than 0 is a failure.
    pub lost: u64,
    /// The number of operations that happened twice. More than 0 is a failure.
    pub duplicated: u64,
    /// The number of recoveries after a fault.
    pub recovered: u64,
    /// The random seed.
    pub seed: u64,
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { attempted, acknowledged, lost, duplicated, recovered, seed } = self;
        write!(
            f,
            "attempted={attempted} acknowledged={acknowledged} lost={lost} duplicated={duplicated} recovered={recovered} seed={seed}"
        )
    }
}

/// Returns the seed in `ONWARD_SEED`, or a random one if the variable is not set.
///
/// # Panics
/// Panics if the value is not a whole number.
#[must_use]
pub fn seed() -> u64 {
    number("ONWARD_SEED").unwrap_or_else(|| RandomState::new().hash_one(()))
}

/// Returns the whole number in a variable if it is set.
///
/// # Panics
/// Panics if the value is not a whole number.
#[must_use]
pub fn number(variable: &str) -> Option<u64> {
    let text = env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable} is `{text}`; it must be a whole number")))
}
