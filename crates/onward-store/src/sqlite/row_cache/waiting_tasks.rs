//! Cached rows of tasks that this process has submitted and that wait for a claim, so that claiming
//! them needs no read of their rows.

use bytes::Bytes;

use crate::api::task::{Priority, TaskId};
use crate::api::timestamp::Timestamp;
use crate::number_map::NumberMap;
use crate::sqlite::commit::transaction::LiveTask;
use crate::sqlite::ready::index::Entry;

/// The most bytes that are cached; for tasks beyond that the rows are read.
const MAX_BYTES: usize = 48 * 1024 * 1024;

/// The approximate size of a plain task without a payload: its place in the map, and the overhead
/// of an allocation.
const PLAIN_BYTES: usize = 2 * size_of::<(i64, CachedTask)>() + 32;

/// The approximate size of any other task without its payload.
const TASK_BYTES: usize = PLAIN_BYTES + size_of::<WaitingTask>() + size_of::<LiveTask>();

/// A waiting task that has not been claimed before.
#[derive(Debug)]
pub(in crate::sqlite) struct WaitingTask {
    /// The row.
    pub(in crate::sqlite) task: Box<LiveTask>,
    /// The submission time.
    pub(in crate::sqlite) submitted_at: Timestamp,
    /// The payload.
    pub(in crate::sqlite) payload: Bytes,
}

/// One of which nothing was asked but to run now, as of most.
#[derive(Debug)]
pub(in crate::sqlite) struct PlainTask {
    /// The sub-queue's number.
    pub(in crate::sqlite) sub_queue: i64,
    /// The submission time, which is also the due time.
    pub(in crate::sqlite) submitted_at: Timestamp,
    /// The payload.
    pub(in crate::sqlite) payload: Bytes,
    /// The priority.
    pub(in crate::sqlite) priority: Priority,
}

impl PlainTask {
    /// Returns the whole row, in which all else has its default.
    fn into_task(self, id: i64) -> WaitingTask {
        let entry = Entry::plain(TaskId(id), self.sub_queue, self.priority, self.submitted_at);
        WaitingTask { task: Box::new(LiveTask::new(&entry)), submitted_at: self.submitted_at, payload: self.payload }
    }
}

/// A hundred thousand tasks may wait, and all that is kept of one has left the processor's caches
/// when its turn comes: so it is little.
#[derive(Debug)]
enum CachedTask {
    /// A task with defaults only.
    Plain(PlainTask),
    /// Any other task.
    Other(Box<WaitingTask>),
}

impl CachedTask {
    /// Returns the memory that the task takes, about.
    fn bytes(&self) -> usize {
        match self {
            Self::Plain(plain) => PLAIN_BYTES + plain.payload.len(),
            Self::Other(task) => TASK_BYTES + task.payload.len(),
        }
    }

    /// Returns the whole row.
    fn into_task(self, id: i64) -> WaitingTask {
        match self {
            Self::Plain(plain) => plain.into_task(id),
            Self::Other(task) => *task,
        }
    }
}

/// A cache of rows, never the truth. It belongs to the index, which drops a task here when the task
/// leaves its list, in memory or in the table. A change of a waiting task removes it from its list
/// first.
#[derive(Debug, Default)]
pub(in crate::sqlite) struct WaitingTasks {
    /// The tasks by number.
    tasks: NumberMap<i64, CachedTask>,
    /// The memory that they take, about.
    bytes: usize,
}

impl WaitingTasks {
    /// Adds a task, unless too much memory is in use.
    pub(in crate::sqlite) fn insert(&mut self, task: WaitingTask) {
        self.store(task.task.id.0, CachedTask::Other(Box::new(task)));
    }

    /// Adds a task with defaults only, unless too much memory is in use.
    pub(in crate::sqlite) fn insert_plain(&mut self, id: i64, task: PlainTask) {
        self.store(id, CachedTask::Plain(task));
    }

    /// Adds a task of either form.
    fn store(&mut self, id: i64, task: CachedTask) {
        let bytes = self.bytes + task.bytes();
        if bytes <= MAX_BYTES {
            self.bytes = bytes;
            self.tasks.insert(id, task);
        }
    }

    /// Returns true if a task's row is known.
    pub(in crate::sqlite) fn has(&self, task: i64) -> bool {
        self.tasks.contains_key(&task)
    }

    /// Returns the cached row of a task that is not plain.
    pub(in crate::sqlite) fn get(&self, task: i64) -> Option<&LiveTask> {
        match self.tasks.get(&task)? {
            CachedTask::Plain(_) => None,
            CachedTask::Other(task) => Some(&task.task),
        }
    }

    /// Returns the cached row of a task, to be changed as its row is. The task is then no longer
    /// plain.
    pub(in crate::sqlite) fn get_mut(&mut self, task: i64) -> Option<&mut LiveTask> {
        if let Some(CachedTask::Plain(_)) = self.tasks.get(&task)
            && let Some(plain) = self.take(task)
        {
            self.insert(plain);
        }
        match self.tasks.get_mut(&task)? {
            CachedTask::Plain(_) => None,
            CachedTask::Other(task) => Some(&mut task.task),
        }
    }

    /// Takes a task that is claimed.
    pub(in crate::sqlite) fn take(&mut self, task: i64) -> Option<WaitingTask> {
        let cached = self.tasks.remove(&task)?;
        self.bytes -= cached.bytes();
        Some(cached.into_task(task))
    }

    /// Forgets a task.
    pub(in crate::sqlite) fn forget(&mut self, task: i64) {
        if let Some(cached) = self.tasks.remove(&task) {
            self.bytes -= cached.bytes();
        }
    }

    /// Forgets all tasks.
    pub(in crate::sqlite) fn clear(&mut self) {
        *self = Self::default();
    }
}
