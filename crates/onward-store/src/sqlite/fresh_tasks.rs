//! Tasks that this process has submitted and that wait to be claimed: so that claiming them needs no look at their rows.

use bytes::Bytes;

use crate::number_map::NumberMap;
use crate::sqlite::transaction::LiveTask;
use crate::timestamp::Timestamp;

/// How many bytes are kept at the most; of tasks beyond that the rows are read.
const KEPT_BYTES: usize = 32 * 1024 * 1024;

/// What a task without a payload takes up, about.
const TASK_BYTES: usize = 320;

/// A waiting task that has not been claimed before.
#[derive(Debug)]
pub(super) struct FreshTask {
    pub(super) task: Box<LiveTask>,
    pub(super) submitted_at: Timestamp,
    pub(super) payload: Bytes,
}

/// A memory of rows, never the truth. It belongs to the index, which forgets a task here when it leaves its line, be that in memory or
/// in the table: whatever changes a waiting task takes it out of its line first.
#[derive(Debug, Default)]
pub(super) struct FreshTasks {
    tasks: NumberMap<i64, FreshTask>,
    bytes: usize,
}

impl FreshTasks {
    pub(super) fn insert(&mut self, task: FreshTask) {
        let bytes = self.bytes + TASK_BYTES + task.payload.len();
        if bytes <= KEPT_BYTES {
            self.bytes = bytes;
            self.tasks.insert(task.task.id.0, task);
        }
    }

    pub(super) fn get(&self, task: i64) -> Option<&FreshTask> {
        self.tasks.get(&task)
    }

    pub(super) fn get_mut(&mut self, task: i64) -> Option<&mut FreshTask> {
        self.tasks.get_mut(&task)
    }

    pub(super) fn take(&mut self, task: i64) -> Option<FreshTask> {
        let fresh = self.tasks.remove(&task)?;
        self.bytes -= TASK_BYTES + fresh.payload.len();
        Some(fresh)
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}
