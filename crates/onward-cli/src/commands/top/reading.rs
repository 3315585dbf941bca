//! The result of reading a store once.

use std::collections::BTreeMap;
use std::time::Duration;

use onward_store::{
    EndedCounts, LimitRecord, OutputStream, Page, PauseRecord, QueueMode, QueueRecord, SessionRecord, Store,
    StoreReads, TaskFilter, TaskId, TaskRecord, TaskState, Timestamp,
};

use crate::commands::task::last_lines;

/// The most running tasks, and the most dead letters, in a reading.
pub(super) const LISTED: usize = 200;

/// The most running tasks whose output is read.
const OUTPUT_READ: usize = 40;

/// The time of a reading, by the wall clock and by the steady clock.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct ReadingTime {
    pub(super) wall: Timestamp,
    pub(super) steady: Duration,
}

impl Default for ReadingTime {
    /// Returns the moment before the first reading.
    fn default() -> Self {
        Self { wall: Timestamp::from_microseconds(0), steady: Duration::ZERO }
    }
}

impl ReadingTime {
    /// Returns the current moment, by a store's clock.
    pub(super) fn now(store: &dyn Store) -> Self {
        let clock = store.clock();
        Self { wall: clock.now(), steady: clock.steady() }
    }
}

/// The result of reading a store once.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Reading {
    pub(super) at: ReadingTime,
    pub(super) queues: Vec<QueueRecord>,
    pub(super) mode: QueueMode,
    /// The number of tasks that have ended since the store was created, by outcome.
    pub(super) ended: EndedCounts,
    /// The highest task number. Tasks are numbered in the order of submission.
    pub(super) newest: Option<TaskId>,
    pub(super) running: Vec<TaskRecord>,
    /// The last lines of output of running tasks that report no message.
    pub(super) output: BTreeMap<TaskId, String>,
    pub(super) dead: Vec<TaskRecord>,
    pub(super) limits: Vec<LimitRecord>,
    pub(super) pauses: Vec<PauseRecord>,
    pub(super) sessions: Vec<SessionRecord>,
}

impl Reading {
    /// Reads a store, without writing to it.
    pub(super) async fn of(store: &dyn Store) -> anyhow::Result<Self> {
        let queues = store.queues().await?;
        // A search for tasks in a state that no task has would read every task.
        let any = |count: fn(&QueueRecord) -> u64| queues.iter().any(|queue| count(queue) > 0);
        let running = listed(store, TaskState::Running, any(|queue| queue.running)).await?;
        let dead = listed(store, TaskState::Dead, any(|queue| queue.ended.dead)).await?;
        let newest = store.task_ids(TaskFilter::default(), Page { before: None, limit: 1 }).await?;
        Ok(Self {
            mode: store.queue_mode().await?,
            ended: ended(store).await?,
            newest: newest.tasks.first().copied(),
            output: output(store, &running).await?,
            running,
            dead,
            limits: store.limits().await?,
            pauses: store.pauses().await?,
            sessions: store.sessions().await?,
            at: ReadingTime::now(store),
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

/// Reads the last lines of output of the tasks that run longest.
async fn output(store: &dyn Store, running: &[TaskRecord]) -> anyhow::Result<BTreeMap<TaskId, String>> {
    let has_message = |task: &&TaskRecord| task.progress.as_ref().is_some_and(|progress| progress.message.is_some());
    let mut silent: Vec<_> = running.iter().filter(|task| !has_message(task)).collect();
    silent.sort_by_key(|task| (task.started_at, task.id));
    let mut lines = BTreeMap::new();
    for task in silent.into_iter().take(OUTPUT_READ) {
        for stream in [OutputStream::Stdout, OutputStream::Stderr] {
            let line = last_lines(store, task.id, stream, 1).await?;
            if !line.trim().is_empty() {
                lines.insert(task.id, line.trim().to_owned());
                break;
            }
        }
    }
    Ok(lines)
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
