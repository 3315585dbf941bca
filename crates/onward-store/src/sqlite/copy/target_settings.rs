//! Writes everything except tasks to its tables: names and rows first, and then limits, pauses and
//! settings of queues with the verbs of the store, which also update the ready lists.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use rusqlite::{Connection, params};

use crate::api::error::Result;
use crate::api::limit::{GroupShare, Limit, LimitScope, RateLimit, SetLimit};
use crate::api::name::Name;
use crate::api::queue::{ConcurrencyLimit, QueueSettings, SetQueue};
use crate::api::schedule::ScheduleRecord;
use crate::api::store::KindStatistics;
use crate::api::timestamp::Timestamp;
use crate::api::write::{Scope, Write};
use crate::model::{BatchKey, UnpropagatedEnd};
use crate::postgres::{DayCounts, PendingBatchBody, SharesBody, SmallStateRow, StoreSettings};
use crate::sqlite::columns::durations::nanoseconds;
use crate::sqlite::columns::schedules;
use crate::sqlite::commit::connection::Database;
use crate::sqlite::commit::names::Names;

/// The rows to write after the tasks.
#[derive(Debug, Default)]
pub(in crate::sqlite) struct Waiting {
    /// The rows of the small state.
    pub(in crate::sqlite) items: Vec<SmallStateRow>,
    /// The statistics of kinds.
    pub(in crate::sqlite) statistics: Vec<KindStatistics>,
    /// The daily counts.
    pub(in crate::sqlite) days: Vec<DayCounts>,
}

impl Waiting {
    /// Returns the rows of a sort.
    fn of<'a>(&'a self, sort: &'a str) -> impl Iterator<Item = &'a SmallStateRow> {
        self.items.iter().filter(move |item| item.sort == sort)
    }

    /// Writes the rows on which no ready list depends.
    pub(super) fn write_rows(&self, connection: &Connection, names: &mut Names) -> Result<()> {
        self.names(connection, names)?;
        for item in self.of("schedule") {
            schedules::put(connection, &item.body::<ScheduleRecord>()?)?;
        }
        for item in self.of("fair_share") {
            shares(connection, names, &item.key()?, item.body()?)?;
        }
        for item in self.of("pending_batch") {
            pending_batch(connection, names, &item.key()?, &item.body()?)?;
        }
        for item in self.of("unpropagated_ends") {
            unpropagated_ends(connection, item.body()?)?;
        }
        for item in self.of("bucket") {
            if let LimitScope::Group(name) = item.key()? {
                let group = names.ensure_group(&Database::from(connection), &name)?;
                let full_at = nanoseconds(item.body()?);
                connection.execute("UPDATE task_group SET full_at = ? WHERE id = ?", [full_at, group])?;
            }
        }
        Ok(())
    }

    /// Adds the names. A deleted queue has its name only in its ended tasks.
    fn names(&self, connection: &Connection, names: &mut Names) -> Result<()> {
        let database = Database::from(connection);
        let mut kept = BTreeSet::new();
        for item in self.of("queue") {
            kept.insert(names.ensure_queue(&database, &Name::new(&item.name)?)?);
        }
        for item in self.of("kind") {
            names.ensure_kind(&database, &Name::new(&item.name)?)?;
        }
        for item in self.of("group") {
            names.ensure_group(&database, &Name::new(&item.name)?)?;
        }
        for (_, number) in names.queues().filter(|(_, number)| !kept.contains(number)) {
            connection.execute("UPDATE queue SET deleted = 1 WHERE id = ?", [number])?;
        }
        Ok(())
    }

    /// Returns the writes for the settings on which ready lists depend.
    pub(in crate::sqlite) fn writes(&self) -> Result<Vec<Write>> {
        let mut writes = Vec::new();
        for item in self.of("settings") {
            let QueueSettings { weight, concurrency, affinity_wait } = item.body()?;
            let concurrency = concurrency.map_or(ConcurrencyLimit::Unlimited, ConcurrencyLimit::AtMost);
            let affinity_wait = Some(affinity_wait);
            let (weight, concurrency) = (Some(weight), Some(concurrency));
            writes.push(Write::SetQueue(SetQueue { queue: item.key()?, weight, concurrency, affinity_wait }));
        }
        for item in self.of("limit") {
            writes.push(Write::SetLimit(limit(item.key()?, item.body()?)));
        }
        for item in self.of("pause") {
            let (scope, until): (Scope, Option<Timestamp>) = (item.key()?, item.body()?);
            writes.push(Write::Pause { scope, until });
        }
        for item in self.of("store") {
            writes.push(Write::SetQueueMode(item.body::<StoreSettings>()?.mode));
        }
        Ok(writes)
    }

