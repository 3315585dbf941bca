//! What the writer keeps in memory between transactions; all of it can be read again from the file.

use rusqlite::{Connection, OptionalExtension};

use crate::error::Result;
use crate::sqlite::held_tasks::HeldTasks;
use crate::sqlite::index::{Index, exists};
use crate::sqlite::names::Names;
use crate::sqlite::pauses::Pauses;
use crate::sqlite::queues::Queues;

/// The writer's memory. It is dropped and read again when another process has written, and when a transaction was rolled back.
#[derive(Debug)]
pub(super) struct Cache {
    pub(super) names: Names,
    pub(super) index: Index,
    pub(super) pauses: Pauses,
    pub(super) queues: Queues,
    pub(super) held: HeldTasks,
    /// Whether there may be keys that outlive their task.
    pub(super) kept_keys: bool,
    /// Whether dependents of tasks that are over do not all know yet.
    pub(super) is_unsettled: bool,
    /// The number of the next task. Numbers are never used again: every task that leaves `task` leaves a log row, and that
    /// row carries the number of the next task.
    pub(super) next_task: i64,
    /// The number of the next log row.
    pub(super) next_log: i64,
}

impl Cache {
    pub(super) fn load(connection: &Connection) -> Result<Self> {
        let last_task: Option<i64> =
            connection.prepare_cached("SELECT max(id) FROM task")?.query_row([], |row| row.get(0))?;
        let last_log: Option<(i64, i64)> = connection
            .prepare_cached("SELECT id, next_task FROM log ORDER BY id DESC LIMIT 1")?
            .query_row([], |row| Ok((row.get(0)?, row.get(1)?)))
            .optional()?;
        let (last_log, next_task) = last_log.unwrap_or((0, 1));
        Ok(Self {
            names: Names::load(connection)?,
            index: Index::load(connection)?,
            pauses: Pauses::load(connection)?,
            queues: Queues::load(connection)?,
            held: HeldTasks::default(),
            is_unsettled: exists(connection, "SELECT EXISTS (SELECT 1 FROM over)")?,
            kept_keys: exists(connection, "SELECT EXISTS (SELECT 1 FROM kept_key)")?,
            next_task: next_task.max(last_task.unwrap_or(0) + 1),
            next_log: last_log + 1,
        })
    }
}
