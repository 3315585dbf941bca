//! `xtask/tidy.toml`: the places that may break a rule for now, by how much, and why.

use anyhow::{Context as _, Result};
use serde::Deserialize;

use super::language::prose::Folder;
use super::language::retired_words::RetiredWord;

/// The exceptions. Each is a ratchet: it fails when it is exceeded, and also when it is larger than
/// needed.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Exceptions {
    pub(crate) long_function: Vec<Exception>,
    pub(crate) long_file: Vec<Exception>,
    pub(crate) sleep: Vec<Exception>,
    pub(crate) prose: Vec<Folder>,
    pub(crate) retired_word: Vec<RetiredWord>,
}

/// A place that may go up to `limit`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Exception {
    pub(crate) file: String,
    /// The function, if the rule is about functions.
    #[serde(default)]
    pub(crate) function: String,
    /// The number of lines or of sleeps.
    pub(crate) limit: usize,
    /// The reason, for people. It is required so that there is one.
    #[serde(rename = "reason")]
    pub(crate) _reason: String,
}

impl Exceptions {
    pub(crate) fn parse(text: &str) -> Result<Self> {
        toml::from_str(text).context("xtask/tidy.toml is not as it should be")
    }
}

/// The measured amount of a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Measured<'a> {
    pub(crate) file: &'a str,
    pub(crate) function: &'a str,
    pub(crate) amount: usize,
}

/// The result of comparing a measurement with its exception.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// No exception names the place.
    NotExcepted,
    /// The amount equals the limit of its exception.
    Agreed,
    /// The amount exceeds its exception.
    Exceeded,
    /// The amount is below its exception, which must be lowered.
    Shrunk,
}

/// Compares a measurement with the exceptions for its rule.
pub(crate) fn verdict_of(measured: &Measured<'_>, exceptions: &[Exception]) -> Verdict {
    let named = exceptions.iter().find(|it| it.file == measured.file && it.function == measured.function);
    match named.map(|exception| measured.amount.cmp(&exception.limit)) {
        None => Verdict::NotExcepted,
        Some(std::cmp::Ordering::Equal) => Verdict::Agreed,
        Some(std::cmp::Ordering::Greater) => Verdict::Exceeded,
        Some(std::cmp::Ordering::Less) => Verdict::Shrunk,
    }
}

/// Returns the exceptions whose place no longer needs one.
pub(crate) fn stale<'a>(exceptions: &'a [Exception], needed: &[Measured<'_>]) -> Vec<&'a Exception> {
    let is_needed = |it: &&Exception| needed.iter().any(|one| one.file == it.file && one.function == it.function);
    exceptions.iter().filter(|exception| !is_needed(exception)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "[[long_file]]\nfile = \"a.rs\"\nlimit = 1200\nreason = \"a uniform list\"\n";

    fn verdict(amount: usize) -> Verdict {
        let exceptions = Exceptions::parse(TEXT).unwrap();
        verdict_of(&Measured { file: "a.rs", function: "", amount }, &exceptions.long_file)
    }

    #[test]
    fn an_exception_needs_a_reason() {
        assert!(Exceptions::parse("[[sleep]]\nfile = \"a.rs\"\nlimit = 1\n").is_err());
    }

    #[test]
    fn an_exception_may_neither_be_exceeded_nor_larger_than_needed() {
        assert_eq!(
            (verdict(1199), verdict(1200), verdict(1201)),
            (Verdict::Shrunk, Verdict::Agreed, Verdict::Exceeded)
        );
    }

    #[test]
    fn an_exception_that_nothing_needs_is_stale() {
        assert_eq!(stale(&Exceptions::parse(TEXT).unwrap().long_file, &[]).len(), 1);
    }
}
