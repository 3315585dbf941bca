//! The mailbox, in which handles leave changes for the reader, and the register of all sources.

use std::collections::{BTreeMap, HashSet};
use std::mem;
use std::sync::{Arc, PoisonError};

use super::signal::Signal;
use super::source::{Entry, SourceId};
use super::sync::{AtomicUsize, Mutex, MutexGuard, Ordering};

/// The state shared by the reader and its handles. The reader locks it only when the signal is
/// raised for it, and when a source ends.
///
/// Invariant: no user code runs under the lock. Keys and sources are not polled, cloned or dropped
/// there.
pub(super) struct Mailbox<K, S> {
    register: Mutex<Register<K, S>>,
    handles: AtomicUsize,
    limit: usize,
    signal: Arc<Signal>,
}

/// The sources by state.
///
/// Invariant: an id is in at most one of `waiting`, `owned` and `removed`. It moves only in that
/// order and never comes back. Together they hold at most `Mailbox::limit` ids.
struct Register<K, S> {
    next: u64,
    closed: bool,
    /// Sources that were inserted and that the reader has not taken yet.
    waiting: BTreeMap<SourceId, Entry<K, S>>,
    /// Sources that the reader owns.
    owned: HashSet<SourceId>,
    /// Sources that the reader owns and must drop.
    removed: Vec<SourceId>,
}

/// The pending changes for the reader: removals, to be done first, then insertions.
pub(super) struct SourceChanges<K, S> {
    pub(super) removed: Vec<SourceId>,
    pub(super) inserted: BTreeMap<SourceId, Entry<K, S>>,
}

/// The reason why an insertion was rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rejection {
    Full { limit: usize },
    Closed,
}

impl<K, S> Mailbox<K, S> {
    pub(super) fn new(limit: usize, signal: Arc<Signal>) -> Self {
        let register =
            Register { next: 0, closed: false, waiting: BTreeMap::new(), owned: HashSet::new(), removed: Vec::new() };
        Self { register: Mutex::new(register), handles: AtomicUsize::new(0), limit, signal }
    }

    /// Leaves a source for the reader. On rejection, returns it to the caller.
    pub(super) fn insert(&self, key: K, source: S) -> Result<SourceId, (Rejection, K, S)> {
        let mut register = self.register();
        if let Err(rejection) = register.admits(self.limit) {
            // Released before the caller drops the key and the source, which are user code.
            drop(register);
            return Err((rejection, key, source));
        }
        let id = SourceId(register.next);
        register.next += 1;
        register.waiting.insert(id, Entry { id, key, source });
        drop(register);
        self.signal.raise_mailbox();
        Ok(id)
    }

    /// Removes a source that the reader has not taken yet, or has the reader drop it. Returns
    /// false if the source had left the queue before.
    pub(super) fn remove(&self, id: SourceId) -> bool {
        let mut register = self.register();
        // A withdrawn source is user code, so it lives until the lock is released.
        let withdrawn = register.waiting.remove(&id);
        let is_owned = register.owned.remove(&id);
        if is_owned {
            register.removed.push(id);
        }
        drop(register);
        if is_owned {
            self.signal.raise_mailbox();
        }
        is_owned || withdrawn.is_some()
    }

    /// Wakes the reader, even if the mailbox is empty.
    #[cfg(feature = "tokio")]
    pub(super) fn wake_reader(&self) {
        self.signal.raise_mailbox();
    }

    /// Takes the changes that were left since the last call.
    pub(super) fn take_changes(&self) -> SourceChanges<K, S> {
        let mut register = self.register();
        let inserted = mem::take(&mut register.waiting);
        register.owned.extend(inserted.keys());
        SourceChanges { removed: mem::take(&mut register.removed), inserted }
    }

    /// Removes a source that ended from the register. Returns false if it had just been removed by
    /// a handle.
    pub(super) fn remove_ended(&self, id: SourceId) -> bool {
        self.register().owned.remove(&id)
    }

    /// Returns the number of sources in the queue.
    pub(super) fn len(&self) -> usize {
        let register = self.register();
        register.waiting.len() + register.owned.len()
    }

    /// Rejects all later insertions, and drops what was left for the reader.
    pub(super) fn close(&self) {
        let mut register = self.register();
        register.closed = true;
        register.owned.clear();
        let waiting = mem::take(&mut register.waiting);
        drop(register);
        drop(waiting);
    }

    pub(super) fn is_closed(&self) -> bool {
        self.register().closed
    }

    pub(super) fn add_handle(&self) {
        self.handles.fetch_add(1, Ordering::Relaxed);
    }

    /// Drops one handle. The last one wakes the reader, which may have nothing left to wait for.
    pub(super) fn drop_handle(&self) {
        if self.handles.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.signal.raise_mailbox();
        }
    }

    /// Returns true if a handle exists. A caller that gets `false` also sees everything that any
    /// handle did before it was dropped.
    pub(super) fn has_handles(&self) -> bool {
        self.handles.load(Ordering::Acquire) != 0
    }

    fn register(&self) -> MutexGuard<'_, Register<K, S>> {
        self.register.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K, S> Register<K, S> {
    fn admits(&self, limit: usize) -> Result<(), Rejection> {
        if self.closed {
            return Err(Rejection::Closed);
        }
        if self.waiting.len() + self.owned.len() + self.removed.len() >= limit {
            return Err(Rejection::Full { limit });
        }
        Ok(())
    }
}
