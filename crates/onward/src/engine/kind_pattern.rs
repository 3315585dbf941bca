//! Patterns of kinds, for handlers and their options.

use std::fmt;

use onward_store::Name;
use onward_store::text::Shown;

use crate::error::{Error, Result};

/// A kind, or all kinds with a prefix. A prefix is written with a `*` at its end.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum KindPattern {
    Prefix(String),
    Kind(Name),
}

impl KindPattern {
    /// Reads a pattern. A `*` may only be its last character.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let Some((prefix, rest)) = text.split_once('*') else { return Self::kind(text) };
        if !rest.is_empty() {
            return Err(Error::invalid(format!(
                "the pattern `{}` has something behind its `*`; a pattern is a kind, or the beginning of kinds and one `*`",
                Shown(text)
            )));
        }
        if !prefix.is_empty() {
            Name::new(prefix)?.check_own("pattern")?;
        }
        Ok(Self::Prefix(prefix.to_owned()))
    }

    /// Returns the pattern of one kind, whatever characters its name has.
    pub(crate) fn kind(text: &str) -> Result<Self> {
        Ok(Self::Kind(Name::new(text)?))
    }

    pub(crate) fn matches(&self, kind: &Name) -> bool {
        match self {
            Self::Prefix(prefix) => kind.starts_with(prefix.as_str()),
            Self::Kind(own) => own == kind,
        }
    }

    /// Returns true if this pattern matches every kind that `other` matches.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        match (self, other) {
            (_, Self::Kind(kind)) => self.matches(kind),
            (Self::Prefix(prefix), Self::Prefix(other)) => other.starts_with(prefix.as_str()),
            (Self::Kind(_), Self::Prefix(_)) => false,
        }
    }

    /// Returns a sort key that orders patterns from wide to narrow: shorter prefixes first, whole
    /// kinds last.
    pub(crate) fn precision(&self) -> (bool, usize) {
        match self {
            Self::Prefix(prefix) => (false, prefix.len()),
            Self::Kind(_) => (true, 0),
        }
    }
}

impl fmt::Display for KindPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Prefix(prefix) => write!(f, "{prefix}*"),
            Self::Kind(kind) => kind.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(text: &str) -> KindPattern {
        KindPattern::parse(text).unwrap()
    }

    fn matches(text: &str, kind: &str) -> bool {
        pattern(text).matches(&Name::new(kind).unwrap())
    }

    #[test]
    fn a_star_stands_for_any_ending_the_empty_one_too() {
        assert!(matches("image:*", "image:resize"));
        assert!(matches("image:*", "image:"));
        assert!(matches("*", "anything"));
        assert!(!matches("image:*", "images"));
    }

    #[test]
    fn a_pattern_without_a_star_is_one_kind() {
        assert!(matches("image", "image"));
        assert!(!matches("image", "image:resize"));
    }

    #[test]
    fn a_star_stands_at_the_end_alone() {
        for wrong in ["a*b", "*a", "a**", ""] {
            assert!(KindPattern::parse(wrong).unwrap_err().is_invalid(), "{wrong}");
        }
    }

    #[test]
    fn a_pattern_covers_what_is_narrower_and_itself() {
        assert!(pattern("image:*").covers(&pattern("image:raw:*")));
        assert!(pattern("image:*").covers(&pattern("image:*")));
        assert!(pattern("image:*").covers(&pattern("image:resize")));
        assert!(!pattern("image:raw:*").covers(&pattern("image:*")));
        assert!(!pattern("image:resize").covers(&pattern("image:resize*")));
    }
}
