//! The one error type of this crate.

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;

use crate::api::outcome::Refusal;

/// The result of a store operation.
pub type Result<T> = std::result::Result<T, Error>;

/// What went wrong with a store, to what, and what to do about it.
///
/// A *refusal* (a lease that no longer holds, a task that has ended) is not an error but an
/// [`Outcome`](crate::Outcome). The predicates tell the few cases apart on which a program acts;
/// the text is for people and must not be depended on. One pointer wide and cheap to clone, because
/// a failed commit fails every caller in it.
#[derive(Clone)]
pub struct Error(Arc<Inner>);

struct Inner {
    kind: Kind,
    message: String,
    source: Option<Box<dyn StdError + Send + Sync>>,
    refusal: Option<Refusal>,
    /// Whether it may pass, whatever its kind.
    may_pass: bool,
}

/// The cases a program may want to tell apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Invalid,
    NotFound,
    Full,
    ReadOnly,
    Corrupt,
    Version,
    Busy,
    Closed,
    Io,
    Refused,
    Replaced,
}

impl Error {
    /// Input that cannot be accepted. `message` names the thing and the remedy.
    #[cold]
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(Kind::Invalid, message)
    }

    /// Something named does not exist (a file, a directory).
    #[cold]
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(Kind::NotFound, message)
    }

    /// There is no room left.
    #[cold]
    pub fn full(message: impl Into<String>) -> Self {
        Self::new(Kind::Full, message)
    }

    /// The store may not be written.
    #[cold]
    pub fn read_only(message: impl Into<String>) -> Self {
        Self::new(Kind::ReadOnly, message)
    }

    /// What was read cannot be right.
    #[cold]
    pub fn corrupt(message: impl Into<String>) -> Self {
        Self::new(Kind::Corrupt, message)
    }

    /// The store was written by another version that this one does not understand.
    #[cold]
    pub fn version(message: impl Into<String>) -> Self {
        Self::new(Kind::Version, message)
    }

    /// Somebody else holds what is needed; trying again later may succeed.
    #[cold]
    pub fn busy(message: impl Into<String>) -> Self {
        Self::new(Kind::Busy, message)
    }

    /// The file of the store was moved, removed or replaced while it was open, or another store's
    /// files lie beside it.
    #[cold]
    pub fn replaced(message: impl Into<String>) -> Self {
        Self::new(Kind::Replaced, message)
    }

    /// The store was closed.
    #[cold]
    pub fn closed() -> Self {
        Self::new(Kind::Closed, "the store is closed; open it again to go on")
    }

    /// Anything else that the disk or the database reported.
    #[cold]
    pub fn io(message: impl Into<String>) -> Self {
        Self::new(Kind::Io, message)
    }

    #[cold]
    fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self(Arc::new(Inner { kind, message: message.into(), source: None, refusal: None, may_pass: false }))
    }

    /// The same error, [worth trying again](Self::is_transient) whatever its kind.
    #[cfg(feature = "postgres")]
    #[cold]
    pub(crate) fn passing(self) -> Self {
        let Inner { kind, ref message, ref refusal, .. } = *self.0;
        let (message, refusal) = (message.clone(), refusal.clone());
        Self(Arc::new(Inner { kind, message, source: None, refusal, may_pass: true }))
    }

    /// A refusal where it cannot be an outcome: in a transaction of the caller's own.
    #[cfg(feature = "sqlite")]
    #[cold]
    pub(crate) fn refused(refusal: Refusal) -> Self {
        let message = refusal.to_string();
        Self(Arc::new(Inner { kind: Kind::Refused, message, source: None, refusal: Some(refusal), may_pass: false }))
    }

    /// The same error with the name of what it is about before its text.
    #[must_use]
    pub fn about(mut self, name: &str) -> Self {
        let message = format!("{name}: {}", self.0.message);
        if let Some(inner) = Arc::get_mut(&mut self.0) {
            inner.message = message;
            return self;
        }
        let refusal = self.0.refusal.clone();
        let Inner { kind, may_pass, .. } = *self.0;
        Self(Arc::new(Inner { kind, message, source: Some(Box::new(self)), refusal, may_pass }))
    }

    /// The same error with the cause beneath it.
    #[must_use]
    pub fn caused_by(self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        let Inner { kind, ref message, ref refusal, may_pass, .. } = *self.0;
        let (message, refusal, source) = (message.clone(), refusal.clone(), Some(source.into()));
        Self(Arc::new(Inner { kind, message, source, refusal, may_pass }))
    }

    /// The refusal, if the store [refused](Refusal) what was to be written in a transaction of the
    /// caller's own.
    #[must_use]
    pub fn refusal(&self) -> Option<&Refusal> {
        self.0.refusal.as_ref()
    }

    /// The caller's input cannot be accepted; nothing was changed.
    #[must_use]
    pub fn is_invalid(&self) -> bool {
        self.0.kind == Kind::Invalid
    }

    /// A file or directory is missing.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        self.0.kind == Kind::NotFound
    }

    /// The disk (or a limit) is full; after room is made the store goes on without being opened
    /// again.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.0.kind == Kind::Full
    }

    /// The store may not be written.
    #[must_use]
    pub fn is_read_only(&self) -> bool {
        self.0.kind == Kind::ReadOnly
    }

    /// The store is damaged, or is not a store at all.
    #[must_use]
    pub fn is_corrupt(&self) -> bool {
        self.0.kind == Kind::Corrupt
    }

    /// The store belongs to another version of Onward.
    #[must_use]
    pub fn is_version(&self) -> bool {
        self.0.kind == Kind::Version
    }

    /// The file of the store is not the one that was opened: it was moved, removed, replaced or
    /// overwritten. Or the file to be opened has the write-ahead log of another store beside it.
    /// Trying again does not help; the text says what does.
    #[must_use]
    pub fn is_replaced(&self) -> bool {
        self.0.kind == Kind::Replaced
    }

    /// Worth trying again as it is: somebody else held the store, a passing fault of the disk, a
    /// server that is away or takes no writes at the moment.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        self.0.may_pass || matches!(self.0.kind, Kind::Busy | Kind::Full | Kind::Io)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Error")
            .field("kind", &self.0.kind)
            .field("message", &self.0.message)
            .field("source", &self.0.source)
            .finish()
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source.as_deref().map(|source| source as _)
    }
}