    /// Restores the values that these writes have changed.
    pub(super) fn restore_changed_values(&self, connection: &Connection) -> Result<()> {
        for item in self.of("store") {
            let StoreSettings { configuration, schedule_revision, .. } = item.body()?;
            for (name, value) in [("configuration", configuration), ("schedule_revision", schedule_revision)] {
                connection.execute("UPDATE meta SET value = ? WHERE name = ?", params![value, name])?;
            }
        }
        let buckets: Vec<(LimitScope, Duration)> =
            self.of("bucket").map(|item| Ok((item.key()?, item.body()?))).collect::<Result<_>>()?;
        for (scope, full_at) in buckets {
            let (code, name) = match &scope {
                LimitScope::All => (0, ""),
                LimitScope::Queue(name) => (1, name.as_str()),
                LimitScope::Kind(name) => (2, name.as_str()),
                LimitScope::Group(_) | LimitScope::Groups(_) => continue,
            };
            let sql = "UPDATE task_limit SET full_at = ? WHERE scope = ? AND name = ?";
            connection.execute(sql, params![nanoseconds(full_at), code, name])?;
        }
        Ok(())
    }
}

/// Returns the write that sets a limit to exactly these values.
fn limit(scope: LimitScope, limit: Limit) -> SetLimit {
    // A queue's concurrency is one of its settings.
    let is_of_queue = matches!(scope, LimitScope::Queue(_));
    let share = |share: Option<u32>| scope.is_of_groups().then(|| share.map_or(GroupShare::Unset, GroupShare::Of));
    SetLimit {
        concurrency: (!is_of_queue)
            .then(|| limit.concurrency.map_or(ConcurrencyLimit::Unlimited, ConcurrencyLimit::AtMost)),
        rate: Some(limit.rate.map_or(RateLimit::Unlimited, RateLimit::AtMost)),
        weight: share(limit.weight),
        minimum: share(limit.minimum),
        scope,
    }
}

/// Writes the virtual times of a queue's groups.
fn shares(connection: &Connection, names: &mut Names, queue: &Name, shares: SharesBody) -> Result<()> {
    let database = Database::from(connection);
    let queue = names.ensure_queue(&database, queue)?;
    let mut rows = BTreeMap::from([(crate::sqlite::limits::fair_shares::QUEUE, shares.now)]);
    for (group, time) in shares.tags {
        let group = group.map_or(Ok(0), |group| names.ensure_group(&database, &group))?;
        rows.insert(group, time);
    }
    for (group, (guaranteed, shared)) in rows {
        let sql = "INSERT INTO fair_share (queue, task_group, guaranteed, shared) VALUES (?, ?, ?, ?)";
        connection.execute(sql, params![queue, group, guaranteed, shared])?;
    }
    Ok(())
}

/// Writes a pending batch.
fn pending_batch(connection: &Connection, names: &mut Names, line: &BatchKey, body: &PendingBatchBody) -> Result<()> {
    let (queue, kind, group) = line;
    let sub_queue = names.ensure_sub_queue(&Database::from(connection), queue, kind, group.as_ref(), false)?;
    connection.execute(
        include_str!("../sql/relations/put_pending_batch.sql"),
        params![
            sub_queue,
            body.began_with.0,
            body.items,
            body.bytes.cast_signed(),
            body.began_at.as_microseconds(),
            body.size,
            body.deadline.as_microseconds(),
            body.ready_at.as_microseconds()
        ],
    )?;
    for task in &body.tasks {
        let sql =
            "INSERT INTO pending_item (sub_queue, task, bytes) SELECT ?1, id, length(payload) FROM task WHERE id = ?2";
        connection.execute(sql, [sub_queue, task.0])?;
    }
    Ok(())
}

/// Writes the ended tasks whose dependents are not updated yet.
fn unpropagated_ends(connection: &Connection, line: VecDeque<UnpropagatedEnd>) -> Result<()> {
    for over in line {
        let code = over.ended.map_or(0, crate::api::task::TaskState::code);
        let sql = "INSERT INTO unpropagated_end (task, state, up_to, next_child, next_item) VALUES (?, ?, ?, ?, ?)";
        connection.execute(sql, [over.task.0, code, over.up_to.0, over.next_child.0, over.next_item.0])?;
    }
    Ok(())
}
