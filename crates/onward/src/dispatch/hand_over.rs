//! The hand-over from workers to the dispatcher: the ends of attempts, and the flag that progress
//! was reported.
//!
//! This file uses nothing of the engine, so that the models in `xtask/models` can run every
//! interleaving of it.

use std::sync::PoisonError;

use super::sync::{AtomicBool, Mutex, MutexGuard, Notify, Ordering, fence};

/// State that workers and the dispatcher share under one lock, with the wake-ups of the dispatcher.
#[derive(Debug)]
pub(super) struct HandOver<S> {
    state: Mutex<S>,
    woken: Notify,
    progressed: AtomicBool,
}

/// State that keeps the ends of attempts until the dispatcher takes them.
pub(super) trait HasEnds {
    /// The end of an attempt.
    type End;

    fn ends(&mut self) -> &mut Vec<Self::End>;
}

impl<S: HasEnds> HandOver<S> {
    pub(super) fn new(state: S) -> Self {
        Self { state: Mutex::new(state), woken: Notify::new(), progressed: AtomicBool::new(false) }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, S> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Submits an end and changes the state under the same lock. Also returns true if this call
    /// woke the dispatcher.
    pub(super) fn end<T>(&self, end: S::End, change: impl FnOnce(&mut S) -> T) -> (T, bool) {
        let mut state = self.lock();
        // One wake-up is enough for all ends that the dispatcher has not taken yet.
        let first = state.ends().is_empty();
        state.ends().push(end);
        let changed = change(&mut state);
        drop(state);
        if first {
            self.wake();
        }
        (changed, first)
    }

    /// Submits ends, and wakes the dispatcher in any case.
    pub(super) fn add(&self, ends: impl IntoIterator<Item = S::End>) {
        self.lock().ends().extend(ends);
        self.wake();
    }

    /// Takes all ends.
    pub(super) fn take(&self) -> Vec<S::End> {
        std::mem::take(self.lock().ends())
    }

    /// Puts back ends that could not be written, before those that came since.
    pub(super) fn put_back(&self, mut unwritten: Vec<S::End>) {
        let mut state = self.lock();
        unwritten.append(state.ends());
        *state.ends() = unwritten;
    }

    /// Wakes the dispatcher.
    pub(super) fn wake(&self) {
        self.woken.notify_one();
    }

    /// Waits until an attempt has ended or progress was reported. Cancel-safe.
    pub(super) async fn woken(&self) {
        self.woken.notified().await;
    }

    /// Records that a running task's progress changed, and wakes the dispatcher unless it was woken
    /// already. The caller has changed the progress before.
    pub(super) fn report_progress(&self) {
        // The fence pairs with that of `look_at_progress`: either the look finds this change, or
        // the flag is seen as cleared. Without it a processor may read the flag before other
        // processors see the change.
        fence(Ordering::SeqCst);
        // The load comes first because handlers report often: a swap for each report would move the
        // cache line from core to core.
        if !self.progressed.load(Ordering::Relaxed) && !self.progressed.swap(true, Ordering::AcqRel) {
            self.wake();
        }
    }

    pub(super) fn has_progress(&self) -> bool {
        self.progressed.load(Ordering::Acquire)
    }

    /// Clears the flag and looks for the changes that it stands for.
    pub(super) fn look_at_progress<T>(&self, look: impl FnOnce() -> T) -> T {
        // The flag is cleared first: a change during the look sets it again.
        self.progressed.store(false, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        look()
    }
}
