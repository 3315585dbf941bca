//! Output of running tasks.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

/// A stream to which an attempt writes its output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutputStream {
    /// The standard output.
    Stdout,
    /// The standard error.
    Stderr,
}

impl OutputStream {
    /// Both streams.
    pub const ALL: [Self; 2] = [Self::Stdout, Self::Stderr];

    /// Returns the name of the stream: `stdout` or `stderr`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stdout => "stdout",
            Self::Stderr => "stderr",
        }
    }

    /// Returns the number by which stores keep the stream. It is also the position of the stream in
    /// [`ALL`](Self::ALL).
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Stdout => 0,
            Self::Stderr => 1,
        }
    }

    /// Returns the stream with a number.
    #[cfg(all(feature = "postgres", feature = "sqlite"))]
    pub(crate) fn from_code(code: i64) -> Option<Self> {
        Self::ALL.into_iter().find(|stream| i64::from(stream.code()) == code)
    }
}

/// A piece of the output of an attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputPiece {
    /// The stream.
    pub stream: OutputStream,
    /// The offset of the piece: the number of bytes that the attempt wrote to the stream before it.
    pub at: u64,
    /// The number of bytes of output. It differs from the length of `bytes` where a
    /// [codec](crate::PayloadCodec) has encoded them.
    pub length: u32,
    /// The output. Empty for a piece that [stands for the result](Self::of_result) and was not read
    /// from a store.
    pub bytes: Bytes,
}

impl OutputPiece {
    /// Creates a piece whose length is that of `bytes`.
    #[must_use]
    pub fn new(stream: OutputStream, at: u64, bytes: impl Into<Bytes>) -> Self {
        let bytes = bytes.into();
        // A longer piece is rejected for its length.
        let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        Self { stream, at, length, bytes }
    }

    /// Creates a piece that stands for a whole stream of `length` bytes that the attempt also
    /// returns as its result. A store keeps these bytes once, and reads them from the result.
    #[must_use]
    pub fn of_result(stream: OutputStream, length: u32) -> Self {
        Self { stream, at: 0, length, bytes: Bytes::new() }
    }

    /// Returns true if the piece stands for the result.
    #[must_use]
    pub fn is_of_result(&self) -> bool {
        self.length > 0 && self.bytes.is_empty()
    }

    /// Returns the offset after the piece.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.at.saturating_add(self.length.into())
    }
}

/// The output of one stream of the last attempt that wrote any, from an offset on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskOutput {
    /// The number of the claim of that attempt. A reader that sees another number than before
    /// begins again at offset 0.
    pub claim: u32,
    /// The number of that attempt, counted from 1. Attempts that use no attempt share a number.
    pub attempt: u32,
    /// The offset after the last byte that was written to the stream.
    pub end: u64,
    /// The number of bytes before `end` that are not kept.
    pub cut: u64,
    /// The pieces that end after the offset, in order. Bytes between two pieces are not kept.
    pub pieces: Vec<OutputPiece>,
}
