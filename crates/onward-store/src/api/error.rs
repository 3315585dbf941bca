//! The error type of this crate.

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;

use crate::api::outcome::Refusal;

/// The result of a store operation.
pub type Result<T> = std::result::Result<T, Error>;

/// An error of a store. The message names the thing, the fault and the remedy.
///
/// A *refusal* (a lease that is not current, a task that has ended) is not an error but an
/// [`Outcome`](crate::Outcome). The predicates distinguish the cases on which a program acts. The
/// message is for people and may change between versions. An error is one pointer wide and cheap to
/// clone, because a failed commit fails every caller in it.
#[derive(Clone)]
pub struct Error(Arc<Inner>);

/// The content of an [`Error`], behind one pointer.
struct Inner {
    kind: Kind,
    message: String,
    source: Option<Box<dyn StdError + Send + Sync>>,
    refusal: Option<Refusal>,
    /// True if a retry may succeed, regardless of the kind.
    may_pass: bool,
}

/// The cases that a predicate distinguishes.
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
    Denied,
}

impl Error {
    /// Creates an error for invalid input. `message` names the thing and the remedy.
    #[cold]
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(Kind::Invalid, message)
    }

    /// Creates an error for a file, directory or store that does not exist.
    #[cold]
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(Kind::NotFound, message)
    }

    /// Creates an error for a disk, or another resource, that is full.
    #[cold]
    pub fn full(message: impl Into<String>) -> Self {
        Self::new(Kind::Full, message)
    }

    /// Creates an error for a store that cannot be written.
    #[cold]
    pub fn read_only(message: impl Into<String>) -> Self {
        Self::new(Kind::ReadOnly, message)
    }

    /// Creates an error for stored data that cannot be correct.
    #[cold]
    pub fn corrupt(message: impl Into<String>) -> Self {
        Self::new(Kind::Corrupt, message)
    }

    /// Creates an error for a store of another version that this version does not support.
    #[cold]
    pub fn version(message: impl Into<String>) -> Self {
        Self::new(Kind::Version, message)
    }

    /// Creates an error for a resource that another process holds. A retry may succeed.
    #[cold]
    pub fn busy(message: impl Into<String>) -> Self {
        Self::new(Kind::Busy, message)
    }

    /// Creates an error for a store file that was moved, removed or replaced while it was open, or
    /// that has files of another store beside it.
    #[cold]
    pub fn replaced(message: impl Into<String>) -> Self {
        Self::new(Kind::Replaced, message)
    }

    /// Creates an error for a user, a password or a key that the server of a store does not accept,
    /// or that is missing.
    #[cold]
    pub fn denied(message: impl Into<String>) -> Self {
        Self::new(Kind::Denied, message)
    }

    /// Creates the error for calls to a store that was closed.
    #[cold]
    pub fn closed() -> Self {
        Self::new(Kind::Closed, "the store is closed; open it again to go on")
    }

    /// Creates an error for any other failure that the disk or the database reported.
    #[cold]
    pub fn io(message: impl Into<String>) -> Self {
        Self::new(Kind::Io, message)
    }

    /// Creates an error of a kind, without a cause.
    #[cold]
    fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self(Arc::new(Inner { kind, message: message.into(), source: None, refusal: None, may_pass: false }))
    }

    /// Marks the error as [transient](Self::is_transient), regardless of its kind.
    #[cfg(feature = "postgres")]
    #[cold]
    pub(crate) fn passing(self) -> Self {
        let Inner { kind, ref message, ref refusal, .. } = *self.0;
        let (message, refusal) = (message.clone(), refusal.clone());
        Self(Arc::new(Inner { kind, message, source: None, refusal, may_pass: true }))
    }

    /// Creates an error from a refusal that cannot be an outcome, in a transaction of the caller.
    #[cfg(any(feature = "sqlite", feature = "postgres"))]
    #[cold]
    pub(crate) fn refused(refusal: Refusal) -> Self {
        let message = refusal.to_string();
        Self(Arc::new(Inner { kind: Kind::Refused, message, source: None, refusal: Some(refusal), may_pass: false }))
    }

    /// Adds the name of the affected thing before the message.
    #[must_use]
    pub fn about(mut self, name: &str) -> Self {
        let message = format!("{name}: {}", self.0.message);
        // Only this handle refers to the error, so its message can change in place.
        if let Some(inner) = Arc::get_mut(&mut self.0) {
            inner.message = message;
            return self;
        }
        let refusal = self.0.refusal.clone();
        let Inner { kind, may_pass, .. } = *self.0;
        Self(Arc::new(Inner { kind, message, source: Some(Box::new(self)), refusal, may_pass }))
    }

    /// Adds the cause, which [`source`](StdError::source) returns. A previous cause is replaced.
    #[must_use]
    pub fn caused_by(self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        let Inner { kind, ref message, ref refusal, may_pass, .. } = *self.0;
        let (message, refusal, source) = (message.clone(), refusal.clone(), Some(source.into()));
        Self(Arc::new(Inner { kind, message, source, refusal, may_pass }))
    }

    /// Returns the refusal, if the store [rejected](Refusal) a write in a transaction of the
    /// caller.
    #[must_use]
    pub fn refusal(&self) -> Option<&Refusal> {
        self.0.refusal.as_ref()
    }

    /// Returns whether the caller's input is invalid. Nothing was changed.
    #[must_use]
    pub fn is_invalid(&self) -> bool {
        self.0.kind == Kind::Invalid
    }

    /// Returns whether a file, directory or store does not exist.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        self.0.kind == Kind::NotFound
    }

    /// Returns whether the disk, or another resource, is full. The store continues when room is
    /// made; it need not be opened again.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.0.kind == Kind::Full
    }

    /// Returns whether the store cannot be written.
    #[must_use]
    pub fn is_read_only(&self) -> bool {
        self.0.kind == Kind::ReadOnly
    }

    /// Returns whether the store is damaged, or the file is not a store.
    #[must_use]
    pub fn is_corrupt(&self) -> bool {
        self.0.kind == Kind::Corrupt
    }

    /// Returns whether the store belongs to a version of Onward that this version does not support.
    #[must_use]
    pub fn is_version(&self) -> bool {
        self.0.kind == Kind::Version
    }

    /// Returns whether the store's file is not the one that was opened, because it was moved,
    /// removed, replaced or overwritten. It also returns true for a file that cannot be opened
    /// because the write-ahead log of another store is beside it. A retry does not help; the
    /// message names the remedy.
    #[must_use]
    pub fn is_replaced(&self) -> bool {
        self.0.kind == Kind::Replaced
    }

    /// Returns whether the server of the store does not accept the user, the password or the key,
    /// or one of them is missing. A retry does not help; the message names the remedy.
    #[must_use]
    pub fn is_denied(&self) -> bool {
        self.0.kind == Kind::Denied
    }

    /// Returns whether a retry without changes may succeed: another process held the store, the
    /// disk had a passing fault or was full, or the server is unreachable or accepts no writes at
    /// the moment.
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
