//! The error type of the protocol.

use std::borrow::Cow;
use std::fmt;

/// The result of a call on a connection.
pub type Result<T> = std::result::Result<T, Error>;

/// The reason why a connection ended or a call was rejected.
///
/// The predicates distinguish the cases on which a program acts. The text is for people: it names
/// the thing and the remedy where there is one, and never contains a secret. Programs must not
/// depend on it.
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

/// The start of the text of every error about a limit. It is removed from the text for the peer.
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
                "{LIMIT_PREFIX}{what} of {found} {unit}; the limit is {limit}: raise it in `Limits` if the peer may send that much"
            ),
        )
    }

    /// Returns the text for the peer, if the peer is to learn why the connection ends. Only a peer
    /// that exceeded a limit is.
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
            "the server closed the connection without a reply to the HELLO of CURVE: its key is not the configured one, or it has just ended; compare its public key with `Security::CurveClient`",
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

    /// Returns whether the peer sent bytes that the protocol does not allow.
    #[must_use]
    pub fn is_malformed(&self) -> bool {
        self.kind == Kind::Malformed
    }

    /// Returns whether the peer exceeded one of the [`Limits`](super::Limits).
    #[must_use]
    pub fn is_limit(&self) -> bool {
        self.kind == Kind::Limit
    }

    /// Returns whether the handshake took too long or the peer was silent for too long.
    #[must_use]
    pub fn is_timeout(&self) -> bool {
        self.kind == Kind::Timeout
    }

    /// Returns whether the peer does not speak ZMTP 3 or later, or not ZMTP at all.
    #[must_use]
    pub fn is_version(&self) -> bool {
        self.kind == Kind::Version
    }

    /// Returns whether the two sides have different mechanisms, or have the same side of one
    /// mechanism.
    #[must_use]
    pub fn is_mechanism(&self) -> bool {
        self.kind == Kind::Mechanism
    }

    /// Returns whether the two socket types are incompatible.
    #[must_use]
    pub fn is_incompatible(&self) -> bool {
        self.kind == Kind::Incompatible
    }

    /// Returns whether encryption or decryption failed, a number was repeated, or a key was weak.
    #[must_use]
    pub fn is_cryptographic(&self) -> bool {
        self.kind == Kind::Cryptographic
    }

    /// Returns whether this side refused the peer:
    /// [`Connection::refuse`](super::Connection::refuse).
    #[must_use]
    pub fn is_refused(&self) -> bool {
        self.kind == Kind::Refused
    }

    /// Returns whether the peer refused this side. A new connection with the same credentials will
    /// fail, too.
    #[must_use]
    pub fn is_peer_error(&self) -> bool {
        self.kind == Kind::PeerError
    }

    /// Returns whether the peer closed the stream.
    #[must_use]
    pub fn is_disconnected(&self) -> bool {
        matches!(self.kind, Kind::Disconnected | Kind::Unanswered)
    }

    /// Returns whether a server of CURVE closed the stream instead of replying to `HELLO`. libzmq
    /// does so when the client has a wrong key for the server.
    #[must_use]
    pub fn is_unanswered(&self) -> bool {
        self.kind == Kind::Unanswered
    }

    /// Returns whether the caller asked for something impossible. The connection is unchanged.
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

/// Returns a peer's text for use in a local message. Control characters are replaced, so that they
/// cannot mislead a terminal or a log.
pub(crate) fn printable(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes)
        .chars()
        .map(|character| if character.is_control() { '?' } else { character })
        .collect()
}
