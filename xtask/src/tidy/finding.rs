//! What a check has to say.

use std::fmt;

/// Something that is not as it should be: where, what, and what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Finding {
    path: String,
    line: Option<usize>,
    message: String,
}

impl Finding {
    /// About a whole file.
    pub(crate) fn file(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self { path: path.into(), line: None, message: message.into() }
    }

    /// About a line, counted from 0.
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
