//! Frees the memory of orchestrations that have ended, whatever ended them.

use std::collections::BTreeSet;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use onward_store::{Heard, NewsReceiver, Page, StoreReads, TaskFilter, TaskId, TaskNews, TaskState};
use tokio::time::Instant;

use crate::bounds;
use crate::engine::Run;

/// Evicts orchestrations from the [`InstanceCache`](super::instance_cache::InstanceCache) of a run.
///
/// An end that this process wrote is told with the number of the task. After a write of another
/// process the orchestrations that are parked are looked up: in pieces, so that this takes a
/// twentieth of the time at most.
pub(crate) struct Evictor {
    run: Arc<Run>,
    notifications: NewsReceiver,
    /// Orchestrations that are still to be looked up.
    unchecked: BTreeSet<TaskId>,
    /// True if all of them are to be looked up again after that.
    missed: bool,
    /// When the next piece may be looked up.
    next: Instant,
}

impl Evictor {
    /// Listens from now on.
    pub(crate) fn new(run: &Arc<Run>) -> Self {
        let notifications = run.inner.store.news();
        Self { run: Arc::clone(run), notifications, unchecked: BTreeSet::new(), missed: false, next: Instant::now() }
    }

    /// Evicts until the store is gone.
    pub(crate) async fn run(mut self) {
        loop {
            let next = self.is_behind().then_some(self.next);
            tokio::select! {
                received = self.notifications.next() => match received {
                    Some(Heard::News(notifications)) => self.run.instances.evict(notifications.iter().filter_map(ended)),
                    Some(Heard::Missed) => self.missed = true,
                    None => return,
                },
                () = reached(next) => self.look_up().await,
            }
        }
    }

    fn is_behind(&self) -> bool {
        self.missed || !self.unchecked.is_empty()
    }

    /// Looks up some of those that are parked, from the newest on.
    async fn look_up(&mut self) {
        if self.unchecked.is_empty() {
            self.missed = false;
            self.unchecked = self.run.instances.parked();
        }
        let Some(newest) = self.unchecked.last().copied() else { return };
        let began = Instant::now();
        let states = TaskState::ALL.into_iter().filter(|state| !state.is_ended()).collect();
        let page = Page { before: Some(TaskId(newest.0.saturating_add(1))), limit: bounds::EVICTION_BATCH };
        // One that cannot be read now is read the next time.
        if let Ok(live) = self.run.inner.store.task_ids(TaskFilter { states, ..TaskFilter::default() }, page).await {
            let last = live.next.and(live.tasks.last().copied());
            let checked = match last {
                Some(last) => self.unchecked.split_off(&last),
                None => std::mem::take(&mut self.unchecked),
            };
            let live: BTreeSet<TaskId> = live.tasks.into_iter().collect();
            self.run.instances.evict(checked.difference(&live).copied());
        }
        self.next = Instant::now() + pause(began.elapsed());
    }
}

/// Returns how long to rest after a piece that took so long.
fn pause(took: Duration) -> Duration {
    bounds::EVICTION_INTERVAL.max(took.saturating_mul(20))
}

/// Returns the task that has ended, if the news says so.
fn ended(notification: &TaskNews) -> Option<TaskId> {
    match notification {
        TaskNews::Completed { task, .. } | TaskNews::Ended { task } => Some(*task),
        _ => None,
    }
}

async fn reached(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => pending().await,
    }
}
