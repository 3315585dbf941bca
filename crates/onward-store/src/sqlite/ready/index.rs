//! The index of live tasks: ready lists of due tasks, due times of scheduled tasks, expiry times,
//! and unique keys.
//!
//! It has two tiers. Tasks up to the **index watermark** are in the tables `ready`, `scheduled`,
//! `expiry` and `active_key`. Tasks above it are in memory, and are read from their rows in `task`
//! after a restart. A task that ends soon after its submit never touches an index table. So a lone
//! submit writes one page, and a task costs a third less. A backlog moves to the tables in bulk, so
//! memory is bounded.
//!
//! If several processes share the file, all tasks are in the tables. The index watermark is then
//! [`ALL_IN_TABLES`].

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use rusqlite::{OptionalExtension, params};
use rustc_hash::FxHashMap;

use crate::api::error::{Error, Result};
use crate::api::name::Name;
use crate::api::task::{Priority, TaskId};
use crate::api::timestamp::Timestamp;
use crate::rules::order::{self, SortKey};
use crate::sqlite::columns::meta::{exists, meta};
use crate::sqlite::commit::connection::Database;
use crate::sqlite::commit::names::{AFFINITY_SHIFT, FIRST_GROUPED, HAS_AFFINITY, Names};
use crate::sqlite::commit::transaction::LiveTask;
use crate::sqlite::ready::queue_sizes::SizeChanges;
use crate::sqlite::row_cache::idle_orchestrations::IdleOrchestrations;
use crate::sqlite::row_cache::waiting_tasks::{PlainTask, WaitingTask, WaitingTasks};

/// The index watermark of a file that several processes share: no task is above it.
pub(in crate::sqlite) const ALL_IN_TABLES: i64 = i64::MAX;

/// The numbers of tasks that may wait in memory before they move to the tables.
#[derive(Debug, Clone, Copy)]
pub(in crate::sqlite) struct MemoryTasks {
    /// The limit if the tables have no due tasks, so that a backlog that comes and goes never
    /// touches them. Moving this many takes a tenth of a second.
    pub(in crate::sqlite) alone: usize,
    /// The limit if the tables have due tasks, so that submitters do not wait long for a move.
    pub(in crate::sqlite) beside_tables: usize,
}

impl Default for MemoryTasks {
    fn default() -> Self {
        Self { alone: 128 * 1024, beside_tables: 16 * 1024 }
    }
}

/// A live task as the index sees it.
#[derive(Debug, Clone)]
pub(in crate::sqlite) struct Entry<'a> {
    /// The task's number.
    pub(in crate::sqlite) id: i64,
    /// The list's number, which includes the affinity key of a due task.
    pub(in crate::sqlite) list: i64,
    /// The priority.
    pub(in crate::sqlite) priority: Priority,
    /// True if the task is not due yet.
    pub(in crate::sqlite) scheduled: bool,
    /// True if the task waits for other tasks. It is then in no list.
    pub(in crate::sqlite) blocked: bool,
    /// The due time.
    pub(in crate::sqlite) run_at: i64,
    /// The time at which the task expires.
    pub(in crate::sqlite) expires_at: Option<i64>,
    /// The number of its kind and its key, if the task owns the key.
    pub(in crate::sqlite) key: Option<(i64, &'a str)>,
    /// Its affinity key.
    pub(in crate::sqlite) affinity_key: Option<&'a Name>,
}

impl Entry<'_> {
    /// Returns the entry of a task without options that is due at `now`.
    pub(in crate::sqlite) fn plain(id: TaskId, list: i64, priority: Priority, now: Timestamp) -> Self {
        let (scheduled, blocked) = (false, false);
        let run_at = now.as_microseconds();
        Self { id: id.0, list, priority, scheduled, blocked, run_at, expires_at: None, key: None, affinity_key: None }
    }

    /// Returns true if the task is due and belongs in a ready list.
    pub(super) fn is_ready(&self) -> bool {
        !self.scheduled && !self.blocked
    }

    /// Returns the position within a list.
    pub(in crate::sqlite) fn sort_key(&self) -> SortKey {
        order::sort_key(self.priority, Timestamp::from_microseconds(self.run_at), TaskId(self.id))
    }
}

/// The number of lists in memory beyond which empty ones are dropped.
const EMPTY_LISTS: usize = 4096;

