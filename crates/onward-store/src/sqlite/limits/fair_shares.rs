//! How far groups have come in the virtual time of their queues, while groups have weights or
//! minimums.
//!
//! Kept in memory as well between transactions, for those that were asked for; written once a
//! transaction.

use rusqlite::{OptionalExtension, params};
use rustc_hash::FxHashMap;

use crate::api::error::Result;
use crate::rules::share::VirtualTime;
use crate::sqlite::commit::connection::Database;

/// In the place of a group: the tasks without one.
const NO_GROUP: i64 = 0;

/// In the place of a group: the queue itself.
pub(in crate::sqlite) const QUEUE: i64 = -1;

/// How many virtual times are kept between transactions.
const KEPT: usize = 65_536;

/// A group of a queue, both by number.
type Member = (i64, i64);

/// What is known of how queues are shared.
#[derive(Debug, Default)]
pub(in crate::sqlite) struct Shares {
    are_shared: bool,
    times: FxHashMap<Member, VirtualTime>,
    unsaved: Vec<Member>,
}

impl Shares {
    pub(in crate::sqlite) fn new(are_shared: bool) -> Self {
        Self { are_shared, ..Self::default() }
    }

    /// Whether any group has a weight or a minimum.
    pub(in crate::sqlite) fn are_shared(&self) -> bool {
        self.are_shared
    }

    /// Notes whether any group has a weight or a minimum. What was started while one had is
    /// forgotten when none has; answers whether that is so now.
    pub(in crate::sqlite) fn set(&mut self, connection: &Database<'_>, are_shared: bool) -> Result<bool> {
        let ends = self.are_shared && !are_shared;
        self.are_shared = are_shared;
        if ends {
            self.times.clear();
            self.unsaved.clear();
            connection.prepare_cached("DELETE FROM share")?.execute([])?;
        }
        Ok(ends)
    }

    /// Where a group of a queue stands; none for the tasks without one.
    pub(in crate::sqlite) fn tags(
        &mut self,
        connection: &Database<'_>,
        queue: i64,
        group: Option<i64>,
    ) -> Result<VirtualTime> {
        self.time(connection, (queue, group.unwrap_or(NO_GROUP)))
    }

    /// Where a queue is.
    pub(in crate::sqlite) fn now(&mut self, connection: &Database<'_>, queue: i64) -> Result<VirtualTime> {
        self.time(connection, (queue, QUEUE))
    }

    fn time(&mut self, connection: &Database<'_>, member: Member) -> Result<VirtualTime> {
        if let Some(time) = self.times.get(&member) {
            return Ok(*time);
        }
        let time = connection
            .prepare_cached("SELECT guaranteed, shared FROM share WHERE queue = ? AND task_group = ?")?
            .query_row([member.0, member.1], |row| Ok(VirtualTime { guaranteed: row.get(0)?, shared: row.get(1)? }))
            .optional()?
            .unwrap_or_default();
        self.times.insert(member, time);
        Ok(time)
    }

    /// Keeps where a queue, and a group of it, are now.
    pub(in crate::sqlite) fn keep(&mut self, queue: i64, group: Option<i64>, now: VirtualTime, tags: VirtualTime) {
        for (member, time) in [((queue, QUEUE), now), ((queue, group.unwrap_or(NO_GROUP)), tags)] {
            self.times.insert(member, time);
            self.unsaved.push(member);
        }
    }

    /// Forgets what was started from a queue.
    pub(in crate::sqlite) fn forget_queue(&mut self, connection: &Database<'_>, queue: i64) -> Result<()> {
        if !self.are_shared {
            return Ok(());
        }
        self.save(connection)?;
        self.times.retain(|member, _| member.0 != queue);
        connection.prepare_cached("DELETE FROM share WHERE queue = ?")?.execute([queue])?;
        Ok(())
    }

    /// Writes what has changed.
    pub(in crate::sqlite) fn save(&mut self, connection: &Database<'_>) -> Result<()> {
        if self.unsaved.is_empty() {
            return Ok(());
        }
        self.unsaved.sort_unstable();
        self.unsaved.dedup();
        let mut statement = connection.prepare_cached(include_str!("../sql/limits/put_fair_share.sql"))?;
        for member in self.unsaved.drain(..) {
            let time = self.times.get(&member).copied().unwrap_or_default();
            statement.execute(params![member.0, member.1, time.guaranteed, time.shared])?;
        }
        if self.times.len() > KEPT {
            self.times.clear();
        }
        Ok(())
    }
}
