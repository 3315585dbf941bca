//! Limits and their usage. They are cached, because every claim needs them.
//!
//! A scope without a limit counts nothing. Counters are written once a transaction; those of groups
//! may be written [later](crate::sqlite::limits::deferred_counters). The states of groups are read
//! on demand, because groups may be very many.
//!
//! A claim asks [`room`](Usage::room) how many tasks may start, and counts each start in the same
//! transaction. Only one transaction writes at a time, so two claims never see the same room.

use std::collections::BTreeMap;
use std::time::Duration;

use rusqlite::{OptionalExtension, params};
use rustc_hash::FxHashMap;

use crate::api::error::{Error, Result};
use crate::api::limit::{Limit, LimitScope, Rate};
use crate::api::name::Name;
use crate::rules;
use crate::rules::limit::Bucket;
use crate::rules::share::{are_shared, is_below_minimum};
use crate::sqlite::columns::durations::{microseconds, nanoseconds};
use crate::sqlite::commit::connection::Database;
use crate::sqlite::limits::deferred_counters::DeferredCounters;
use crate::sqlite::limits::fair_shares::FairShares;

/// The number of groups whose states are cached between transactions.
const MAX_STATES: usize = 65_536;

/// A scope other than groups, by its number: the counterpart of a [`LimitScope`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(in crate::sqlite) enum ScopeNumber {
    /// The whole store.
    All,
    /// One queue.
    Queue(i64),
    /// One kind.
    Kind(i64),
}

/// The usage of a limit.
#[derive(Debug, Clone, Copy)]
pub(in crate::sqlite) struct Usage {
    /// The limit.
    pub(in crate::sqlite) limit: Limit,
    /// The number of running tasks.
    pub(in crate::sqlite) running: i64,
    /// The token bucket of the rate.
    pub(in crate::sqlite) bucket: Bucket,
    /// True if this transaction must write it.
    unsaved: bool,
}

/// A group's state.
#[derive(Debug, Clone)]
pub(in crate::sqlite) struct GroupState {
    /// The group's name, by which limits are found.
    pub(in crate::sqlite) name: Name,
    /// The usage of its limit.
    pub(in crate::sqlite) usage: Usage,
    /// True if its ready lists have no claimable heads.
    pub(in crate::sqlite) blocked: bool,
    /// The steady time at which it gets its next token, if due tasks wait for that.
    pub(in crate::sqlite) token_at: Option<i64>,
    /// True if its heads are ordered as those of a group below its minimum.
    pub(in crate::sqlite) is_below_minimum: bool,
    /// True if this transaction must write all of it.
    pub(super) is_changed: bool,
    /// True if its counters must be written, now or later.
    pub(super) is_counted: bool,
    /// The last log row that its saved state includes.
    pub(super) saved_in: i64,
}

impl GroupState {
    /// Returns true if fewer of its tasks run than its minimum.
    pub(in crate::sqlite) fn has_unmet_minimum(&self) -> bool {
        is_below_minimum(self.usage.limit, u64::try_from(self.usage.running).unwrap_or(0))
    }
}

/// The cached limits.
#[derive(Debug, Default)]
pub(in crate::sqlite) struct Limits {
    /// The virtual times of groups.
    pub(in crate::sqlite) fair_shares: FairShares,
    /// The configured limits by scope.
    configured: BTreeMap<LimitScope, Limit>,
    /// The usage of limited scopes other than groups.
    scopes: FxHashMap<ScopeNumber, (Usage, LimitScope)>,
    /// The cached states of groups.
    pub(in crate::sqlite) groups: FxHashMap<i64, GroupState>,
    /// The counters of groups that are not in the tables.
    pub(super) deferred: DeferredCounters,
    /// The number of the configuration from which the limits were read.
    configuration: u64,
}

impl Usage {
    /// Builds a usage from its columns.
    fn new(limit: Limit, running: i64, full_at: Option<i64>) -> Self {
        Self {
            limit,
            running,
            bucket: Bucket { full_at: Duration::from_nanos(full_at.map_or(0, i64::unsigned_abs)) },
            unsaved: false,
        }
    }