/// Adds a task to a list in the tables.
const ADD_READY: &str = "INSERT INTO ready (list, sort_key, task) VALUES (?, ?, ?)";

/// The index of live tasks.
#[derive(Debug)]
pub(in crate::sqlite) struct Index {
    /// The highest task number in the tables.
    index_watermark: i64,
    /// The due tasks in memory by list.
    ready: FxHashMap<i64, BTreeSet<SortKey>>,
    /// The number of tasks in `ready`.
    ready_tasks: usize,
    /// The number of waiting tasks that were read at load and have not moved to the tables since.
    loaded: usize,
    /// Cached rows of tasks in `ready`.
    waiting_rows: WaitingTasks,
    /// Cached rows of orchestrations that no session holds.
    idle_rows: IdleOrchestrations,
    /// The scheduled tasks in memory: due time and number, with their list.
    scheduled: BTreeMap<(i64, i64), i64>,
    /// The number of tasks that became blocked since the index watermark last moved. They are in no
    /// list, but the next load reads their rows too.
    blocked: usize,
    /// The times at which tasks in memory expire.
    expiry: BTreeSet<(i64, i64)>,
    /// The unique keys of tasks in memory, by kind.
    keys: FxHashMap<i64, foldhash::HashMap<Box<str>, i64>>,
    /// The lists that may have rows in the table `ready`.
    table_lists: BTreeSet<i64>,
    /// True if the tables may have keys.
    table_keys: bool,
    /// True if the tables may have scheduled tasks.
    table_scheduled: bool,
    /// True if the tables may have times at which tasks expire.
    table_expiry: bool,
    /// The numbers of tasks that entered and left the tables in this transaction.
    sizes: SizeChanges,
}

impl Index {
    /// Reads the index watermark, and the tasks above it.
    pub(in crate::sqlite) fn load(connection: &Database<'_>) -> Result<Self> {
        let index_watermark = meta(connection, "index_watermark")?;
        let mut index = Self {
            index_watermark,
            ready: FxHashMap::default(),
            ready_tasks: 0,
            loaded: 0,
            waiting_rows: WaitingTasks::default(),
            idle_rows: IdleOrchestrations::default(),
            scheduled: BTreeMap::new(),
            blocked: 0,
            expiry: BTreeSet::new(),
            keys: FxHashMap::default(),
            table_lists: table_lists(
                connection,
                if index_watermark == ALL_IN_TABLES { FIRST_GROUPED } else { i64::MAX },
            )?,
            table_keys: exists(connection, "SELECT EXISTS (SELECT 1 FROM active_key)")?,
            table_scheduled: exists(connection, "SELECT EXISTS (SELECT 1 FROM scheduled)")?,
            table_expiry: exists(connection, "SELECT EXISTS (SELECT 1 FROM expiry)")?,
            sizes: SizeChanges::default(),
        };
        if index_watermark != ALL_IN_TABLES {
            index.load_tasks(connection)?;
            index.loaded = index.in_memory();
            // Blocked tasks were counted in the table when they became blocked.
            index.sizes = SizeChanges::default();
        }
        Ok(index)
    }

    /// Reads the tasks above the index watermark from their rows.
    fn load_tasks(&mut self, connection: &Database<'_>) -> Result<()> {
        let mut statement = connection.prepare_cached(include_str!("../sql/ready/tasks_above_watermark.sql"))?;
        let mut rows = statement.query([self.index_watermark])?;
        while let Some(row) = rows.next()? {
            let key: Option<String> = row.get(6)?;
            let kind: i64 = row.get(7)?;
            let running: bool = row.get(8)?;
            let is_ready = row.get::<_, u8>(3)? == 0 && !running;
            let entry = Entry {
                id: row.get(0)?,
                list: list(row.get(1)?, row.get(10)?, row.get(11)?, is_ready)?,
                priority: Priority(row.get(2)?),
                scheduled: row.get::<_, u8>(3)? == 1,
                blocked: row.get::<_, u8>(3)? == 2,
                run_at: row.get(4)?,
                expires_at: row.get(5)?,
                key: key.as_deref().map(|key| (kind, key)),
                affinity_key: None,
            };
            let owns_key: bool = row.get(9)?;
            if let Some((kind, key)) = entry.key.filter(|_| owns_key) {
                self.take_key(connection, kind, key, entry.id)?;
            }
            if !running {
                self.add(connection, &entry)?;
            }
        }
        Ok(())
    }

