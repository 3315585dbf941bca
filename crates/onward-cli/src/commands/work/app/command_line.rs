//! The words of a worker program.

use std::ffi::OsStr;

use crate::exit_code::wrong_usage;
use crate::process::find_program;

/// A worker program: its line as the user typed it, and its words.
#[derive(Debug, Clone)]
pub(super) struct CommandLine {
    /// The line.
    pub(super) text: String,
    /// The program and its arguments.
    pub(super) words: Vec<String>,
}

impl CommandLine {
    /// Reads a line, and finds its program.
    ///
    /// # Errors
    /// Returns a usage error if the line has no words or an open quote, or if the program is not
    /// there.
    pub(super) fn parse(text: &str) -> anyhow::Result<Self> {
        let words = shlex::split(text).filter(|words| !words.is_empty()).ok_or_else(|| {
            wrong_usage(format!(
                "--app `{text}` is not a command; write its words, each quote closed: --app \"python app.py\""
            ))
        })?;
        if let Some(program) = words.first() {
            find_program(OsStr::new(program)).map_err(|error| wrong_usage(format!("--app: {error}")))?;
        }
        Ok(Self { text: text.to_owned(), words })
    }
}
