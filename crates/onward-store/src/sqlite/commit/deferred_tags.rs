//! Deferred tags: the tags of new tasks that are not yet in the tables `tag` and `task_tag`.
//!
//! A task's tags are in its row, including those that an orchestration sets later. The tables serve
//! searches by tag, and are written in bulk: each tag of a task is on another page there. Twenty
//! tags written with every submit would change twenty pages, where the task itself changes one. A
//! search writes the deferred tags first. After a restart they are read from the rows.

use std::collections::BTreeMap;

use rusqlite::{Connection, params};

use crate::api::error::Result;
use crate::api::tag::Tags;
use crate::api::task::TaskId;
use crate::sqlite::columns::meta::meta;
use crate::sqlite::columns::task_options::TaskOptions;
use crate::sqlite::commit::connection::Database;
use crate::sqlite::ready::index::ALL_IN_TABLES;

/// The tags of tasks that are not yet in the tables for searches.
#[derive(Debug)]
pub(in crate::sqlite) struct NewTags {
    /// The watermark: the tags of tasks up to this number are in the tables. It is
    /// [`ALL_IN_TABLES`] if several processes write to the file.
    written_to: i64,
    /// The tags by task.
    tasks: BTreeMap<i64, Tags>,
    /// The number of tags in `tasks`.
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

    /// Replaces the tags of a task whose tags are not in the tables. Returns false, and does
    /// nothing, if they are.
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

    /// Returns true if other processes read the tables. All tags must then be in the tables at the
    /// end of each transaction.
    pub(in crate::sqlite) fn are_shared(&self) -> bool {
        self.written_to == ALL_IN_TABLES
    }

    /// Returns true if no tags are deferred.
    pub(in crate::sqlite) fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }

    /// Returns true if it is time to write the tags: more than `limit` are deferred, a restart
    /// would have to read the rows of more than `limit` tasks, or other processes read the tables.
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

    /// Takes out all tags, which the caller writes, and records the new watermark.
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

/// Runs a read while temporary tables, which include the deferred tags, hide the tables of the
/// file. A read-only process uses it, because it cannot write the tags.
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
    // Dropped also after an error: the temporary tables would hide the file's from the next read.
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
