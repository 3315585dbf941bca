//! The orchestrations that one run has in memory.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lru::LruCache;
use onward_store::{ClaimedTask, TaskId, TaskState};
use tokio_util::sync::CancellationToken;

use super::live::Live;
use super::perform::perform;
use crate::run::Run;
use crate::summary::DrainSummary;

/// Orchestrations between two turns, up to a number of them, and how many turns are under way.
pub(crate) struct Stage {
    parked: Mutex<LruCache<TaskId, Box<Live>>>,
    running: AtomicUsize,
    summary: Mutex<DrainSummary>,
    /// Has steps end where they await.
    pub(super) abort: CancellationToken,
}

impl std::fmt::Debug for Stage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stage").field("running", &self.running).finish_non_exhaustive()
    }
}

impl Stage {
    /// A stage that keeps so many orchestrations.
    pub(crate) fn new(kept: usize) -> Self {
        let kept = NonZeroUsize::new(kept).unwrap_or(NonZeroUsize::MIN);
        Self {
            parked: Mutex::new(LruCache::unbounded()),
            running: AtomicUsize::new(0),
            summary: Mutex::default(),
            abort: CancellationToken::new(),
        }
        .keeping(kept)
    }

    fn keeping(self, kept: NonZeroUsize) -> Self {
        self.parked().resize(kept);
        self
    }

    fn parked(&self) -> MutexGuard<'_, LruCache<TaskId, Box<Live>>> {
        self.parked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many turns are under way.
    pub(crate) fn running(&self) -> usize {
        self.running.load(Ordering::Acquire)
    }

    /// Begins a turn.
    pub(crate) fn begin(run: &Arc<Run>, task: ClaimedTask) {
        run.stage.running.fetch_add(1, Ordering::AcqRel);
        let run = Arc::clone(run);
        tokio::spawn(async move {
            let _ending = EndOfTurn(Arc::clone(&run));
            perform(&run, task).await;
        });
    }

    /// What is kept of an orchestration, if it is as far as its history.
    pub(super) fn take(&self, task: TaskId, generation: u32, length: u64) -> Option<Box<Live>> {
        let live = self.parked().pop(&task)?;
        live.is_at(generation, length).then_some(live)
    }

    /// Keeps an orchestration until its next turn; of too many, that which has had none for the longest time is put away.
    pub(super) fn keep(&self, task: TaskId, live: Box<Live>) {
        // Dropped when the lock is free again: what code drops is the user's.
        let _put_away = self.parked().push(task, live);
    }

    pub(super) fn count(&self, state: TaskState) {
        self.summary.lock().unwrap_or_else(PoisonError::into_inner).count(state);
    }

    /// How orchestrations have ended in this run.
    pub(crate) fn summary(&self) -> DrainSummary {
        *self.summary.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has turns that run steps give up.
    pub(crate) fn abort(&self) {
        self.abort.cancel();
    }
}

/// Counts a turn off, however it ended, and has the dispatcher look.
struct EndOfTurn(Arc<Run>);

impl Drop for EndOfTurn {
    fn drop(&mut self) {
        self.0.stage.running.fetch_sub(1, Ordering::AcqRel);
        self.0.floor.stir();
    }
}
