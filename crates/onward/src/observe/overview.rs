//! An overview of a store and an engine on it, for a dashboard.

use onward_store::{
    KindStatistics, LimitRecord, PauseRecord, QueueMode, QueueRecord, ScheduleRecord, ScheduleSelection, SessionRecord,
    Store, StoreInfo, StoreReads, Timestamp,
};
use serde::Serialize;

use super::forecast::{Forecast, mean_run};
use super::snapshot::Snapshot;
use crate::bounds;
use crate::engine::Engine;
use crate::error::Result;

/// Everything that a dashboard shows, at about one moment: its parts are read one after the other.
/// It is serialisable.
///
/// The cost depends on the number of queues, kinds, limits, sessions and running tasks, not on the
/// history. One part depends on the backlog: the sizes of the queues are counted, which takes a
/// SQLite store some 20 ms for a million waiting tasks. A dashboard should therefore read it every
/// few seconds rather than many times a second. [`Engine::snapshot`] reads memory only.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Overview {
    /// The time of the read, by the store's clock.
    pub at: Timestamp,
    /// The store and its guarantees.
    pub store: StoreInfo,
    /// The mode by which claims choose among queues.
    pub queue_mode: QueueMode,
    /// Every queue with its sizes, its weight, its concurrency, and whether it is paused, by name.
    pub queues: Vec<QueueRecord>,
    /// The pauses in force.
    pub pauses: Vec<PauseRecord>,
    /// The limits in force, with their usage.
    pub limits: Vec<LimitRecord>,
    /// The open sessions of all processes, with the number of tasks that each holds.
    pub sessions: Vec<SessionRecord>,
    /// The schedules that fire next, by due time, at most
    /// [`bounds::SCHEDULES_SHOWN`](crate::bounds::SCHEDULES_SHOWN).
    pub schedules: Vec<ScheduleRecord>,
    /// Statistics of ended tasks, by kind.
    pub kinds: Vec<KindStatistics>,
    /// The activity of this engine, with the progress of its running tasks; `None` if only a store
    /// was read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub engine: Option<Snapshot>,
}

impl Overview {
    /// Returns the overview of a store without an engine.
    ///
    /// # Errors
    /// The store's error if it could not be read.
    pub async fn of_store(store: &dyn Store) -> Result<Self> {
        Ok(Self {
            at: store.clock().now(),
            store: store.info(),
            queue_mode: store.queue_mode().await?,
            queues: store.queues().await?,
            pauses: store.pauses().await?,
            limits: store.limits().await?,
            sessions: store.sessions().await?,
            schedules: store.schedules(ScheduleSelection::Next { limit: bounds::SCHEDULES_SHOWN }).await?,
            kinds: store.statistics().await?,
            engine: None,
        })
    }

    /// Adds the activity of an engine, and estimates the progress of tasks that report none.
    fn with_engine(mut self, mut snapshot: Snapshot) -> Self {
        for task in snapshot.running.iter_mut().filter(|task| task.forecast.fraction.is_none()) {
            let mean = mean_run(self.kinds.iter().find(|kind| kind.kind == task.kind));
            task.forecast = Forecast::of(task.reported(), task.elapsed, mean);
        }
        self.engine = Some(snapshot);
        self
    }
}

impl Engine {
    /// Returns an overview of the store and this engine: queues, limits, sessions, schedules,
    /// statistics, and the running tasks with their progress. The progress of a task that reports
    /// none is estimated from earlier tasks of its kind.
    ///
    /// # Errors
    /// The store's error if it could not be read.
    pub async fn overview(&self) -> Result<Overview> {
        let overview = Overview::of_store(&**self.store()).await?;
        Ok(overview.with_engine(self.snapshot()))
    }
}
