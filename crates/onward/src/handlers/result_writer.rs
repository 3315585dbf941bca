//! A result that is written in pieces.

use std::io;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use bytes::Bytes;

use super::attempt::Attempt;
use super::context::Context;

/// The written part of a result. The buffer is allocated only when a handler writes.
#[derive(Debug, Default)]
pub(crate) struct WrittenResult(OnceLock<Mutex<Vec<u8>>>);

impl WrittenResult {
    fn append(&self, bytes: &[u8], limit: usize) -> io::Result<()> {
        let mut written = self.0.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner);
        if written.len().saturating_add(bytes.len()) > limit {
            return Err(io::Error::new(
                io::ErrorKind::FileTooLarge,
                format!(
                    "the result would be larger than {limit} bytes, the limit of this store; store it elsewhere and return its location"
                ),
            ));
        }
        written.extend_from_slice(bytes);
        Ok(())
    }

    /// Returns the appended bytes, or `None` if nothing was ever appended.
    pub(crate) fn bytes(&self) -> Option<Bytes> {
        let written = self.0.get()?.lock().unwrap_or_else(PoisonError::into_inner);
        Some(Bytes::copy_from_slice(&written))
    }
}

/// A writer that appends to the result of an attempt, by [`std::io::Write`] or in whole pieces by
/// [`append`](Self::append).
#[derive(Debug, Clone)]
pub struct ResultWriter {
    attempt: Arc<Attempt>,
    limit: usize,
}

impl ResultWriter {
    /// Appends bytes without waiting.
    ///
    /// # Errors
    /// An error of the kind [`FileTooLarge`](io::ErrorKind::FileTooLarge) if the result would
    /// exceed the payload limit. Then nothing of `bytes` was appended.
    pub fn append(&self, bytes: impl AsRef<[u8]>) -> io::Result<()> {
        self.attempt.result.append(bytes.as_ref(), self.limit)
    }
}

impl io::Write for ResultWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.append(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Context {
    /// Returns a writer for the result. The written bytes are the result if the handler returns
    /// `Ok` without one; a returned result takes precedence. All writers of an attempt write to one
    /// result, and a further attempt begins with an empty one.
    ///
    /// ```
    /// use std::io::Write as _;
    /// use onward::{Context, Failure};
    ///
    /// async fn count(context: Context) -> Result<(), Failure> {
    ///     let mut result = context.result_writer();
    ///     for line in context.payload().split(|byte| *byte == b'\n') {
    ///         writeln!(result, "{}", line.len())?;
    ///     }
    ///     Ok(())
    /// }
    /// ```
    #[must_use]
    pub fn result_writer(&self) -> ResultWriter {
        ResultWriter { attempt: Arc::clone(&self.attempt), limit: self.run.inner.store.info().payload_limit }
    }
}
