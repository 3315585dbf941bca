//! Cached rows of waiting tasks that this process has submitted, so that their claims need not read
//! them.

use bytes::Bytes;

use crate::api::task::{Priority, TaskId};
use crate::api::timestamp::Timestamp;
use crate::number_map::NumberMap;
use crate::sqlite::commit::transaction::LiveTask;
use crate::sqlite::ready::index::Entry;

/// The most bytes that are cached. Rows of further tasks are read.
const MAX_BYTES: usize = 48 * 1024 * 1024;

/// The approximate size of a plain task without its payload: its entry in the map, and the overhead
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

/// A task without options that was due at its submission, as most tasks are.
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
    /// Returns the whole row, with defaults in all other columns.
    fn into_task(self, id: i64) -> WaitingTask {
        let entry = Entry::plain(TaskId(id), self.sub_queue, self.priority, self.submitted_at);
        WaitingTask { task: Box::new(LiveTask::new(&entry)), submitted_at: self.submitted_at, payload: self.payload }
    }
}

/// A cached task. It is small, because a hundred thousand may be cached, and each has left the
/// processor's caches when it is claimed.
#[derive(Debug)]
enum CachedTask {
    /// A task without options.
    Plain(PlainTask),
    /// Any other task.
    Other(Box<WaitingTask>),
}

impl CachedTask {
    /// Returns the approximate memory of the task, in bytes.
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

/// A cache of rows. It belongs to the index, which drops a row when its task leaves its list. A
/// change of a waiting task removes it from its list first, so a cached row is current.
#[derive(Debug, Default)]
pub(in crate::sqlite) struct WaitingTasks {
    /// The tasks by number.
    tasks: NumberMap<i64, CachedTask>,
    /// The approximate memory of the tasks, in bytes.
    bytes: usize,
}

impl WaitingTasks {
    /// Adds a task, unless the cache is full.
    pub(in crate::sqlite) fn insert(&mut self, task: WaitingTask) {
        self.store(task.task.id.0, CachedTask::Other(Box::new(task)));
    }

    /// Adds a task without options, unless the cache is full.
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

    /// Returns true if a task's row is cached.
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

    /// Returns the cached row of a task, for a change that is also made in the table. The task is
    /// then no longer plain.
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

    /// Removes and returns the row of a task that is claimed.
    pub(in crate::sqlite) fn take(&mut self, task: i64) -> Option<WaitingTask> {
        let cached = self.tasks.remove(&task)?;
        self.bytes -= cached.bytes();
        Some(cached.into_task(task))
    }

    /// Drops the row of a task.
    pub(in crate::sqlite) fn forget(&mut self, task: i64) {
        if let Some(cached) = self.tasks.remove(&task) {
            self.bytes -= cached.bytes();
        }
    }

    /// Drops all rows.
    pub(in crate::sqlite) fn clear(&mut self) {
        *self = Self::default();
    }
}
