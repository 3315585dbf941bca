//! One picture of a store and the engine on it, for a dashboard.

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
/// Serialisable.
///
/// It costs by how many queues, kinds, limits, sessions and running tasks there are, not by the
/// history. One part depends on the backlog: the sizes of the queues are counted, which takes a
/// SQLite store some 20 ms for a million waiting tasks, so a dashboard should ask every few seconds
/// rather than many times a second. [`Engine::snapshot`] reads memory alone.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Overview {
    /// When it was read, by the store's clock.
    pub at: Timestamp,
    /// What the store is and promises.
    pub store: StoreInfo,
    /// How claims choose among queues.
    pub queue_mode: QueueMode,
    /// Every queue with its sizes, its weight, its concurrency, and whether it is paused, by name.
    pub queues: Vec<QueueRecord>,
    /// The pauses in force.
    pub pauses: Vec<PauseRecord>,
    /// The limits in force, with how far they are used.
    pub limits: Vec<LimitRecord>,
    /// The sessions that are open, of all processes, with how many tasks each holds.
    pub sessions: Vec<SessionRecord>,
    /// The schedules that fire next, by when, at most
    /// [`bounds::SCHEDULES_SHOWN`].
    pub schedules: Vec<ScheduleRecord>,
    /// What ended tasks were like, by kind.
    pub kinds: Vec<KindStatistics>,
    /// What this engine does, with the progress of what it runs; nothing where only a store was
    /// read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub engine: Option<Snapshot>,
}

impl Overview {
    /// That of a store without an engine.
    ///
    /// # Errors
    /// If the store could not be read.
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

    /// Adds what an engine does, and estimates by the statistics what its tasks do not say.
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
    /// One picture of the store and of what this engine does: queues, limits, sessions, schedules,
    /// statistics, and the running tasks with their progress, where they say nothing estimated from
    /// how long their kind took before.
    ///
    /// # Errors
    /// If the store could not be read.
    pub async fn overview(&self) -> Result<Overview> {
        let overview = Overview::of_store(&**self.store()).await?;
        Ok(overview.with_engine(self.snapshot()))
    }
}
