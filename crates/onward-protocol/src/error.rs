//! Errors of the protocol.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The result of reading a message.
pub type Result<T> = std::result::Result<T, Error>;

/// The code of an error. Programs act on it; people read the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Code {
    /// The bytes are no frames.
    BadFrame,
    /// A header above its bound.
    HeaderTooLarge,
    /// The header is not a JSON object in UTF-8 with a type, or is too deep.
    BadHeader,
    /// The header announces another number of payloads than came.
    PayloadCount,
    /// A payload, or all of a message together, above the bound.
    PayloadTooLarge,
    /// A list or a message with more entries than its bound.
    TooMany,
    /// A field that is missing, of the wrong type, or out of its range.
    BadField,
    /// A message out of order.
    Unexpected,
    /// No common version.
    Protocol,
    /// A wrong or missing key.
    Unauthorised,
    /// The peer was silent for too long.
    Timeout,
    /// The gateway has as many sessions as it takes.
    Busy,
    /// The gateway stops.
    ShuttingDown,
    /// An unknown type, or one whose feature was not agreed.
    Unsupported,
    /// In a `reply`: the store rejects a value.
    Invalid,
    /// In a `reply`: the fence is not current.
    Stale,
    /// In a `reply`: the store does not have the task.
    NotFound,
    /// In a `reply`: the store is not available.
    Store,
    /// A code that this version does not know.
    #[serde(other)]
    Unknown,
}

impl Code {
    /// Returns true if the connection closes after this error.
    #[must_use]
    pub fn is_fatal(self) -> bool {
        !matches!(self, Self::Unsupported | Self::Invalid | Self::Stale | Self::NotFound | Self::Store | Self::Unknown)
    }

    /// Returns the remedy that the documentation gives for this error.
    #[must_use]
    pub fn remedy(self) -> &'static str {
        match self {
            Self::BadFrame => "write each frame as flags, length and body",
            Self::HeaderTooLarge => "send fewer entries in a message; put data into payloads",
            Self::BadHeader => "begin each message with a JSON object that has the type in `t`",
            Self::PayloadCount => "set `payloads` to the number of frames after the header",
            Self::PayloadTooLarge => "refuse it before sending; store the data elsewhere and send a reference",
            Self::TooMany => "split the message",
            Self::BadField => "send the field as the documentation of the protocol defines it",
            Self::Unexpected => "send `hello` first and once, and never lower `credit`",
            Self::Protocol => "upgrade the older side",
            Self::Unauthorised => "set ONWARD_KEY",
            Self::Timeout => "send `hello` within 10 s, and a `beat` at least every `heartbeat_ms`",
            Self::Busy => "connect again later",
            Self::ShuttingDown => "connect again",
            Self::Unsupported => "use what `welcome` lists",
            Self::Invalid => "send a value that the store accepts",
            Self::Stale => "drop it: another attempt may run",
            Self::NotFound => "check the id",
            Self::Store => "try again",
            Self::Unknown => "upgrade this side",
        }
    }
}

/// A violation of the protocol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    /// The code.
    pub code: Code,
    /// The text, which names the thing, the value and the bound.
    pub text: String,
}

impl Error {
    /// Creates an error.
    pub fn new(code: Code, text: impl Into<String>) -> Self {
        Self { code, text: text.into() }
    }

    pub(crate) fn field(text: impl Into<String>) -> Self {
        Self::new(Code::BadField, text)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.text, self.code.remedy())
    }
}

impl std::error::Error for Error {}
