//! Tasks that this process has submitted and that wait to be claimed: so that claiming them needs
//! no look at their rows.

use bytes::Bytes;

use crate::api::task::{Priority, TaskId};
use crate::api::timestamp::Timestamp;
use crate::number_map::NumberMap;
use crate::sqlite::commit::transaction::LiveTask;
use crate::sqlite::ready::index::Entry;

/// How many bytes are kept at the most; of tasks beyond that the rows are read.
const KEPT_BYTES: usize = 48 * 1024 * 1024;

/// What a plain task without a payload takes up, about: its place in the map, and what comes with
/// an allocation.
const PLAIN_BYTES: usize = 2 * size_of::<(i64, Kept)>() + 32;

/// What any other takes up without its payload, about.
const TASK_BYTES: usize = PLAIN_BYTES + size_of::<FreshTask>() + size_of::<LiveTask>();

/// A waiting task that has not been claimed before.
#[derive(Debug)]
pub(in crate::sqlite) struct FreshTask {
    pub(in crate::sqlite) task: Box<LiveTask>,
    pub(in crate::sqlite) submitted_at: Timestamp,
    pub(in crate::sqlite) payload: Bytes,
}

/// One of which nothing was asked but to run now, as of most.
#[derive(Debug)]
pub(in crate::sqlite) struct PlainTask {
    pub(in crate::sqlite) sub_queue: i64,
    pub(in crate::sqlite) submitted_at: Timestamp,
    pub(in crate::sqlite) payload: Bytes,
    pub(in crate::sqlite) priority: Priority,
}

impl PlainTask {
    fn into_fresh(self, id: i64) -> FreshTask {
        let entry = Entry::plain(TaskId(id), self.sub_queue, self.priority, self.submitted_at);
        FreshTask { task: Box::new(LiveTask::new(&entry)), submitted_at: self.submitted_at, payload: self.payload }
    }
}

/// A hundred thousand tasks may wait, and all that is kept of one has left the processor's caches
/// when its turn comes: so it is little.
#[derive(Debug)]
enum Kept {
    Plain(PlainTask),
    Other(Box<FreshTask>),
}

impl Kept {
    fn bytes(&self) -> usize {
        match self {
            Self::Plain(plain) => PLAIN_BYTES + plain.payload.len(),
            Self::Other(fresh) => TASK_BYTES + fresh.payload.len(),
        }
    }

    fn into_fresh(self, id: i64) -> FreshTask {
        match self {
            Self::Plain(plain) => plain.into_fresh(id),
            Self::Other(fresh) => *fresh,
        }
    }
}

/// A memory of rows, never the truth. It belongs to the index, which forgets a task here when it
/// leaves its list, be that in memory or in the table: whatever changes a waiting task takes it out
/// of its list first.
#[derive(Debug, Default)]
pub(in crate::sqlite) struct FreshTasks {
    tasks: NumberMap<i64, Kept>,
    bytes: usize,
}

impl FreshTasks {
    pub(in crate::sqlite) fn insert(&mut self, task: FreshTask) {
        self.keep(task.task.id.0, Kept::Other(Box::new(task)));
    }

    pub(in crate::sqlite) fn insert_plain(&mut self, id: i64, task: PlainTask) {
        self.keep(id, Kept::Plain(task));
    }

    fn keep(&mut self, id: i64, task: Kept) {
        let bytes = self.bytes + task.bytes();
        if bytes <= KEPT_BYTES {
            self.bytes = bytes;
            self.tasks.insert(id, task);
        }
    }

    pub(in crate::sqlite) fn has(&self, task: i64) -> bool {
        self.tasks.contains_key(&task)
    }

    /// What is known of a task that is not plain.
    pub(in crate::sqlite) fn get(&self, task: i64) -> Option<&LiveTask> {
        match self.tasks.get(&task)? {
            Kept::Plain(_) => None,
            Kept::Other(fresh) => Some(&fresh.task),
        }
    }

    /// What is known of a task, to be changed as its row is. It is then no longer plain.
    pub(in crate::sqlite) fn get_mut(&mut self, task: i64) -> Option<&mut LiveTask> {
        if let Some(Kept::Plain(_)) = self.tasks.get(&task)
            && let Some(plain) = self.take(task)
        {
            self.insert(plain);
        }
        match self.tasks.get_mut(&task)? {
            Kept::Plain(_) => None,
            Kept::Other(fresh) => Some(&mut fresh.task),
        }
    }

    pub(in crate::sqlite) fn take(&mut self, task: i64) -> Option<FreshTask> {
        let kept = self.tasks.remove(&task)?;
        self.bytes -= kept.bytes();
        Some(kept.into_fresh(task))
    }

    pub(in crate::sqlite) fn forget(&mut self, task: i64) {
        if let Some(kept) = self.tasks.remove(&task) {
            self.bytes -= kept.bytes();
        }
    }

    pub(in crate::sqlite) fn clear(&mut self) {
        *self = Self::default();
    }
}
