//! Cleans up after an attempt that was stopped.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use futures_util::FutureExt;

use super::attempt::Attempt;
use crate::engine::Run;
use crate::timer;

type CleanupFuture = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The future that a handler set to run if its attempt is stopped.
#[derive(Default)]
pub(crate) struct Cleanup {
    /// Lets an attempt without a future skip the lock.
    is_set: AtomicBool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    future: Option<CleanupFuture>,
    /// True once the attempt has ended: a future set later would be kept for ever.
    is_closed: bool,
}

impl Cleanup {
    /// Sets the future and drops an earlier one.
    pub(crate) fn set(&self, future: CleanupFuture) {
        self.is_set.store(true, Ordering::Release);
        let mut state = self.lock();
        // Dropped after the lock is released, because the drop may run any code.
        let unused = if state.is_closed { Some(future) } else { state.future.replace(future) };
        drop(state);
        drop(unused);
    }

    pub(crate) fn is_set(&self) -> bool {
        self.is_set.load(Ordering::Acquire)
    }

    fn take(&self) -> Option<CleanupFuture> {
        if !self.is_set() {
            return None;
        }
        let mut state = self.lock();
        state.is_closed = true;
        state.future.take()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Cleanup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cleanup").field("is_set", &self.is_set()).finish_non_exhaustive()
    }
}

/// Runs the future if the attempt was asked to stop and did not complete, for at most the cleanup
/// limit. Never panics.
pub(crate) async fn clean_up(run: &Run, attempt: &Attempt, is_completed: bool) {
    let Some(mut cleanup) = attempt.cleanup.take() else { return };
    if !is_completed && attempt.interruption().is_some() {
        let clock = &*run.inner.clock;
        let over_at = clock.steady().saturating_add(run.inner.settings.cleanup_limit);
        let (task, kind) = (attempt.id().0, attempt.task.kind.as_str());
        tokio::select! {
            biased;
            ended = AssertUnwindSafe(&mut cleanup).catch_unwind() => if ended.is_err() {
                tracing::warn!(task, kind, "the cleanup of an attempt panicked");
            },
            () = timer::reached(clock, over_at) => {
                tracing::warn!(task, kind, "the cleanup of an attempt took too long and is aborted");
            }
        }
    }
    if catch_unwind(AssertUnwindSafe(|| drop(cleanup))).is_err() {
        tracing::warn!(task = attempt.id().0, "the cleanup of an attempt panicked when it was dropped");
    }
}
