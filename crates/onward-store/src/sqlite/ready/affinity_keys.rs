//! Affinity keys, and the session that each prefers.
//!
//! The table `affinity` has a row for each key: its name, its preferred session and the time of its
//! last start. The table `affinity_list` has the ready lists of the keys, and the session for which
//! each list is reserved. Neither is read while no task has an affinity key.

use std::collections::BTreeSet;
use std::time::Duration;

use rusqlite::{OptionalExtension, params};

use crate::api::error::{Error, Result};
use crate::api::name::Name;
use crate::api::outcome::Outcome;
use crate::api::task::SessionId;
use crate::api::timestamp::Timestamp;
use crate::bounds;
use crate::rules::affinity::must_store_start;
use crate::sqlite::columns::durations::microseconds;
use crate::sqlite::columns::meta::{exists, meta};
use crate::sqlite::commit::cache::Cache;
use crate::sqlite::commit::connection::Database;
use crate::sqlite::commit::names::AFFINITY_SHIFT;
use crate::sqlite::commit::transaction::{Transaction, VerbResult};

/// The highest number of an affinity key. A list number has 62 bits, of which the sub-queue needs
/// the lowest 34; one value is reserved.
const LAST_NUMBER: i64 = (1 << (62 - AFFINITY_SHIFT)) - 1;

/// The cached state of affinity keys.
#[derive(Debug, Default)]
pub(in crate::sqlite) struct AffinityKeys {
    /// True if there are affinity keys. If not, neither table is read.
    any: bool,
    /// Affinity keys whose lists must be checked again: they may have to be reserved for another
    /// session.
    pub(in crate::sqlite) changed: BTreeSet<i64>,
    /// The time at which the next reservation ends: `None` if it must be read, `Some(None)` if no
    /// list is reserved.
    pub(in crate::sqlite) next_release: Option<Option<i64>>,
    /// The earliest time at which the preferred session of an affinity key may be dropped.
    next_forgotten: i64,
    /// The time at which reservations were last checked; `None` before the first check.
    pub(in crate::sqlite) looked_at: Option<i64>,
    /// The latest time at which any process ended a reservation.
    pub(super) released_at: i64,
}

impl AffinityKeys {
    /// Reads the state.
    pub(in crate::sqlite) fn load(connection: &Database<'_>, looked_at: Option<i64>) -> Result<Self> {
        let any = exists(connection, "SELECT EXISTS (SELECT 1 FROM affinity)")?;
        let released_at = if any { meta(connection, "reservations_released_at")? } else { i64::MIN };
        Ok(Self { any, looked_at, released_at, next_forgotten: i64::MIN, ..Self::default() })
    }

    /// Returns true if there may be any affinity key.
    pub(in crate::sqlite) fn any(&self) -> bool {
        self.any
    }
}

/// Returns the number of an affinity key, if the key is in the table.
pub(super) fn number_of(connection: &Database<'_>, name: &Name) -> Result<Option<i64>> {
    let mut statement = connection.prepare_cached("SELECT id FROM affinity WHERE name = ?")?;
    Ok(statement.query_row([name.as_str()], |row| row.get(0)).optional()?)
}

/// Returns the session that an affinity key prefers.
pub(super) fn preferred(connection: &Database<'_>, affinity_key: i64) -> Result<Option<i64>> {
    let mut statement = connection.prepare_cached("SELECT session FROM affinity WHERE id = ?")?;
    Ok(statement.query_row([affinity_key], |row| row.get(0)).optional()?.flatten())
}

/// Returns the sessions that the keys of ready lists prefer, by number: the first
/// [`bounds::CONTENDING_SESSIONS`].
pub(in crate::sqlite) fn preferred_sessions(connection: &Database<'_>, cache: &Cache) -> Result<Vec<SessionId>> {
    if !cache.affinity.any() {
        return Ok(Vec::new());
    }
    let mut statement = connection.prepare_cached(
        "SELECT DISTINCT a.session FROM affinity_list l JOIN affinity a ON a.id = l.list >> ?
         WHERE a.session IS NOT NULL ORDER BY 1 LIMIT ?",
    )?;
    let most = bounds::CONTENDING_SESSIONS.cast_signed();
    let sessions = statement.query_map(params![AFFINITY_SHIFT, most], |row| row.get(0).map(SessionId))?;
    Ok(sessions.collect::<rusqlite::Result<_>>()?)
}