    /// Returns the number of tasks that may start now.
    pub(in crate::sqlite) fn room(&self, now: Duration) -> usize {
        rules::limit::room(self.limit, u64::try_from(self.running).unwrap_or(0), self.bucket, now)
    }

    /// Returns the time until there is a token, if there is none.
    pub(in crate::sqlite) fn until_token(&self, now: Duration) -> Option<Duration> {
        let rate = self.limit.rate?;
        Some(self.bucket.until_token(rate, now)).filter(|wait| !wait.is_zero())
    }

    /// Returns the bucket after the rate was changed; a full one without a rate before or after.
    pub(in crate::sqlite) fn bucket_under(&self, rate: Option<Rate>, now: Duration) -> Bucket {
        match self.limit.rate.zip(rate) {
            Some((before, after)) if before == after => self.bucket,
            Some((before, after)) => self.bucket.under(before, after, now),
            None => Bucket::default(),
        }
    }

    /// Returns true if the concurrency allows no further task.
    fn is_full(&self) -> bool {
        self.limit.concurrency.is_some_and(|most| self.running >= i64::from(most))
    }

    /// Counts a start, and takes a token.
    fn start(&mut self, now: Duration) {
        self.running += 1;
        if let Some(rate) = self.limit.rate {
            self.bucket = self.bucket.take(rate, 1, now);
        }
        self.unsaved = true;
    }

    /// Counts an end. Its token is not returned: a rate limits starts, and the start has happened.
    fn end(&mut self) {
        self.running -= 1;
        self.unsaved = true;
    }
}

impl Limits {
    /// Reads the usage, and also the limits unless the cached ones belong to this configuration.
    pub(in crate::sqlite) fn load(
        connection: &Database<'_>,
        configuration: u64,
        known: Option<Self>,
        numbers: impl Fn(&LimitScope) -> Option<ScopeNumber>,
    ) -> Result<Self> {
        let known = known.filter(|known| known.configuration == configuration);
        let configured = known.map(|known| known.configured).map_or_else(|| read_limits(connection), Ok)?;
        let fair_shares = FairShares::new(are_shared(&configured));
        let mut limits = Self { configured, configuration, fair_shares, ..Self::default() };
        let scopes: Vec<LimitScope> =
            limits.configured.keys().filter(|scope| numbers(scope).is_some()).cloned().collect();
        for scope in scopes {
            if let Some(number) = numbers(&scope) {
                limits.load_scope(connection, number, scope)?;
            }
        }
        Ok(limits)
    }

    /// Reads the usage of a scope, if it has a limit.
    fn load_scope(&mut self, connection: &Database<'_>, number: ScopeNumber, scope: LimitScope) -> Result<()> {
        let limit = self.configured.get(&scope).copied().unwrap_or_default();
        let (code, name) = columns(&scope);
        let usage = connection
            .prepare_cached("SELECT running, full_at FROM task_limit WHERE scope = ? AND name = ?")?
            .query_row(params![code, name], |row| Ok(Usage::new(limit, row.get(0)?, row.get(1)?)))
            .optional()?;
        if let Some(usage) = usage {
            self.scopes.insert(number, (usage, scope));
        }
        Ok(())
    }

    /// Returns the configured limits.
    pub(in crate::sqlite) fn configured(&self) -> &BTreeMap<LimitScope, Limit> {
        &self.configured
    }

    /// Returns the usage of a scope other than groups, if it has a limit.
    pub(in crate::sqlite) fn usage(&self, number: ScopeNumber) -> Option<&Usage> {
        self.scopes.get(&number).map(|(usage, _)| usage)
    }

    /// Returns true if any scope other than a group has a limit.
    pub(in crate::sqlite) fn has_numbered_scopes(&self) -> bool {
        !self.scopes.is_empty()
    }

    /// Returns the usage of all limited scopes other than groups.
    pub(in crate::sqlite) fn scopes(&self) -> impl Iterator<Item = (ScopeNumber, &Usage)> {
        self.scopes.iter().map(|(number, (usage, _))| (*number, usage))
    }

