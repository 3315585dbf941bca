//! Messages between a worker and its supervisor.
//!
//! A request contains its length (four octets), its kind and the job number. A start also contains
//! the program with its arguments and additions to the environment. The descriptors of the three
//! streams accompany its first octet. A reply has a fixed length.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};

use crate::process::Invocation;

/// The number of a command among all that a supervisor has started.
pub(super) type JobId = u64;

/// Octets before the text of a request: its length, its kind and the job.
const HEAD: usize = 4 + 1 + 8;

/// Octets of a reply.
pub(super) const REPLY: usize = 1 + 8 + 4;

/// A request from a worker.
#[derive(Debug)]
pub(super) enum Request {
    Start(JobId, Start),
    /// Sends SIGTERM to a command and all its descendants. When the command has ended, sends
    /// SIGKILL to what is left of them.
    Terminate(JobId),
    /// Sends SIGKILL to a command and all its descendants.
    Kill(JobId),
}

/// A command to be started.
#[derive(Debug)]
pub(super) struct Start {
    /// The program and its arguments.
    pub(super) words: Vec<OsString>,
    /// Additions to the environment.
    pub(super) environment: Vec<(OsString, OsString)>,
    /// The streams: stdin if there is one, stdout, stderr.
    pub(super) streams: Vec<OwnedFd>,
}

/// A reply from a supervisor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reply {
    Started(JobId),
    /// The system did not start it, with this error number.
    NotStarted(JobId, i32),
    /// It ended by itself, with this status.
    Exited(JobId, i32),
    /// It was ended by this signal.
    Killed(JobId, i32),
}

/// Writes the request for a start, with `streams` accompanying descriptors.
///
/// # Errors
/// Returns an error if a word contains a NUL, which no program can receive.
pub(super) fn start(job: JobId, invocation: &Invocation, streams: u8) -> io::Result<Vec<u8>> {
    let mut text = vec![streams];
    let count =
        u32::try_from(1 + invocation.arguments.len()).map_err(|_| io::Error::from(ErrorKind::ArgumentListTooLong))?;
    text.extend_from_slice(&count.to_le_bytes());
    for word in std::iter::once(&invocation.program).chain(&invocation.arguments) {
        push(&mut text, word)?;
    }
    for (name, value) in &invocation.environment {
        push(&mut text, OsStr::new(&**name))?;
        push(&mut text, value)?;
    }
    framed(0, job, &text)
}

/// Writes a request without text.
pub(super) fn end(job: JobId, kill: bool) -> io::Result<Vec<u8>> {
    framed(if kill { 2 } else { 1 }, job, &[])
}

fn framed(kind: u8, job: JobId, text: &[u8]) -> io::Result<Vec<u8>> {
    let length = u32::try_from(text.len()).map_err(|_| io::Error::from(ErrorKind::ArgumentListTooLong))?;
    let mut frame = Vec::with_capacity(HEAD + text.len());
    frame.extend_from_slice(&length.to_le_bytes());
    frame.push(kind);
    frame.extend_from_slice(&job.to_le_bytes());
    frame.extend_from_slice(text);
    Ok(frame)
}

fn push(text: &mut Vec<u8>, word: &OsStr) -> io::Result<()> {
    if word.as_bytes().contains(&0) {
        return Err(io::Error::new(ErrorKind::InvalidInput, "an argument contains a NUL byte"));
    }
    text.extend_from_slice(word.as_bytes());
    text.push(0);
    Ok(())
}

/// Requests that have arrived, possibly in pieces.
#[derive(Debug, Default)]
pub(super) struct RequestBuffer {
    pub(super) bytes: VecDeque<u8>,
    /// Descriptors that arrived with the bytes, in order. A request is complete only after its
    /// descriptors.
    pub(super) descriptors: VecDeque<OwnedFd>,
}

