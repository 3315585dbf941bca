//! The sizes of queues: how many tasks of each queue are in the index tables, and how many are
//! blocked. They are updated as tasks enter and leave, so no read has to count.
//!
//! Tasks in the writer's memory are counted there and not here. So a task that never touches an
//! index table costs nothing. A commit that changes the tables writes one row for each queue
//! concerned.

use std::collections::BTreeMap;

use rusqlite::params;
use rustc_hash::FxHashMap;

use crate::api::error::Result;
use crate::sqlite::commit::connection::Database;
use crate::sqlite::commit::names::Names;

/// The changes of the numbers of tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Sizes {
    /// Waiting tasks in the tables.
    pub(in crate::sqlite) waiting: i64,
    /// Scheduled tasks in the tables.
    pub(in crate::sqlite) scheduled: i64,
    /// Blocked tasks, which are counted here wherever they are.
    pub(in crate::sqlite) blocked: i64,
}

impl Sizes {
    /// Adds changes.
    fn add(&mut self, other: Self) {
        self.waiting += other.waiting;
        self.scheduled += other.scheduled;
        self.blocked += other.blocked;
    }
}

/// The changes of one transaction, by list.
#[derive(Debug, Default)]
pub(super) struct SizeChanges {
    /// The changes so far.
    by_list: FxHashMap<i64, Sizes>,
}

impl SizeChanges {
    /// Counts waiting tasks that entered or left the tables.
    pub(in crate::sqlite) fn waiting(&mut self, list: i64, change: i64) {
        self.by_list.entry(list).or_default().waiting += change;
    }

    /// Counts scheduled tasks that entered or left the tables.
    pub(in crate::sqlite) fn scheduled(&mut self, list: i64, change: i64) {
        self.by_list.entry(list).or_default().scheduled += change;
    }

    /// Counts tasks that became blocked or ceased to be.
    pub(in crate::sqlite) fn blocked(&mut self, list: i64, change: i64) {
        self.by_list.entry(list).or_default().blocked += change;
    }

    /// Writes the changes, one row for each queue.
    pub(in crate::sqlite) fn save(&mut self, connection: &Database<'_>, names: &Names) -> Result<()> {
        if self.by_list.is_empty() {
            return Ok(());
        }
        let mut by_queue = BTreeMap::<i64, Sizes>::new();
        for (list, change) in self.by_list.drain() {
            if let Some(list) = names.sub_queue(list) {
                by_queue.entry(list.queue).or_default().add(change);
            }
        }
        let mut statement = connection.prepare_cached(include_str!("../sql/ready/add_queue_sizes.sql"))?;
        for (queue, change) in by_queue.into_iter().filter(|(_, change)| *change != Sizes::default()) {
            statement.execute(params![queue, change.waiting, change.scheduled, change.blocked])?;
        }
        Ok(())
    }
}
