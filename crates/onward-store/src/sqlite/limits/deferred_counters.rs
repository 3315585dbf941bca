//! Deferred counters: the running tasks and taken tokens of limited groups, while they are only in
//! memory.
//!
//! A process that is alone on a file would write the counters of some hundred groups with each
//! commit, although no other process reads them. Instead it writes them from time to time, and
//! before another process reads them. A crash loses nothing: running tasks are counted by the
//! leases, and the tokens are taken again by the log, from the row that `meta` names. A process
//! that loads the limits of such a file recomputes both.

use std::time::Duration;

use rusqlite::params;
use rustc_hash::FxHashMap;

use crate::api::error::Result;
use crate::api::event::Change;
use crate::sqlite::columns::durations::nanoseconds;
use crate::sqlite::commit::connection::Database;
use crate::sqlite::commit::names::Names;
use crate::sqlite::commit::transition_log;
use crate::sqlite::limits::limit_usage::Limits;

/// The number of log rows after which counters are written. A crash makes the next process read as
/// many.
const MAX_DEFERRED_ROWS: i64 = 1024;

/// The drift allowed between steady time and wall time, in microseconds. The log has wall times,
/// and token buckets use steady time.
const DRIFT: i64 = 1000;

/// The name in `meta` of [`DeferredSince::entry`].
const ENTRY: &str = "deferred_counters_since";
/// The name in `meta` of the difference between wall and steady time.
const OFFSET: &str = "deferred_counters_offset";

/// The two times at one moment, in microseconds.
#[derive(Debug, Clone, Copy)]
pub(in crate::sqlite) struct ClockReading {
    /// The wall time.
    pub(in crate::sqlite) wall: i64,
    /// The steady time, by which token buckets fill.
    pub(in crate::sqlite) steady: i64,
}

impl ClockReading {
    /// Returns the difference between the two times.
    fn offset(self) -> i64 {
        self.wall.saturating_sub(self.steady)
    }
}

/// A choice: write the counters of groups now, or defer them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::sqlite) enum CounterSaving {
    /// Other processes read the counters, or this transaction reads them again.
    Now,
    /// This process is alone.
    Deferred,
}

/// The counters that are not in the tables.
#[derive(Debug, Default)]
pub(super) struct DeferredCounters {
    /// Groups whose whole state is to be written with this transaction.
    changed: Vec<i64>,
    /// Groups whose counts may be deferred.
    counted: Vec<i64>,
    /// The log row since which counters are deferred; `None` if the tables are current.
    since: Option<DeferredSince>,
}

/// The point from which on the tables may lack counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct DeferredSince {
    /// The first row of the log.
    entry: i64,
    /// The difference between wall time and steady time.
    offset: i64,
}

impl DeferredSince {
    /// Reads the beginning of a deferral.
    fn read(connection: &Database<'_>) -> Result<Option<Self>> {
        let value = |name: &str| -> Result<i64> {
            Ok(connection
                .prepare_cached("SELECT value FROM meta WHERE name = ?")?
                .query_row([name], |row| row.get(0))?)
        };
        Ok(match value(ENTRY)? {
            0 => None,
            entry => Some(Self { entry, offset: value(OFFSET)? }),
        })
    }

    /// Writes the beginning of a deferral, or that the tables are current.
    fn write(since: Option<Self>, connection: &Database<'_>) -> Result<()> {
        let mut statement = connection.prepare_cached("UPDATE meta SET value = ? WHERE name = ?")?;
        statement.execute(params![since.map_or(0, |since| since.entry), ENTRY])?;
        if let Some(since) = since {
            statement.execute(params![since.offset, OFFSET])?;
        }
        Ok(())
    }
}

