//! The tags of new tasks, which are not in the tables yet.
//!
//! A task's tags are in its row, including those that an orchestration sets itself later. The
//! tables that find tasks by tags are written in bulk. Each tag of a task is on another page there,
//! so twenty tags written with every submit would change twenty pages, while the task itself
//! changes one. A search by tags writes them first. The tags held here can be read again from the
//! rows.

use std::collections::BTreeMap;

use rusqlite::{Connection, params};

use crate::api::error::Result;
use crate::api::tag::Tags;
use crate::api::task::TaskId;
use crate::sqlite::columns::meta::meta;
use crate::sqlite::columns::task_options::TaskOptions;
use crate::sqlite::commit::connection::Database;
use crate::sqlite::ready::index::ALL_IN_TABLES;

/// The tags of tasks that the tables for searches lack so far.
#[derive(Debug)]
pub(in crate::sqlite) struct NewTags {
    /// Tags of tasks up to this number are in the tables; [`ALL_IN_TABLES`] if those of all are,
    /// because several processes write to the file.
    written_to: i64,
    /// The tags by task.
    tasks: BTreeMap<i64, Tags>,
    /// The number of these tags.
    count: usize,
}

impl NewTags {
    /// Reads the tags of the tasks whose tags are not in the tables.
    pub(in crate::sqlite) fn load(connection: &Database<'_>) -> Result<Self> {
        let written_to = meta(connection, "tags_watermark")?;
        let mut tags = Self { written_to, tasks: BTreeMap::new(), count: 0 };
        if written_to != ALL_IN_TABLES {
            let mut statement = connection.prepare_cached(include_str!("../sql/commit/tagged_tasks_above.sql"))?;
            let mut rows = statement.query([written_to])?;
            while let Some(row) = rows.next()? {
                let options: TaskOptions = row.get(1)?;
                tags.add(TaskId(row.get(0)?), &options.tags);
            }
        }
        Ok(tags)
    }

    /// Adds the tags of a new task.
    pub(in crate::sqlite) fn add(&mut self, task: TaskId, tags: &Tags) {
        if !tags.is_empty() {
            self.count += tags.len();
            self.tasks.insert(task.0, tags.clone());
        }
    }

    /// Replaces the tags of a task, unless its old ones are in the tables. Returns true if they are
    /// not.
    pub(in crate::sqlite) fn replace(&mut self, task: TaskId, tags: &Tags) -> bool {
        let is_to_come = !self.are_shared() && task.0 > self.written_to;
        let is_new = self.remove(task) || is_to_come;
        if is_new {
            self.add(task, tags);
        }
        is_new
    }

    /// Removes the tags of a task that is removed. Returns true if they were here.
    pub(in crate::sqlite) fn remove(&mut self, task: TaskId) -> bool {
        let removed = self.tasks.remove(&task.0);
        self.count -= removed.as_ref().map_or(0, Tags::len);
        removed.is_some()
    }

    /// Returns true if other processes read and write the tables. A tag that is not in the tables
    /// at the end of a transaction could then not be found.
    pub(in crate::sqlite) fn are_shared(&self) -> bool {
        self.written_to == ALL_IN_TABLES
    }

    /// Returns true if the tables have all tags.
    pub(in crate::sqlite) fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }

    /// Returns true if it is time to write the tags: there are more than `limit`, or as many tasks
    /// would have to be read to find them again, or other processes read the tables.
    pub(super) fn are_due(&self, next_task: i64, limit: usize) -> bool {
        if self.are_shared() {
            return !self.is_empty();
        }
        let behind = usize::try_from(next_task - 1 - self.written_to).unwrap_or(0);
        self.count > limit || behind > limit
    }

    /// Returns the task number up to which the tables are complete once the tags of tasks before
    /// `next_task` are written.
    pub(in crate::sqlite) fn tag_watermark(&self, next_task: i64) -> i64 {
        if self.are_shared() { ALL_IN_TABLES } else { next_task - 1 }
    }

    /// Takes out all tags, to be written, and records how far the tables go then.
    pub(in crate::sqlite) fn take(
        &mut self,
        connection: &Database<'_>,
        written_to: i64,
    ) -> Result<BTreeMap<i64, Tags>> {
        if self.written_to != written_to {
            connection
                .prepare_cached("UPDATE meta SET value = ? WHERE name = 'tags_watermark'")?
                .execute([written_to])?;
            self.written_to = written_to;
        }
        self.count = 0;
        Ok(std::mem::take(&mut self.tasks))
    }
}

/// Runs a read while tables in the connection's memory, which have all tags, hide those of the
/// file.
pub(in crate::sqlite) fn with_all<T>(
    connection: &Connection,
    new: NewTags,
    read: impl FnOnce() -> Result<T>,
) -> Result<T> {
    connection.pragma_update(None, "query_only", false)?;
    let outcome = connection
        .execute_batch(include_str!("../sql/commit/tags_in_memory.sql"))
        .map_err(Into::into)
        .and_then(|()| add(connection, new))
        .and_then(|()| read());
    // Dropped, because the remaining tables would hide the tables of the file from the next read.
    let dropped = connection.execute_batch("DROP TABLE IF EXISTS temp.tag; DROP TABLE IF EXISTS temp.task_tag");
    connection.pragma_update(None, "query_only", true)?;
    let read = outcome?;
    dropped?;
    Ok(read)
}

/// Adds the tags of new tasks to the tables in memory.
fn add(connection: &Connection, new: NewTags) -> Result<()> {
    for (task, tags) in new.tasks {
        for (key, value) in tags.iter() {
            let number: i64 = connection
                .prepare_cached(include_str!("../sql/commit/count_tag_in_memory.sql"))?
                .query_row([key, value], |row| row.get(0))?;
            connection
                .prepare_cached("INSERT INTO temp.task_tag (tag, task) VALUES (?, ?)")?
                .execute(params![number, task])?;
        }
    }
    Ok(())
}
