//! Writing to stdout and stderr. Colours are removed if the stream is not a terminal or `NO_COLOR`
//! is set. Other control characters are always escaped.

use std::fmt::{self, Display};
use std::io::{self, Write};

use serde::Serialize;

use super::cleaning::harmless;

/// An error of writing to standard output.
#[derive(Debug)]
struct OutputError(io::Error);

impl Display for OutputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "standard output cannot be written: {}", self.0)
    }
}

impl std::error::Error for OutputError {}

/// Marks an error as one of writing to standard output.
fn of_output(error: io::Error) -> io::Error {
    io::Error::new(error.kind(), OutputError(error))
}

/// Returns true if the reader of standard output closed it, as `head` does when it has read enough.
pub(crate) fn is_output_closed(error: &anyhow::Error) -> bool {
    let of_output = |error: &&io::Error| error.get_ref().is_some_and(|inner| inner.is::<OutputError>());
    let mut causes = error.chain().filter_map(|cause| cause.downcast_ref::<io::Error>()).filter(of_output);
    causes.any(|cause| cause.kind() == io::ErrorKind::BrokenPipe)
}

/// Writes one line to stdout.
pub(crate) fn print_line(line: impl Display) -> io::Result<()> {
    writeln!(anstream::stdout().lock(), "{}", harmless(&line.to_string())).map_err(of_output)
}

/// Writes one JSON object as one line to stdout.
pub(crate) fn print_json(value: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    print_raw(&line)
}

/// Writes bytes to stdout unchanged.
pub(crate) fn print_raw(bytes: &[u8]) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    // Standard output is buffered by line. Without the flush, a part without a line feed would stay
    // in the buffer until the next one.
    stdout.write_all(bytes).and_then(|()| stdout.flush()).map_err(of_output)
}

/// Writes bytes from a command's stderr to stderr unchanged. Errors are ignored, because work must
/// not stop when stderr is closed.
pub(crate) fn pass_on(bytes: &[u8]) {
    let _ = io::stderr().lock().write_all(bytes);
}

/// Writes a line for people to stderr. Errors are ignored, because work must not stop when stderr
/// is closed.
pub(crate) fn remark(line: impl Display) {
    let _ = writeln!(anstream::stderr().lock(), "{}", harmless(&line.to_string()));
}