/// Returns the number of running tasks of each group. Its cost is proportional to all running
/// tasks.
pub(in crate::sqlite) fn leases_of_groups(connection: &Database<'_>) -> Result<FxHashMap<i64, i64>> {
    let mut statement = connection.prepare_cached(include_str!("../sql/limits/count_leases_of_groups.sql"))?;
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

impl Limits {
    /// Records that this transaction must write a group's state.
    pub(in crate::sqlite) fn mark_group_changed(&mut self, group: i64) {
        if let Some(state) = self.groups.get_mut(&group)
            && !std::mem::replace(&mut state.is_changed, true)
        {
            self.deferred.changed.push(group);
        }
    }

    /// Records that a group's counters must be written.
    pub(super) fn mark_group_counted(&mut self, group: i64) {
        if let Some(state) = self.groups.get_mut(&group)
            && !std::mem::replace(&mut state.is_counted, true)
        {
            self.deferred.counted.push(group);
        }
    }

    /// Returns true if the tables lack counters.
    pub(in crate::sqlite) fn has_deferred_counters(&self) -> bool {
        self.deferred.since.is_some()
    }

    /// Recomputes the counters that the tables lack. It writes nothing; the next save does.
    pub(in crate::sqlite) fn recompute_counters(
        &mut self,
        connection: &Database<'_>,
        names: &Names,
        now: ClockReading,
    ) -> Result<()> {
        let Some(since) = DeferredSince::read(connection)? else { return Ok(()) };
        self.deferred.since = Some(since);
        self.recompute_running(connection)?;
        self.recompute_tokens(connection, names, since, now)
    }

    /// Counts the running tasks of limited groups by the leases.
    fn recompute_running(&mut self, connection: &Database<'_>) -> Result<()> {
        let running = leases_of_groups(connection)?;
        let mut statement = connection.prepare_cached("SELECT id FROM task_group WHERE running <> 0")?;
        let had = statement.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<Vec<i64>>>()?;
        for group in had.into_iter().chain(running.keys().copied()) {
            let usage = &mut self.group(connection, group)?.usage;
            if !usage.limit.is_none() {
                usage.running = running.get(&group).copied().unwrap_or(0);
                self.mark_group_counted(group);
            }
        }
        Ok(())
    }

    /// Takes the tokens again that the log shows since the deferral began.
    fn recompute_tokens(
        &mut self,
        connection: &Database<'_>,
        names: &Names,
        since: DeferredSince,
        now: ClockReading,
    ) -> Result<()> {
        let mut statement = connection.prepare_cached("SELECT id, at, changes FROM log WHERE id >= ? ORDER BY id")?;
        let mut rows = statement.query([since.entry])?;
        while let Some(row) = rows.next()? {
            let (entry, at, changes): (i64, i64, Vec<u8>) = (row.get(0)?, row.get(1)?, row.get(2)?);
            let at = at.saturating_sub(since.offset).clamp(0, now.steady.max(0));
            for change in transition_log::decode(&changes)? {
                if let Change::Started { .. } = change.change
                    && let Some(group) = names.group_of(change.sub_queue)
                {
                    self.replay_token(connection, group, entry, Duration::from_micros(at.unsigned_abs()))?;
                }
            }
        }
        Ok(())
    }

    /// Takes a token again, unless the saved state of the group includes it.
    fn replay_token(&mut self, connection: &Database<'_>, group: i64, entry: i64, at: Duration) -> Result<()> {
        let state = self.group(connection, group)?;
        if state.saved_in < entry
            && let Some(rate) = state.usage.limit.rate
        {
            state.usage.bucket = state.usage.bucket.take(rate, 1, at);
            self.mark_group_counted(group);
        }
        Ok(())
    }

    /// Writes the pending states of groups. `entry` is the last log row that they include.
    pub(in crate::sqlite) fn save_groups(
        &mut self,
        connection: &Database<'_>,
        (entry, now): (i64, ClockReading),
        counts: CounterSaving,
    ) -> Result<()> {
        let offset = now.offset();
        let is_over =
            |since: DeferredSince| entry - since.entry >= MAX_DEFERRED_ROWS || (offset - since.offset).abs() > DRIFT;
        if counts == CounterSaving::Now || self.deferred.since.is_some_and(is_over) || self.has_many_groups() {
            self.deferred.changed.append(&mut self.deferred.counted);
        }
        self.write_groups(connection, entry)?;
        let is_deferred = !self.deferred.counted.is_empty();
        let since = is_deferred.then(|| self.deferred.since.unwrap_or(DeferredSince { entry, offset }));
        if since != self.deferred.since {
            DeferredSince::write(since, connection)?;
            self.deferred.since = since;
        }
        self.forget_many_groups();
        Ok(())
    }

    /// Writes the groups that changed. `entry` is the last log row that their state includes.
    fn write_groups(&mut self, connection: &Database<'_>, entry: i64) -> Result<()> {
        if self.deferred.changed.is_empty() {
            return Ok(());
        }
        let mut statement = connection.prepare_cached(include_str!("../sql/limits/save_group.sql"))?;
        for group in self.deferred.changed.drain(..) {
            let Some(state) = self.groups.get_mut(&group).filter(|state| state.is_changed || state.is_counted) else {
                continue;
            };
            let (running, full_at) = (state.usage.running, nanoseconds(state.usage.bucket.full_at));
            statement.execute(params![
                running,
                full_at,
                state.blocked,
                state.token_at,
                state.is_below_minimum,
                entry,
                group
            ])?;
            (state.is_changed, state.is_counted, state.saved_in) = (false, false, entry);
        }
        let groups = &self.groups;
        self.deferred.counted.retain(|group| groups.get(group).is_some_and(|state| state.is_counted));
        Ok(())
    }
}
