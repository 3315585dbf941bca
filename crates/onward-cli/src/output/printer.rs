//! Writing to stdout and stderr. Colours are taken out where the stream is not a terminal or `NO_COLOR` is set.

use std::fmt::Display;
use std::io::{self, Write};

use serde::Serialize;

/// Writes one line to stdout.
pub(crate) fn print_line(line: impl Display) -> io::Result<()> {
    writeln!(anstream::stdout().lock(), "{line}")
}

/// Writes one JSON object as one line to stdout.
pub(crate) fn print_json(value: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    print_raw(&line)
}

/// Writes bytes to stdout as they are.
pub(crate) fn print_raw(bytes: &[u8]) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(bytes)?;
    stdout.flush()
}

/// Writes a line for people to stderr. A stderr that is gone is no reason to stop working.
pub(crate) fn remark(line: impl Display) {
    let _ = writeln!(anstream::stderr().lock(), "{line}");
}
