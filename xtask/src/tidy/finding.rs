//! The result of a check.

use std::fmt;

/// A violation of a rule: the place, the fault, and the remedy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Finding {
    path: String,
    line: Option<usize>,
    message: String,
}

impl Finding {
    /// Returns a finding about a whole file.
    pub(crate) fn file(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self { path: path.into(), line: None, message: message.into() }
    }

    /// Returns a finding about a line, counted from 0.
    pub(crate) fn line(path: impl Into<String>, line: usize, message: impl Into<String>) -> Self {
        Self { path: path.into(), line: Some(line + 1), message: message.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.path, self.message),
            None => write!(f, "{}: {}", self.path, self.message),
        }
    }
}