impl Transaction<'_> {
    /// Returns the number of an affinity key, and adds the key if it is missing.
    pub(super) fn ensure_affinity_key(&mut self, name: &Name) -> Result<i64> {
        if let Some(number) = number_of(self.connection, name)? {
            return Ok(number);
        }
        let number = self.free_number()?;
        self.connection
            .prepare_cached("INSERT INTO affinity (id, name) VALUES (?, ?)")?
            .execute(params![number, name.as_str()])?;
        self.cache.affinity.any = true;
        Ok(number)
    }

    /// Returns a number for a new affinity key: the next one, or an unused one once the range is
    /// used up.
    fn free_number(&self) -> Result<i64> {
        let behind_last: i64 = self
            .connection
            .prepare_cached("SELECT coalesce(max(id), 0) + 1 FROM affinity")?
            .query_row([], |row| row.get(0))?;
        if behind_last <= LAST_NUMBER {
            return Ok(behind_last);
        }
        let gap: i64 = self
            .connection
            .prepare_cached(include_str!("../sql/ready/free_affinity_key.sql"))?
            .query_row([], |row| row.get(0))?;
        if gap <= LAST_NUMBER {
            return Ok(gap);
        }
        Err(Error::invalid(format!(
            "tasks of {LAST_NUMBER} affinity keys wait, and no more can; let tasks share an affinity key"
        )))
    }

    /// Records that a session starts a task of an affinity key.
    pub(in crate::sqlite) fn prefer(&mut self, affinity_key: i64, session: SessionId) -> Result<()> {
        let (now, session) = (self.now, session.0);
        let mut statement = self.connection.prepare_cached("SELECT session, used_at FROM affinity WHERE id = ?")?;
        let known: (Option<i64>, Option<i64>) =
            statement.query_row([affinity_key], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let is_noted = matches!(known, (Some(before), Some(at))
            if before == session && !must_store_start(Timestamp::from_microseconds(at), now));
        if !is_noted {
            let now = now.as_microseconds();
            self.connection
                .prepare_cached("UPDATE affinity SET session = ?, used_at = ? WHERE id = ?")?
                .execute(params![session, now, affinity_key])?;
            let forgotten = now.saturating_add(microseconds(bounds::AFFINITY_KEPT));
            self.cache.affinity.next_forgotten = self.cache.affinity.next_forgotten.min(forgotten);
        }
        Ok(())
    }

    /// Removes the preference of all affinity keys for a session that is about to close.
    pub(in crate::sqlite) fn retire(&mut self, session: SessionId) -> VerbResult<Outcome> {
        self.check_session(session)?;
        self.prefer_no_longer(session.0)?;
        Ok(Outcome::Done)
    }

    /// Removes the preference of all affinity keys for a session.
    pub(in crate::sqlite) fn prefer_no_longer(&mut self, session: i64) -> Result<()> {
        if !self.cache.affinity.any {
            return Ok(());
        }
        let mut statement = self.connection.prepare_cached("SELECT id FROM affinity WHERE session = ?")?;
        let affinity_key = statement.query_map([session], |row| row.get(0))?.collect::<rusqlite::Result<Vec<i64>>>()?;
        if affinity_key.is_empty() {
            return Ok(());
        }
        self.connection.prepare_cached("UPDATE affinity SET session = NULL WHERE session = ?")?.execute([session])?;
        self.cache.affinity.changed.extend(affinity_key);
        self.hint.work += 1;
        Ok(())
    }

    /// Removes the preference of affinity keys without a start within [`bounds::AFFINITY_KEPT`].
    pub(in crate::sqlite) fn forget_unused_affinity_keys(&mut self) -> Result<()> {
        let now = self.now.as_microseconds();
        if !self.cache.affinity.any || now < self.cache.affinity.next_forgotten {
            return Ok(());
        }
        let kept = microseconds(bounds::AFFINITY_KEPT);
        let mut statement = self.connection.prepare_cached(include_str!("../sql/ready/unused_affinity_keys.sql"))?;
        let unused = params![now.saturating_sub(kept), bounds::SWEEP.cast_signed()];
        for affinity_key in
            statement.query_map(unused, |row| row.get::<_, i64>(0))?.collect::<rusqlite::Result<Vec<_>>>()?
        {
            self.connection
                .prepare_cached("UPDATE affinity SET session = NULL WHERE id = ?")?
                .execute([affinity_key])?;
            self.cache.affinity.changed.insert(affinity_key);
        }
        let oldest: Option<i64> = self
            .connection
            .prepare_cached("SELECT min(used_at) FROM affinity WHERE session IS NOT NULL")?
            .query_row([], |row| row.get(0))?;
        self.cache.affinity.next_forgotten = oldest.map_or(i64::MAX, |oldest| oldest.saturating_add(kept));
        Ok(())
    }

    /// Returns the time until the next reservation of a list ends.
    pub(in crate::sqlite) fn next_release(&mut self) -> Result<Option<Duration>> {
        let now = self.now.as_microseconds();
        let next = self.next_release_at()?;
        Ok(next.map(|at| Duration::from_micros(u64::try_from(at.saturating_sub(now)).unwrap_or(0))))
    }

    /// Returns the time at which the next reservation ends, read once and cached.
    pub(super) fn next_release_at(&mut self) -> Result<Option<i64>> {
        if !self.cache.affinity.any {
            return Ok(None);
        }
        if let Some(known) = self.cache.affinity.next_release {
            return Ok(known);
        }
        let sql = "SELECT min(until) FROM affinity_list WHERE until IS NOT NULL";
        let next = self.connection.prepare_cached(sql)?.query_row([], |row| row.get(0))?;
        self.cache.affinity.next_release = Some(next);
        Ok(next)
    }
}
