//! The one error type of the protocol.

use std::borrow::Cow;
use std::fmt;

/// The result of what a connection does.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a connection ended, or why a call was refused.
///
/// The predicates tell the cases apart on which a program acts; the text is for people, names the
/// thing and the remedy where there is one, never holds a secret, and must not be depended on.
#[derive(Clone, PartialEq, Eq)]
pub struct Error {
    kind: Kind,
    message: Cow<'static, str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Malformed,
    Limit,
    Timeout,
    Version,
    Mechanism,
    Incompatible,
    Cryptographic,
    Refused,
    PeerError,
    Disconnected,
    Unanswered,
    Misuse,
    Entropy,
}

/// The start of the text of every error about a limit. The peer does not get it.
const LIMIT_PREFIX: &str = "the peer sent ";

impl Error {
    #[cold]
    fn new(kind: Kind, message: impl Into<Cow<'static, str>>) -> Self {
        Self { kind, message: message.into() }
    }

    #[cold]
    pub(crate) fn malformed(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Kind::Malformed, message)
    }

    #[cold]
    pub(crate) fn limit(what: &str, found: u64, unit: &str, limit: u64) -> Self {
        Self::new(
            Kind::Limit,
            format!(
                "{LIMIT_PREFIX}{what} of {found} {unit}; the limit is {limit}: raise it in `Limits` if the peer may"
            ),
        )
    }

    /// The text that the peer gets, if it is to learn why the connection ends: what it sent does
    /// not fit our limits.
    pub(crate) fn for_peer(&self) -> Option<&str> {
        match self.kind {
            Kind::Limit => {
                let text = self.message.strip_prefix(LIMIT_PREFIX).unwrap_or(&self.message);
                Some(text.split_once(':').map_or(text, |(text, _)| text))
            }
            _ => None,
        }
    }

    #[cold]
    pub(crate) fn timeout(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Kind::Timeout, message)
    }

    #[cold]
    pub(crate) fn version(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Kind::Version, message)
    }

    #[cold]
    pub(crate) fn mechanism(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Kind::Mechanism, message)
    }

    #[cold]
    pub(crate) fn incompatible(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Kind::Incompatible, message)
    }

    #[cold]
    pub(crate) fn cryptographic(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Kind::Cryptographic, message)
    }

    #[cold]
    pub(crate) fn refused(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Kind::Refused, message)
    }

    #[cold]
    pub(crate) fn peer_error(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Kind::PeerError, message)
    }

    #[cold]
    pub(crate) fn disconnected(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Kind::Disconnected, message)
    }

    #[cold]
    pub(crate) fn unanswered() -> Self {
        Self::new(
            Kind::Unanswered,
            "the server closed the connection when it had our HELLO of CURVE: it has another key than the one that was given for it, or it has just ended",
        )
    }

    #[cold]
    pub(crate) fn misuse(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Kind::Misuse, message)
    }

    #[cold]
    pub(crate) fn entropy(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Kind::Entropy, message)
    }

    /// The peer sent bytes that the protocol does not allow.
    #[must_use]
    pub fn is_malformed(&self) -> bool {
        self.kind == Kind::Malformed
    }

    /// The peer went beyond one of the [`Limits`](super::Limits).
    #[must_use]
    pub fn is_limit(&self) -> bool {
        self.kind == Kind::Limit
    }

    /// The handshake took too long, or the peer has been silent for too long.
    #[must_use]
    pub fn is_timeout(&self) -> bool {
        self.kind == Kind::Timeout
    }

    /// The peer does not speak ZMTP 3, or nothing of the kind.
    #[must_use]
    pub fn is_version(&self) -> bool {
        self.kind == Kind::Version
    }

    /// The two sides are not configured for the same mechanism, or both for the same side of it.
    #[must_use]
    pub fn is_mechanism(&self) -> bool {
        self.kind == Kind::Mechanism
    }

    /// The two socket types do not go together.
    #[must_use]
    pub fn is_incompatible(&self) -> bool {
        self.kind == Kind::Incompatible
    }

    /// Something could not be decrypted, or was sent a second time.
    #[must_use]
    pub fn is_cryptographic(&self) -> bool {
        self.kind == Kind::Cryptographic
    }

    /// We refused the peer: [`Connection::refuse`](super::Connection::refuse).
    #[must_use]
    pub fn is_refused(&self) -> bool {
        self.kind == Kind::Refused
    }

    /// The peer refused us. To come back with the same credentials is of no use.
    #[must_use]
    pub fn is_peer_error(&self) -> bool {
        self.kind == Kind::PeerError
    }

    /// The peer closed the stream.
    #[must_use]
    pub fn is_disconnected(&self) -> bool {
        matches!(self.kind, Kind::Disconnected | Kind::Unanswered)
    }

    /// A server of CURVE closed the stream in place of an answer to `HELLO`. libzmq does so when
    /// the client has the wrong key of the server.
    #[must_use]
    pub fn is_unanswered(&self) -> bool {
        self.kind == Kind::Unanswered
    }

    /// The caller asked for what cannot be. The connection is as it was.
    #[must_use]
    pub fn is_misuse(&self) -> bool {
        self.kind == Kind::Misuse
    }
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Error").field(&self.kind).field(&self.message).finish()
    }
}

impl std::error::Error for Error {}

/// Text of a peer for a message of ours: what cannot be printed is replaced, so that no terminal or
/// log is misled.
pub(crate) fn printable(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes)
        .chars()
        .map(|character| if character.is_control() { '?' } else { character })
        .collect()
}