    /// Returns the number of tasks above the watermark, which the next load has to read.
    fn in_memory(&self) -> usize {
        self.ready_tasks + self.scheduled.len() + self.blocked
    }

    /// Returns true if more tasks are in memory than may be. Tasks that were read at load have the
    /// lower limit, so that not every open reads them again.
    pub(in crate::sqlite) fn is_full(&self, may: MemoryTasks) -> bool {
        let limit = if self.table_lists.is_empty() { may.alone } else { may.beside_tables };
        self.in_memory() > limit || self.loaded > may.beside_tables
    }

    /// Returns the due tasks in memory, by list.
    pub(in crate::sqlite) fn ready_in_memory(&self) -> impl Iterator<Item = (i64, &BTreeSet<SortKey>)> {
        self.ready.iter().map(|(list, sort_keys)| (*list, sort_keys))
    }

    /// Returns the lists of tasks in memory that are not due.
    pub(in crate::sqlite) fn scheduled_in_memory(&self) -> impl Iterator<Item = i64> + '_ {
        self.scheduled.values().copied()
    }

    /// Moves all tasks in memory to the tables, and sets the index watermark.
    pub(in crate::sqlite) fn flush(&mut self, connection: &Database<'_>, index_watermark: i64) -> Result<()> {
        let ready = std::mem::take(&mut self.ready);
        self.ready_tasks = 0;
        self.loaded = 0;
        self.blocked = 0;
        if index_watermark == ALL_IN_TABLES {
            self.waiting_rows.clear();
        }
        let scheduled = std::mem::take(&mut self.scheduled);
        let expiry = std::mem::take(&mut self.expiry);
        let keys = std::mem::take(&mut self.keys);
        let was_shared = std::mem::replace(&mut self.index_watermark, ALL_IN_TABLES) == ALL_IN_TABLES;
        let mut statement = connection.prepare_cached(ADD_READY)?;
        for (list, sort_keys) in ready {
            self.table_lists.insert(list);
            self.sizes.waiting(list, sort_keys.len().cast_signed() as i64);
            for sort_key in sort_keys {
                statement.execute(params![list, sort_key.at, sort_key.task.0])?;
            }
        }
        for ((run_at, task), list) in scheduled {
            self.add_scheduled(connection, run_at, task, list)?;
        }
        for (expires_at, task) in expiry {
            self.add_expiry(connection, expires_at, task)?;
        }
        for (kind, keys) in keys {
            for (key, task) in keys {
                self.take_key(connection, kind, &key, task)?;
            }
        }
        if index_watermark == ALL_IN_TABLES {
            self.table_lists.retain(|list| *list < FIRST_GROUPED);
        } else if was_shared {
            self.table_lists = table_lists(connection, i64::MAX)?;
        }
        self.index_watermark = index_watermark;
        connection
            .prepare_cached("UPDATE meta SET value = ? WHERE name = 'index_watermark'")?
            .execute([index_watermark])?;
        Ok(())
    }

    /// Adds a task that no session holds. The caller takes its key.
    pub(in crate::sqlite) fn add(&mut self, connection: &Database<'_>, entry: &Entry<'_>) -> Result<()> {
        if entry.blocked {
            self.blocked += usize::from(entry.id > self.index_watermark);
            self.sizes.blocked(entry.list, 1);
        } else if entry.scheduled {
            self.add_scheduled(connection, entry.run_at, entry.id, entry.list)?;
        } else {
            self.add_ready(connection, entry.list, entry.sort_key())?;
        }
        entry.expires_at.map_or(Ok(()), |at| self.add_expiry(connection, at, entry.id))
    }

    /// Removes a task that no session holds. The caller frees its key.
    pub(in crate::sqlite) fn remove(&mut self, connection: &Database<'_>, entry: &Entry<'_>) -> Result<()> {
        self.idle_rows.remove(entry.id);
        if entry.blocked {
            self.waiting_rows.forget(entry.id);
            self.sizes.blocked(entry.list, -1);
        } else if entry.scheduled {
            self.remove_scheduled(connection, entry.run_at, entry.id, entry.list)?;
        } else {
            self.remove_ready(connection, entry.list, entry.sort_key())?;
        }
        entry.expires_at.map_or(Ok(()), |at| self.remove_expiry(connection, at, entry.id))
    }

    /// Adds a due task to a list.
    pub(super) fn add_ready(&mut self, connection: &Database<'_>, list: i64, sort_key: SortKey) -> Result<()> {
        if sort_key.task.0 > self.index_watermark {
            self.ready_tasks += usize::from(self.ready.entry(list).or_default().insert(sort_key));
        } else {
            connection.prepare_cached(ADD_READY)?.execute(params![list, sort_key.at, sort_key.task.0])?;
            self.note_table_list(list);
            self.sizes.waiting(list, 1);
        }
        Ok(())
    }

    /// Removes a due task from its list, and drops its cached row.
    fn remove_ready(&mut self, connection: &Database<'_>, list: i64, sort_key: SortKey) -> Result<()> {
        self.waiting_rows.forget(sort_key.task.0);
        self.idle_rows.remove(sort_key.task.0);
        self.remove_ready_to_start(connection, list, sort_key)
    }

    /// Removes a task that is about to start. Its cached row stays, because the claim takes it
    /// next.
    pub(in crate::sqlite) fn remove_ready_to_start(
        &mut self,
        connection: &Database<'_>,
        list: i64,
        sort_key: SortKey,
    ) -> Result<()> {
        if sort_key.task.0 > self.index_watermark {
            self.remove_ready_in_memory(list, sort_key);
        } else {
            let mut statement =
                connection.prepare_cached("DELETE FROM ready WHERE list = ? AND sort_key = ? AND task = ?")?;
            let removed = statement.execute(params![list, sort_key.at, sort_key.task.0])?;
            self.sizes.waiting(list, -(removed.cast_signed() as i64));
        }
        Ok(())
    }

    /// Records that a list has rows in the table. Skips lists of groups in a shared file: they may
    /// be very many, and other processes add to them.
    fn note_table_list(&mut self, list: i64) {
        if list < FIRST_GROUPED || self.index_watermark != ALL_IN_TABLES {
            self.table_lists.insert(list);
        }
    }

    /// Removes a due task from a list in memory.
    fn remove_ready_in_memory(&mut self, list: i64, sort_key: SortKey) {
        let Some(sort_keys) = self.ready.get_mut(&list) else { return };
        self.ready_tasks -= usize::from(sort_keys.remove(&sort_key));
        // Groups may be many, and most stay empty. A few empty lists are left, because they fill
        // again soon.
        if sort_keys.is_empty() && list >= FIRST_GROUPED && self.ready.len() > EMPTY_LISTS {
            self.ready.remove(&list);
        }
    }

    /// Caches the row of a due task for its claim, unless another process might claim it first.
    pub(in crate::sqlite) fn cache_waiting(&mut self, task: WaitingTask) {
        if self.index_watermark != ALL_IN_TABLES && !task.task.scheduled {
            self.waiting_rows.insert(task);
        }
    }

    /// Caches the row of a task without options, under the same condition.
    pub(in crate::sqlite) fn cache_plain(&mut self, id: i64, task: PlainTask) {
        if self.index_watermark != ALL_IN_TABLES {
            self.waiting_rows.insert_plain(id, task);
        }
    }

    /// Returns true if the row of a due or blocked task is cached.
    pub(in crate::sqlite) fn has_waiting_row(&self, task: TaskId) -> bool {
        self.waiting_rows.has(task.0)
    }

    /// Returns the cached row of a blocked task.
    pub(in crate::sqlite) fn waiting_row(&self, task: TaskId) -> Option<&LiveTask> {
        self.waiting_rows.get(task.0)
    }

    /// Returns the cached row of a due or blocked task, for a change that is also made to its row.
    pub(in crate::sqlite) fn waiting_row_mut(&mut self, task: TaskId) -> Option<&mut LiveTask> {
        self.waiting_rows.get_mut(task.0)
    }

    /// Updates the index for a task that is no longer blocked. Its expiry stays as it is.
    pub(in crate::sqlite) fn unblock(&mut self, connection: &Database<'_>, task: &LiveTask) -> Result<()> {
        self.sizes.blocked(task.sub_queue, -1);
        self.idle_rows.remove(task.id.0);
        if task.scheduled {
            self.waiting_rows.forget(task.id.0);
            return self.add_scheduled(connection, task.run_at, task.id.0, task.scheduled_list());
        }
        if let Some(waiting_rows) = self.waiting_row_mut(task.id) {
            *waiting_rows = task.clone();
        }
        Ok(())
    }

    /// Caches the row of an orchestration that no session holds: it is ready, or waits for a
    /// message.
    pub(in crate::sqlite) fn cache_idle(&mut self, task: &LiveTask) {
        self.idle_rows.insert(task);
    }

    /// Returns the cached row of an orchestration that no session holds.
    pub(in crate::sqlite) fn idle_row(&self, task: TaskId) -> Option<&LiveTask> {
        self.idle_rows.get(task.0)
    }

    /// Returns the same cached row, for a change that is also made to the row in the table.
    pub(in crate::sqlite) fn idle_row_mut(&mut self, task: TaskId) -> Option<&mut LiveTask> {
        self.idle_rows.get_mut(task.0)
    }

    /// Takes the cached row of a due task.
    pub(in crate::sqlite) fn take_waiting_row(&mut self, task: TaskId) -> Option<WaitingTask> {
        self.idle_rows.remove(task.0);
        self.waiting_rows.take(task.0)
    }

    /// Removes every due task of a list up to a sort key. The caller has taken their cached rows.
    pub(in crate::sqlite) fn remove_ready_up_to(
        &mut self,
        connection: &Database<'_>,
        list: i64,
        sort_key: SortKey,
    ) -> Result<()> {
        if let Some(sort_keys) = self.ready.get_mut(&list) {
            let before = sort_keys.len();
            *sort_keys = sort_keys.split_off(&sort_key);
            sort_keys.remove(&sort_key);
            self.ready_tasks -= before - sort_keys.len();
        }
        if self.table_lists.contains(&list) {
            let mut statement =
                connection.prepare_cached("DELETE FROM ready WHERE list = ? AND (sort_key, task) <= (?, ?)")?;
            let removed = statement.execute(params![list, sort_key.at, sort_key.task.0])?;
            self.sizes.waiting(list, -(removed.cast_signed() as i64));
        }
        Ok(())
    }

    /// Returns the next due tasks of a list after `after`, at most `limit`.
    pub(in crate::sqlite) fn next_ready(
        &mut self,
        connection: &Database<'_>,
        list: i64,
        after: Option<SortKey>,
        limit: usize,
    ) -> Result<Vec<SortKey>> {
        let behind = after.map_or(Bound::Unbounded, Bound::Excluded);
        let mut sort_keys: Vec<SortKey> = self
            .ready
            .get(&list)
            .map(|ready| ready.range((behind, Bound::Unbounded)).take(limit).copied().collect())
            .unwrap_or_default();
        if self.may_be_in_table(list) {
            let from_memory = sort_keys.len();
            let start = after.unwrap_or(SortKey { at: i64::MIN, task: TaskId(i64::MIN) });
            let mut statement = connection.prepare_cached(include_str!("../sql/ready/next_ready.sql"))?;
            let mut rows = statement.query(params![list, start.at, start.task.0, limit.cast_signed()])?;
            while let Some(row) = rows.next()? {
                sort_keys.push(SortKey { at: row.get(0)?, task: TaskId(row.get(1)?) });
            }
            if sort_keys.len() == from_memory && after.is_none() {
                self.table_lists.remove(&list);
            }
            sort_keys.sort_unstable();
            sort_keys.truncate(limit);
        }
        Ok(sort_keys)
    }

    /// Returns true if a list may have due tasks in the table.
    fn may_be_in_table(&self, list: i64) -> bool {
        let is_shared_group = list >= FIRST_GROUPED && self.index_watermark == ALL_IN_TABLES;
        is_shared_group || self.table_lists.contains(&list)
    }

    /// Returns a list's first due task.
    pub(in crate::sqlite) fn first_ready(&mut self, connection: &Database<'_>, list: i64) -> Result<Option<SortKey>> {
        if self.may_be_in_table(list) {
            return Ok(self.next_ready(connection, list, None, 1)?.first().copied());
        }
        Ok(self.ready.get(&list).and_then(|sort_keys| sort_keys.first().copied()))
    }

    /// Returns the lists of groups and affinity keys that may have due tasks.
    pub(in crate::sqlite) fn grouped_lists(&self) -> Vec<i64> {
        let in_memory = self.ready.keys().copied().filter(|list| *list >= FIRST_GROUPED);
        let mut lists: Vec<i64> = in_memory.chain(self.table_lists.range(FIRST_GROUPED..).copied()).collect();
        lists.sort_unstable();
        lists.dedup();
        lists
    }

    /// Returns true if several processes may have the file open.
    pub(in crate::sqlite) fn is_shared(&self) -> bool {
        self.index_watermark == ALL_IN_TABLES
    }

    /// Adds a scheduled task.
    fn add_scheduled(&mut self, connection: &Database<'_>, run_at: i64, task: i64, list: i64) -> Result<()> {
        if task > self.index_watermark {
            self.scheduled.insert((run_at, task), list);
        } else {
            connection
                .prepare_cached("INSERT INTO scheduled (run_at, task, list) VALUES (?, ?, ?)")?
                .execute(params![run_at, task, list])?;
            self.table_scheduled = true;
            self.sizes.scheduled(list, 1);
        }
        Ok(())
    }

    /// Removes a scheduled task.
    pub(in crate::sqlite) fn remove_scheduled(
        &mut self,
        connection: &Database<'_>,
        run_at: i64,
        task: i64,
        list: i64,
    ) -> Result<()> {
        if task > self.index_watermark {
            self.scheduled.remove(&(run_at, task));
        } else {
            let mut statement = connection.prepare_cached("DELETE FROM scheduled WHERE run_at = ? AND task = ?")?;
            let removed = statement.execute(params![run_at, task])?;
            self.sizes.scheduled(list, -(removed.cast_signed() as i64));
        }
        Ok(())
    }

    /// Writes the changes of the index tables' sizes.
    pub(in crate::sqlite) fn save_sizes(&mut self, connection: &Database<'_>, names: &Names) -> Result<()> {
        self.sizes.save(connection, names)
    }

    /// Returns the scheduled tasks that are due at `now`, earliest first, at most `limit`: time,
    /// task and list.
    pub(in crate::sqlite) fn due(
        &self,
        connection: &Database<'_>,
        now: i64,
        limit: usize,
    ) -> Result<Vec<(i64, i64, i64)>> {
        let in_memory = self.scheduled.range(..=(now, i64::MAX)).take(limit);
        let mut due: Vec<_> = in_memory.map(|(&(run_at, task), &list)| (run_at, task, list)).collect();
        if !self.table_scheduled {
            return Ok(due);
        }
        let mut statement = connection.prepare_cached(
            "SELECT run_at, task, list FROM scheduled WHERE run_at <= ? ORDER BY run_at, task LIMIT ?",
        )?;
        let mut rows = statement.query(params![now, limit.cast_signed()])?;
        while let Some(row) = rows.next()? {
            due.push((row.get(0)?, row.get(1)?, row.get(2)?));
        }
        due.sort_unstable();
        due.truncate(limit);
        Ok(due)
    }

    /// Adds the time at which a task expires.
    fn add_expiry(&mut self, connection: &Database<'_>, expires_at: i64, task: i64) -> Result<()> {
        if task > self.index_watermark {
            self.expiry.insert((expires_at, task));
        } else {
            connection
                .prepare_cached("INSERT INTO expiry (expires_at, task) VALUES (?, ?)")?
                .execute(params![expires_at, task])?;
            self.table_expiry = true;
        }
        Ok(())
    }

    /// Removes the time at which a task expires.
    pub(in crate::sqlite) fn remove_expiry(
        &mut self,
        connection: &Database<'_>,
        expires_at: i64,
        task: i64,
    ) -> Result<()> {
        if task > self.index_watermark {
            self.expiry.remove(&(expires_at, task));
        } else {
            connection
                .prepare_cached("DELETE FROM expiry WHERE expires_at = ? AND task = ?")?
                .execute(params![expires_at, task])?;
        }
        Ok(())
    }

    /// Returns the tasks that have expired at `now`, earliest first, at most `limit`.
    pub(in crate::sqlite) fn expired(&self, connection: &Database<'_>, now: i64, limit: usize) -> Result<Vec<i64>> {
        let mut expired: Vec<(i64, i64)> = self.expiry.range(..=(now, i64::MAX)).take(limit).copied().collect();
        if self.table_expiry {
            let mut statement = connection.prepare_cached(
                "SELECT expires_at, task FROM expiry WHERE expires_at <= ? ORDER BY expires_at, task LIMIT ?",
            )?;
            let mut rows = statement.query(params![now, limit.cast_signed()])?;
            while let Some(row) = rows.next()? {
                expired.push((row.get(0)?, row.get(1)?));
            }
            expired.sort_unstable();
            expired.truncate(limit);
        }
        Ok(expired.into_iter().map(|(_, task)| task).collect())
    }

    /// Returns the earliest time at which a scheduled task is due or a task expires.
    pub(in crate::sqlite) fn next_time(&self, connection: &Database<'_>) -> Result<Option<i64>> {
        let first = |may_be: bool, sql| -> Result<Option<i64>> {
            if !may_be {
                return Ok(None);
            }
            Ok(connection.prepare_cached(sql)?.query_row([], |row| row.get(0)).optional()?)
        };
        let times = [
            self.scheduled.first_key_value().map(|((run_at, _), _)| *run_at),
            self.expiry.first().map(|(at, _)| *at),
            first(self.table_scheduled, "SELECT run_at FROM scheduled ORDER BY run_at LIMIT 1")?,
            first(self.table_expiry, "SELECT expires_at FROM expiry ORDER BY expires_at LIMIT 1")?,
        ];
        Ok(times.into_iter().flatten().min())
    }

    /// Returns the live task that owns a key.
    pub(in crate::sqlite) fn key_owner(&self, connection: &Database<'_>, kind: i64, key: &str) -> Result<Option<i64>> {
        if let Some(task) = self.keys.get(&kind).and_then(|keys| keys.get(key)) {
            return Ok(Some(*task));
        }
        if !self.table_keys {
            return Ok(None);
        }
        let mut statement = connection.prepare_cached("SELECT task FROM active_key WHERE kind = ? AND key = ?")?;
        Ok(statement.query_row(params![kind, key], |row| row.get(0)).optional()?)
    }

    /// Gives a free key to a task.
    pub(in crate::sqlite) fn take_key(
        &mut self,
        connection: &Database<'_>,
        kind: i64,
        key: &str,
        task: i64,
    ) -> Result<()> {
        if task > self.index_watermark {
            self.keys.entry(kind).or_default().insert(key.into(), task);
        } else {
            connection
                .prepare_cached("INSERT INTO active_key (kind, key, task) VALUES (?, ?, ?)")?
                .execute(params![kind, key, task])?;
            self.table_keys = true;
        }
        Ok(())
    }

    /// Frees a key if the task owns it.
    pub(in crate::sqlite) fn free_key(
        &mut self,
        connection: &Database<'_>,
        kind: i64,
        key: &str,
        task: i64,
    ) -> Result<()> {
        if task > self.index_watermark {
            if let Some(keys) = self.keys.get_mut(&kind)
                && keys.get(key) == Some(&task)
            {
                keys.remove(key);
            }
        } else {
            connection
                .prepare_cached("DELETE FROM active_key WHERE kind = ? AND key = ? AND task = ?")?
                .execute(params![kind, key, task])?;
        }
        Ok(())
    }
}

/// Returns the list number of a task as the index has it: with its affinity key if it is ready,
/// with [`HAS_AFFINITY`] if it is not.
fn list(list: i64, has_affinity_keys: bool, affinity_key: Option<i64>, is_ready: bool) -> Result<i64> {
    match affinity_key {
        _ if !has_affinity_keys => Ok(list),
        _ if !is_ready => Ok(list | HAS_AFFINITY),
        Some(affinity_key) => Ok(affinity_key << AFFINITY_SHIFT | list),
        None => Err(Error::corrupt("a task waits with an affinity key that does not exist; restore a backup")),
    }
}

/// Returns the lists below a number that have due tasks in the table. Each list costs one seek,
/// however many tasks it has.
fn table_lists(connection: &Database<'_>, below: i64) -> Result<BTreeSet<i64>> {
    let mut statement =
        connection.prepare_cached("SELECT list FROM ready WHERE list > ? AND list < ? ORDER BY list LIMIT 1")?;
    let mut lists = BTreeSet::new();
    let mut last = -1;
    while let Some(list) = statement.query_row([last, below], |row| row.get::<_, i64>(0)).optional()? {
        lists.insert(list);
        last = list;
    }
    Ok(lists)
}
