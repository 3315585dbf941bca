//! Where handles leave what the reader is to do, and the register of who is in the queue.

use std::collections::{BTreeMap, HashSet};
use std::mem;
use std::sync::{Arc, PoisonError};

use super::signal::Signal;
use super::source::{Entry, SourceId};
use super::sync::{AtomicUsize, Mutex, MutexGuard, Ordering};

/// Shared by the reader and its handles. The reader opens it only when the signal says so, and when a source ends.
///
/// Invariant: nothing of the user's runs under the lock: no key and no source is polled, cloned or dropped there.
pub(super) struct Mailbox<K, S> {
    register: Mutex<Register<K, S>>,
    handles: AtomicUsize,
    limit: usize,
    signal: Arc<Signal>,
}

/// Invariant: an id is in at most one of `waiting`, `adopted` and `removed`, moves only in that order, and never comes back. Together they
/// hold at most `Mailbox::limit`.
struct Register<K, S> {
    next: u64,
    closed: bool,
    /// Inserted, and not yet seen by the reader.
    waiting: BTreeMap<SourceId, Entry<K, S>>,
    /// In the reader's hands.
    adopted: HashSet<SourceId>,
    /// In the reader's hands, which is to drop them.
    removed: Vec<SourceId>,
}

/// What the reader is to do: first the removals, then the insertions.
pub(super) struct Orders<K, S> {
    pub(super) removed: Vec<SourceId>,
    pub(super) inserted: BTreeMap<SourceId, Entry<K, S>>,
}

/// Why an insertion was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refusal {
    Full { limit: usize },
    Closed,
}

impl<K, S> Mailbox<K, S> {
    pub(super) fn new(limit: usize, signal: Arc<Signal>) -> Self {
        let register =
            Register { next: 0, closed: false, waiting: BTreeMap::new(), adopted: HashSet::new(), removed: Vec::new() };
        Self { register: Mutex::new(register), handles: AtomicUsize::new(0), limit, signal }
    }

    /// Leaves a source for the reader, or gives it back.
    pub(super) fn insert(&self, key: K, source: S) -> Result<SourceId, (Refusal, K, S)> {
        let mut register = self.register();
        if let Err(refusal) = register.admits(self.limit) {
            drop(register);
            return Err((refusal, key, source));
        }
        let id = SourceId(register.next);
        register.next += 1;
        register.waiting.insert(id, Entry { id, key, source });
        drop(register);
        self.signal.raise_mailbox();
        Ok(id)
    }

    /// Takes a source out that the reader has not seen yet, or tells the reader to drop it. False if it had left before.
    pub(super) fn remove(&self, id: SourceId) -> bool {
        let mut register = self.register();
        let withdrawn = register.waiting.remove(&id);
        let told = register.adopted.remove(&id);
        if told {
            register.removed.push(id);
        }
        drop(register);
        if told {
            self.signal.raise_mailbox();
        }
        told || withdrawn.is_some()
    }

    /// Wakes the reader, for which there may be nothing here.
    #[cfg(feature = "tokio")]
    pub(super) fn nudge(&self) {
        self.signal.raise_mailbox();
    }

    /// What was left for the reader since it last asked.
    pub(super) fn orders(&self) -> Orders<K, S> {
        let mut register = self.register();
        let inserted = mem::take(&mut register.waiting);
        register.adopted.extend(inserted.keys());
        Orders { removed: mem::take(&mut register.removed), inserted }
    }

    /// Strikes out a source that ended. False if it had been removed just before.
    pub(super) fn retire(&self, id: SourceId) -> bool {
        self.register().adopted.remove(&id)
    }

    /// How many sources are in the queue.
    pub(super) fn len(&self) -> usize {
        let register = self.register();
        register.waiting.len() + register.adopted.len()
    }

    /// Refuses all insertions from now on, and drops what was left for the reader.
    pub(super) fn close(&self) {
        let mut register = self.register();
        register.closed = true;
        register.adopted.clear();
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

    /// The last handle wakes the reader, which may have nothing left to wait for.
    pub(super) fn drop_handle(&self) {
        if self.handles.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.signal.raise_mailbox();
        }
    }

    /// Whatever a handle did before it was dropped can be seen by whoever got `false`.
    pub(super) fn has_handles(&self) -> bool {
        self.handles.load(Ordering::Acquire) != 0
    }

    fn register(&self) -> MutexGuard<'_, Register<K, S>> {
        self.register.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K, S> Register<K, S> {
    fn admits(&self, limit: usize) -> Result<(), Refusal> {
        if self.closed {
            return Err(Refusal::Closed);
        }
        if self.waiting.len() + self.adopted.len() + self.removed.len() >= limit {
            return Err(Refusal::Full { limit });
        }
        Ok(())
    }
}