    /// Counts the start of a task in its scopes.
    pub(in crate::sqlite) fn start(&mut self, scopes: [ScopeNumber; 3], now: Duration) {
        for scope in scopes {
            if let Some((usage, _)) = self.scopes.get_mut(&scope) {
                usage.start(now);
            }
        }
    }

    /// Counts the end of a task in its scopes. Returns true if a full scope has room now.
    pub(in crate::sqlite) fn end(&mut self, scopes: [ScopeNumber; 3]) -> bool {
        let mut made_room = false;
        for scope in scopes {
            if let Some((usage, _)) = self.scopes.get_mut(&scope) {
                let was_full = usage.is_full();
                usage.end();
                made_room |= was_full && !usage.is_full();
            }
        }
        made_room
    }

    /// Returns the state of a group, which is read if it is not cached.
    pub(in crate::sqlite) fn group(&mut self, connection: &Database<'_>, group: i64) -> Result<&mut GroupState> {
        if !self.groups.contains_key(&group) {
            let state = self.read_group(connection, group)?;
            self.groups.insert(group, state);
        }
        self.groups.get_mut(&group).ok_or_else(Error::closed)
    }

    /// Reads the state of a group.
    fn read_group(&self, connection: &Database<'_>, group: i64) -> Result<GroupState> {
        let mut statement = connection.prepare_cached(
            "SELECT name, running, full_at, blocked, token_at, below_minimum, saved_in FROM task_group WHERE id = ?",
        )?;
        let mut rows = statement.query([group])?;
        let row =
            rows.next()?.ok_or_else(|| Error::corrupt("a task is of a group that does not exist; restore a backup"))?;
        let name = Name::new(row.get_ref(0)?.as_str().map_err(rusqlite::Error::from)?)?;
        let limit = rules::limit::limit_of_group(&self.configured, &name).map(|(_, limit)| *limit).unwrap_or_default();
        let usage = Usage::new(limit, row.get(1)?, row.get(2)?);
        Ok(GroupState {
            name,
            usage,
            blocked: row.get(3)?,
            token_at: row.get(4)?,
            is_below_minimum: row.get(5)?,
            is_changed: false,
            is_counted: false,
            saved_in: row.get(6)?,
        })
    }

    /// Counts the start of a task in its group.
    pub(in crate::sqlite) fn start_in_group(
        &mut self,
        connection: &Database<'_>,
        group: i64,
        now: Duration,
    ) -> Result<()> {
        if self.group(connection, group)?.usage.limit.is_none() {
            return Ok(());
        }
        self.mark_group_counted(group);
        self.group(connection, group)?.usage.start(now);
        Ok(())
    }

    /// Counts the end of a task in its group.
    pub(in crate::sqlite) fn end_in_group(&mut self, connection: &Database<'_>, group: i64) -> Result<()> {
        if self.group(connection, group)?.usage.limit.is_none() {
            return Ok(());
        }
        self.mark_group_counted(group);
        self.group(connection, group)?.usage.end();
        Ok(())
    }

    /// Writes the changed counters of scopes other than groups.
    pub(in crate::sqlite) fn save(&mut self, connection: &Database<'_>) -> Result<()> {
        for (usage, scope) in self.scopes.values_mut().filter(|(usage, _)| usage.unsaved) {
            let (code, name) = columns(scope);
            connection
                .prepare_cached("UPDATE task_limit SET running = ?, full_at = ? WHERE scope = ? AND name = ?")?
                .execute(params![usage.running, nanoseconds(usage.bucket.full_at), code, name])?;
            usage.unsaved = false;
        }
        self.fair_shares.save(connection)
    }

    /// Returns true if more states are cached than should stay.
    pub(super) fn has_many_groups(&self) -> bool {
        self.groups.len() > MAX_STATES
    }

    /// Drops the cached states of groups if they are many. All must be saved.
    pub(super) fn forget_many_groups(&mut self) {
        if self.has_many_groups() {
            self.groups.clear();
        }
    }

