//! Frees the memory of orchestrations that have ended, whatever ended them.

use std::collections::BTreeSet;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use onward_store::{
    Notification, NotificationReceiver, Page, StoreReads, TaskFilter, TaskId, TaskNotification, TaskState,
};
use tokio::time::Instant;

use crate::bounds;
use crate::engine::Run;

/// A task that evicts orchestrations from the
/// [`InstanceCache`](super::instance_cache::InstanceCache) of a run.
///
/// The notification of an end that this process wrote has the id of the task. After a write of
/// another process the evictor looks up the parked orchestrations. It does so in batches, so that
/// this takes at most a twentieth of the time.
pub(crate) struct Evictor {
    run: Arc<Run>,
    notifications: NotificationReceiver,
    /// The orchestrations that are still to be looked up.
    unchecked: BTreeSet<TaskId>,
    /// True if all of them are to be looked up again after that.
    missed: bool,
    /// The earliest time of the next lookup.
    next: Instant,
}

impl Evictor {
    /// Subscribes to the notifications from now on.
    pub(crate) fn new(run: &Arc<Run>) -> Self {
        let notifications = run.inner.store.notifications();
        Self { run: Arc::clone(run), notifications, unchecked: BTreeSet::new(), missed: false, next: Instant::now() }
    }

    /// Evicts until the store is gone.
    pub(crate) async fn run(mut self) {
        loop {
            let next = self.is_behind().then_some(self.next);
            tokio::select! {
                biased;
                received = self.notifications.next() => match received {
                    Some(Notification::Tasks(notifications)) => self.evict(notifications.iter().filter_map(ended)),
                    Some(Notification::Missed) => self.missed = true,
                    None => return,
                },
                () = reached(next) => self.look_up().await,
            }
        }
    }

    fn evict(&self, ended: impl Iterator<Item = TaskId> + Clone) {
        self.run.instances.orchestrations.evict(ended.clone());
        self.run.instances.workflows.evict(ended);
    }

    fn is_behind(&self) -> bool {
        self.missed || !self.unchecked.is_empty()
    }

    /// Looks up some of the parked orchestrations, from the newest on.
    async fn look_up(&mut self) {
        if self.unchecked.is_empty() {
            self.missed = false;
            self.unchecked = self.run.instances.orchestrations.parked();
            self.unchecked.extend(self.run.instances.workflows.parked());
        }
        let Some(newest) = self.unchecked.last().copied() else { return };
        let began = Instant::now();
        let states = TaskState::ALL.into_iter().filter(|state| !state.is_ended()).collect();
        let page = Page { before: Some(TaskId(newest.0.saturating_add(1))), limit: bounds::EVICTION_BATCH };
        // After a failed read the next one looks up the same orchestrations.
        if let Ok(live) = self.run.inner.store.task_ids(TaskFilter { states, ..TaskFilter::default() }, page).await {
            // With a next page, orchestrations older than the last one of this page are not checked
            // yet.
            let last = live.next.and(live.tasks.last().copied());
            let checked = match last {
                Some(last) => self.unchecked.split_off(&last),
                None => std::mem::take(&mut self.unchecked),
            };
            let live: BTreeSet<TaskId> = live.tasks.into_iter().collect();
            self.evict(checked.difference(&live).copied());
        }
        self.next = Instant::now() + pause(began.elapsed());
    }
}

/// Returns the pause after a lookup that took this long.
fn pause(took: Duration) -> Duration {
    bounds::EVICTION_INTERVAL.max(took.saturating_mul(20))
}

/// Returns the task that has ended, if the notification is of an end.
fn ended(notification: &TaskNotification) -> Option<TaskId> {
    match notification {
        TaskNotification::Completed { task, .. } | TaskNotification::Ended { task } => Some(*task),
        _ => None,
    }
}

async fn reached(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => pending().await,
    }
}
