//! What one look at a store answers.

use std::time::Duration;

use onward_store::{
    EndedCounts, LimitRecord, Page, PauseRecord, QueueMode, QueueRecord, SessionRecord, Store, TaskFilter, TaskId,
    TaskRecord, TaskState, Timestamp,
};

/// The most running tasks, and the most dead letters, that a look reads.
pub(super) const LISTED: usize = 200;

/// When something was seen: by the wall's clock, and by the one that does not jump.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Moment {
    pub(super) wall: Timestamp,
    pub(super) steady: Duration,
}

impl Default for Moment {
    /// Before anything was seen.
    fn default() -> Self {
        Self { wall: Timestamp::from_microseconds(0), steady: Duration::ZERO }
    }
}

impl Moment {
    /// Now, by a store's clock.
    pub(super) fn now(store: &dyn Store) -> Self {
        let clock = store.clock();
        Self { wall: clock.now(), steady: clock.steady() }
    }
}

/// What one look at a store answers.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Reading {
    pub(super) at: Moment,
    pub(super) queues: Vec<QueueRecord>,
    pub(super) mode: QueueMode,
    /// How tasks have ended since the store was made.
    pub(super) ended: EndedCounts,
    /// The highest number of a task: tasks are numbered as they are submitted.
    pub(super) newest: Option<TaskId>,
    pub(super) running: Vec<TaskRecord>,
    pub(super) dead: Vec<TaskRecord>,
    pub(super) limits: Vec<LimitRecord>,
    pub(super) pauses: Vec<PauseRecord>,
    pub(super) sessions: Vec<SessionRecord>,
}

impl Reading {
    /// Looks at a store. Reads only.
    pub(super) async fn of(store: &dyn Store) -> anyhow::Result<Self> {
        let queues = store.queues().await?;
        // To look for what is not there would read every task.
        let any = |count: fn(&QueueRecord) -> u64| queues.iter().any(|queue| count(queue) > 0);
        let running = listed(store, TaskState::Running, any(|queue| queue.running)).await?;
        let dead = listed(store, TaskState::Dead, any(|queue| queue.ended.dead)).await?;
        let newest = store.task_ids(TaskFilter::default(), Page { before: None, limit: 1 }).await?;
        Ok(Self {
            mode: store.queue_mode().await?,
            ended: ended(store).await?,
            newest: newest.tasks.first().copied(),
            running,
            dead,
            limits: store.limits().await?,
            pauses: store.pauses().await?,
            sessions: store.sessions().await?,
            at: Moment::now(store),
            queues,
        })
    }
}

async fn listed(store: &dyn Store, state: TaskState, any: bool) -> anyhow::Result<Vec<TaskRecord>> {
    if !any {
        return Ok(Vec::new());
    }
    let filter = TaskFilter { states: vec![state], ..TaskFilter::default() };
    Ok(store.tasks(filter, Page { before: None, limit: LISTED }).await?.tasks)
}

async fn ended(store: &dyn Store) -> anyhow::Result<EndedCounts> {
    let mut all = EndedCounts::default();
    for kind in store.statistics().await? {
        all.completed += kind.ended.completed;
        all.failed += kind.ended.failed;
        all.dead += kind.ended.dead;
        all.cancelled += kind.ended.cancelled;
        all.expired += kind.ended.expired;
    }
    Ok(all)
}
