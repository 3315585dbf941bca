//! The virtual times of groups in their queues, which exist while groups have weights or minimums.
//! Fair-share tags follow from them.
//!
//! The times in use are cached between transactions. A transaction writes each changed time once.

use rusqlite::{OptionalExtension, params};
use rustc_hash::FxHashMap;

use crate::api::error::Result;
use crate::rules::share::VirtualTime;
use crate::sqlite::commit::connection::Database;

/// The group number of the tasks without a group.
const NO_GROUP: i64 = 0;

/// The group number that stands for the queue itself.
pub(in crate::sqlite) const QUEUE: i64 = -1;

/// The number of virtual times that are cached between transactions.
const MAX_TIMES: usize = 65_536;

/// A queue and a group in it, by number.
type GroupOfQueue = (i64, i64);

/// The cached state of shared queues.
#[derive(Debug, Default)]
pub(in crate::sqlite) struct FairShares {
    /// True if groups have weights or minimums. If not, no virtual time exists.
    are_shared: bool,
    /// The virtual times that were needed so far.
    times: FxHashMap<GroupOfQueue, VirtualTime>,
    /// The times that this transaction must write.
    unsaved: Vec<GroupOfQueue>,
}

impl FairShares {
    /// Creates an empty cache.
    pub(in crate::sqlite) fn new(are_shared: bool) -> Self {
        Self { are_shared, ..Self::default() }
    }

    /// Returns true if any group has a weight or a minimum.
    pub(in crate::sqlite) fn are_shared(&self) -> bool {
        self.are_shared
    }

    /// Records if any group has a weight or a minimum. Returns true if the last one lost it just
    /// now; all virtual times are then deleted.
    pub(in crate::sqlite) fn set(&mut self, connection: &Database<'_>, are_shared: bool) -> Result<bool> {
        let ends = self.are_shared && !are_shared;
        self.are_shared = are_shared;
        if ends {
            self.times.clear();
            self.unsaved.clear();
            connection.prepare_cached("DELETE FROM fair_share")?.execute([])?;
        }
        Ok(ends)
    }

    /// Returns the virtual time of a group in a queue; `None` stands for the tasks without a group.
    pub(in crate::sqlite) fn tags(
        &mut self,
        connection: &Database<'_>,
        queue: i64,
        group: Option<i64>,
    ) -> Result<VirtualTime> {
        self.time(connection, (queue, group.unwrap_or(NO_GROUP)))
    }

    /// Returns the virtual time of a queue.
    pub(in crate::sqlite) fn now(&mut self, connection: &Database<'_>, queue: i64) -> Result<VirtualTime> {
        self.time(connection, (queue, QUEUE))
    }

    /// Returns a virtual time, from the cache or the table.
    fn time(&mut self, connection: &Database<'_>, key: GroupOfQueue) -> Result<VirtualTime> {
        if let Some(time) = self.times.get(&key) {
            return Ok(*time);
        }
        let time = connection
            .prepare_cached("SELECT guaranteed, shared FROM fair_share WHERE queue = ? AND task_group = ?")?
            .query_row([key.0, key.1], |row| Ok(VirtualTime { guaranteed: row.get(0)?, shared: row.get(1)? }))
            .optional()?
            .unwrap_or_default();
        self.times.insert(key, time);
        Ok(time)
    }

    /// Stores the virtual times of a queue and of a group in it.
    pub(in crate::sqlite) fn keep(&mut self, queue: i64, group: Option<i64>, now: VirtualTime, tags: VirtualTime) {
        for (key, time) in [((queue, QUEUE), now), ((queue, group.unwrap_or(NO_GROUP)), tags)] {
            self.times.insert(key, time);
            self.unsaved.push(key);
        }
    }

    /// Deletes the virtual times of a queue.
    pub(in crate::sqlite) fn forget_queue(&mut self, connection: &Database<'_>, queue: i64) -> Result<()> {
        if !self.are_shared {
            return Ok(());
        }
        self.save(connection)?;
        self.times.retain(|key, _| key.0 != queue);
        connection.prepare_cached("DELETE FROM fair_share WHERE queue = ?")?.execute([queue])?;
        Ok(())
    }

    /// Writes the changed times.
    pub(in crate::sqlite) fn save(&mut self, connection: &Database<'_>) -> Result<()> {
        if self.unsaved.is_empty() {
            return Ok(());
        }
        self.unsaved.sort_unstable();
        self.unsaved.dedup();
        let mut statement = connection.prepare_cached(include_str!("../sql/limits/put_fair_share.sql"))?;
        for key in self.unsaved.drain(..) {
            let time = self.times.get(&key).copied().unwrap_or_default();
            statement.execute(params![key.0, key.1, time.guaranteed, time.shared])?;
        }
        if self.times.len() > MAX_TIMES {
            self.times.clear();
        }
        Ok(())
    }
}
