//! The pauses in force. They are cached, because every claim needs them.

use std::collections::BTreeMap;

use rusqlite::params;

use crate::api::error::Result;
use crate::api::name::Name;
use crate::api::store::{PauseRecord, pause_holds};
use crate::api::timestamp::Timestamp;
use crate::api::write::Scope;
use crate::sqlite::commit::connection::Database;

/// The pauses by scope, each with its end if it has one.
#[derive(Debug, Default)]
pub(in crate::sqlite) struct Pauses(BTreeMap<Scope, Option<Timestamp>>);

impl Pauses {
    /// Reads the pauses.
    pub(in crate::sqlite) fn load(connection: &Database<'_>) -> Result<Self> {
        let mut statement = connection.prepare_cached("SELECT scope, name, until FROM pause")?;
        let mut rows = statement.query([])?;
        let mut pauses = BTreeMap::new();
        while let Some(row) = rows.next()? {
            let name = || -> Result<Name> { Name::new(row.get_ref(1)?.as_str().map_err(rusqlite::Error::from)?) };
            let scope = match row.get::<_, i64>(0)? {
                0 => Scope::All,
                1 => Scope::Queue(name()?),
                2 => Scope::Kind(name()?),
                _ => Scope::Group(name()?),
            };
            pauses.insert(scope, row.get::<_, Option<i64>>(2)?.map(Timestamp::from_microseconds));
        }
        Ok(Self(pauses))
    }

    /// Returns the pauses in force at `now`.
    pub(in crate::sqlite) fn in_force(&self, now: Timestamp) -> Vec<PauseRecord> {
        self.records().into_iter().filter(|pause| pause.holds_at(now)).collect()
    }

    /// Returns all stored pauses, including expired ones that no sweep has removed.
    pub(in crate::sqlite) fn records(&self) -> Vec<PauseRecord> {
        self.0.iter().map(|(scope, until)| PauseRecord { scope: scope.clone(), until: *until }).collect()
    }

    /// Returns true if the store, the queue or the kind is paused. A claim sweeps first, so no
    /// expired pause counts.
    pub(in crate::sqlite) fn holds(&self, queue: &Name, kind: &Name) -> bool {
        !self.0.is_empty()
            && (self.0.contains_key(&Scope::All)
                || self.0.contains_key(&Scope::Queue(queue.clone()))
                || self.0.contains_key(&Scope::Kind(kind.clone())))
    }

    /// Returns true if a queue itself is paused at `now`.
    pub(in crate::sqlite) fn queue_is_paused(&self, queue: &Name, now: Timestamp) -> bool {
        self.0.get(&Scope::Queue(queue.clone())).is_some_and(|until| pause_holds(*until, now))
    }

    /// Returns true if nothing is paused.
    pub(in crate::sqlite) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns true if a group is paused.
    pub(in crate::sqlite) fn group_is_paused(&self, name: &Name) -> bool {
        !self.0.is_empty() && self.0.contains_key(&Scope::Group(name.clone()))
    }

    /// Begins a pause, or changes its end.
    pub(in crate::sqlite) fn set(
        &mut self,
        connection: &Database<'_>,
        scope: &Scope,
        until: Option<Timestamp>,
    ) -> Result<()> {
        let (number, name) = columns(scope);
        connection
            .prepare_cached("INSERT OR REPLACE INTO pause (scope, name, until) VALUES (?, ?, ?)")?
            .execute(params![number, name, until.map(Timestamp::as_microseconds)])?;
        self.0.insert(scope.clone(), until);
        Ok(())
    }

    /// Ends a pause. Returns true if there was one.
    pub(in crate::sqlite) fn clear(&mut self, connection: &Database<'_>, scope: &Scope) -> Result<bool> {
        if self.0.remove(scope).is_none() {
            return Ok(false);
        }
        let (number, name) = columns(scope);
        connection.prepare_cached("DELETE FROM pause WHERE scope = ? AND name = ?")?.execute(params![number, name])?;
        Ok(true)
    }

    /// Returns the scopes of the pauses whose end has passed.
    pub(in crate::sqlite) fn elapsed(&self, now: Timestamp) -> Vec<Scope> {
        self.0
            .iter()
            .filter(|(_, until)| until.is_some_and(|until| until <= now))
            .map(|(scope, _)| scope.clone())
            .collect()
    }

    /// Returns the time at which the next pause ends.
    pub(in crate::sqlite) fn next_end(&self) -> Option<Timestamp> {
        self.0.values().flatten().min().copied()
    }
}

/// Returns a scope's columns.
fn columns(scope: &Scope) -> (i64, &str) {
    match scope {
        Scope::All => (0, ""),
        Scope::Queue(name) => (1, name),
        Scope::Kind(name) => (2, name),
        Scope::Group(name) => (3, name),
    }
}