impl RequestBuffer {
    /// Removes and returns the next complete request.
    pub(super) fn next(&mut self) -> Option<Request> {
        let bytes = self.bytes.make_contiguous();
        let (head, rest) = bytes.split_first_chunk::<HEAD>()?;
        let [l0, l1, l2, l3, kind, job @ ..] = *head;
        let (length, job) = (u32::from_le_bytes([l0, l1, l2, l3]) as usize, JobId::from_le_bytes(job));
        let text = rest.get(..length)?.to_vec();
        self.bytes.drain(..HEAD + length);
        Some(match kind {
            0 => Request::Start(job, self.start(&text)),
            1 => Request::Terminate(job),
            _ => Request::Kill(job),
        })
    }

    fn start(&mut self, text: &[u8]) -> Start {
        let ([streams, count @ ..], text) = text.split_first_chunk::<5>().unwrap_or((&[0; 5], &[]));
        let (streams, count) = (usize::from(*streams).min(self.descriptors.len()), u32::from_le_bytes(*count) as usize);
        let mut parts = text.split(|byte| *byte == 0).map(|part| OsString::from_vec(part.to_vec()));
        let words = parts.by_ref().take(count).collect();
        let mut environment = Vec::new();
        while let (Some(name), Some(value)) = (parts.next(), parts.next()) {
            environment.push((name, value));
        }
        Start { words, environment, streams: self.descriptors.drain(..streams).collect() }
    }
}

impl Reply {
    pub(super) fn to_bytes(self) -> [u8; REPLY] {
        let (kind, job, value) = match self {
            Self::Started(job) => (0, job, 0),
            Self::NotStarted(job, error) => (1, job, error),
            Self::Exited(job, status) => (2, job, status),
            Self::Killed(job, signal) => (3, job, signal),
        };
        let mut bytes = [kind; REPLY];
        bytes[1..9].copy_from_slice(&job.to_le_bytes());
        bytes[9..].copy_from_slice(&value.to_le_bytes());
        bytes
    }

    pub(super) fn of_bytes([kind, a, b, c, d, e, f, g, h, value @ ..]: [u8; REPLY]) -> Self {
        let (job, value) = (JobId::from_le_bytes([a, b, c, d, e, f, g, h]), i32::from_le_bytes(value));
        match kind {
            0 => Self::Started(job),
            1 => Self::NotStarted(job, value),
            2 => Self::Exited(job, value),
            _ => Self::Killed(job, value),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn invocation(argument: &str) -> Invocation {
        Invocation {
            program: "sh".into(),
            arguments: vec![argument.into(), OsString::new()],
            environment: vec![("ONWARD_ATTEMPT".into(), "1".into())],
            stdin: None,
        }
    }

    #[test]
    fn requests_that_arrive_octet_by_octet_are_read_whole() {
        let sent = [start(7, &invocation("a b"), 0).unwrap(), end(7, false).unwrap(), end(8, true).unwrap()].concat();
        let (mut buffer, mut requests) = (RequestBuffer::default(), Vec::new());
        for byte in sent {
            buffer.bytes.push_back(byte);
            requests.extend(buffer.next());
        }
        let [Request::Start(7, start), Request::Terminate(7), Request::Kill(8)] = &requests[..] else {
            panic!("{requests:?}")
        };
        assert_eq!(start.words, ["sh", "a b", ""]);
        assert_eq!(start.environment, [("ONWARD_ATTEMPT".into(), "1".into())]);
    }

    #[test]
    fn a_word_with_a_nul_is_refused() {
        assert_eq!(start(1, &invocation("a\0b"), 0).unwrap_err().kind(), ErrorKind::InvalidInput);
    }

    #[test]
    fn a_reply_is_read_back_as_it_was() {
        for reply in [Reply::Started(1), Reply::NotStarted(2, 24), Reply::Exited(u64::MAX, -1), Reply::Killed(3, 9)] {
            assert_eq!(Reply::of_bytes(reply.to_bytes()), reply);
        }
    }
}
