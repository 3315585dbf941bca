//! What tests with a long form share: how long and with which chances they run, and the line in
//! which they say what they did.
#![expect(clippy::panic, reason = "a test fails by panicking")]

use std::env;
use std::fmt;
use std::hash::{BuildHasher, RandomState};

/// What a run did; `cargo xtask soak` adds up the lines that this prints as.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Tally {
    /// What was asked for.
    pub attempted: u64,
    /// What was answered.
    pub acknowledged: u64,
    /// What was answered and is not there. More than 0 is a failure.
    pub lost: u64,
    /// What happened twice. More than 0 is a failure.
    pub duplicated: u64,
    /// What went on after something had gone wrong.
    pub recovered: u64,
    /// Which chances fell.
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

/// The seed in `ONWARD_SEED`; another one each time if there is none.
///
/// # Panics
/// If it is not a whole number.
#[must_use]
pub fn seed() -> u64 {
    number("ONWARD_SEED").unwrap_or_else(|| RandomState::new().hash_one(()))
}

/// The whole number in a variable, if it is set.
///
/// # Panics
/// If it is not a whole number.
#[must_use]
pub fn number(variable: &str) -> Option<u64> {
    let text = env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable} is `{text}`; it must be a whole number")))
}
