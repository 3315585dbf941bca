//! The record of a run: each event, and each call of the store with its reply.

use std::fmt::Write as _;
use std::sync::{Mutex, PoisonError};

/// The lines of a run.
#[derive(Debug, Default)]
pub(super) enum Trace {
    #[default]
    Off,
    Printed,
    Kept(Mutex<String>),
}

impl Trace {
    /// Returns a trace that is printed if `ONWARD_TRACE` is set.
    pub(super) fn from_environment() -> Self {
        if std::env::var_os("ONWARD_TRACE").is_some() { Self::Printed } else { Self::Off }
    }

    pub(super) fn kept() -> Self {
        Self::Kept(Mutex::default())
    }

    /// Adds a line. The line is not made if the trace is off.
    pub(super) fn add(&self, line: impl FnOnce() -> String) {
        match self {
            Self::Off => {}
            Self::Printed => println!("{}", line()),
            Self::Kept(lines) => {
                let line = line();
                writeln!(lines.lock().unwrap_or_else(PoisonError::into_inner), "{line}").unwrap();
            }
        }
    }

    /// Returns the lines so far.
    pub(super) fn lines(&self) -> String {
        let Self::Kept(lines) = self else { return String::new() };
        lines.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Returns the first line in which two traces differ, with its number and the line before it.
pub(super) fn first_difference(one: &str, other: &str) -> Option<String> {
    let mut lines = one.lines().zip(other.lines());
    let number = match lines.position(|(one, other)| one != other) {
        Some(number) => number,
        None if one.len() == other.len() => return None,
        None => one.lines().count().min(other.lines().count()),
    };
    let line = |trace: &str, number: usize| trace.lines().nth(number).unwrap_or("(the end)").to_owned();
    let before = line(one, number.saturating_sub(1));
    Some(format!("line {number}, after {before}\n one:   {}\n other: {}", line(one, number), line(other, number)))
}