    /// Sets the limit of a scope in which `running` tasks run; for groups the caller counts them,
    /// and converts their buckets. All counters must be saved.
    pub(in crate::sqlite) fn set(
        &mut self,
        connection: &Database<'_>,
        (scope, number): (&LimitScope, Option<ScopeNumber>),
        limit: Limit,
        running: i64,
        now: Duration,
    ) -> Result<()> {
        let before = number.and_then(|number| self.scopes.remove(&number)).map(|(usage, _)| usage);
        let bucket = before.map(|usage| usage.bucket_under(limit.rate, now)).unwrap_or_default();
        let full_at = limit.rate.map(|_| nanoseconds(bucket.full_at));
        write_limit(connection, scope, limit, running, full_at)?;
        if limit.is_none() {
            self.configured.remove(scope);
        } else {
            self.configured.insert(scope.clone(), limit);
            if let Some(number) = number {
                self.scopes.insert(number, (Usage::new(limit, running, full_at), scope.clone()));
            }
        }
        if matches!(scope, LimitScope::Group(_) | LimitScope::Groups(_)) {
            let limits = &self.configured;
            for state in self.groups.values_mut() {
                state.usage.limit =
                    rules::limit::limit_of_group(limits, &state.name).map(|(_, limit)| *limit).unwrap_or_default();
            }
        }
        Ok(())
    }

    /// Records the number of the current configuration.
    pub(in crate::sqlite) fn set_configuration(&mut self, configuration: u64) {
        self.configuration = configuration;
    }
}

/// Writes a limit with its usage, or deletes its row if it has no bound.
fn write_limit(
    connection: &Database<'_>,
    scope: &LimitScope,
    limit: Limit,
    running: i64,
    full_at: Option<i64>,
) -> Result<()> {
    let (code, name) = columns(scope);
    if limit.is_none() {
        connection
            .prepare_cached("DELETE FROM task_limit WHERE scope = ? AND name = ?")?
            .execute(params![code, name])?;
        return Ok(());
    }
    let rate = limit.rate;
    let per = rate.map(|rate| microseconds(rate.per));
    connection.prepare_cached(include_str!("../sql/limits/put_limit.sql"))?.execute(params![
        code,
        name,
        limit.concurrency,
        rate.map(|rate| rate.tasks),
        per,
        rate.map(|rate| rate.burst),
        running,
        full_at,
        limit.weight,
        limit.minimum
    ])?;
    Ok(())
}

/// Reads the configured limits.
fn read_limits(connection: &Database<'_>) -> Result<BTreeMap<LimitScope, Limit>> {
    let mut statement = connection.prepare_cached(
        "SELECT scope, name, concurrency, rate_tasks, rate_per, rate_burst, weight, minimum FROM task_limit",
    )?;
    let mut rows = statement.query([])?;
    let mut limits = BTreeMap::new();
    while let Some(row) = rows.next()? {
        let text: String = row.get(1)?;
        let scope = match row.get::<_, i64>(0)? {
            0 => LimitScope::All,
            1 => LimitScope::Queue(Name::new(text)?),
            2 => LimitScope::Kind(Name::new(text)?),
            3 => LimitScope::Group(Name::new(text)?),
            _ => LimitScope::Groups(text),
        };
        let rate = match row.get(3)? {
            Some(tasks) => Some(Rate { tasks, per: Duration::from_micros(row.get(4)?), burst: row.get(5)? }),
            None => None,
        };
        limits.insert(scope, Limit { concurrency: row.get(2)?, rate, weight: row.get(6)?, minimum: row.get(7)? });
    }
    Ok(limits)
}

/// Returns a scope's columns.
fn columns(scope: &LimitScope) -> (i64, &str) {
    match scope {
        LimitScope::All => (0, ""),
        LimitScope::Queue(name) => (1, name),
        LimitScope::Kind(name) => (2, name),
        LimitScope::Group(name) => (3, name),
        LimitScope::Groups(beginning) => (4, beginning),
    }
}
