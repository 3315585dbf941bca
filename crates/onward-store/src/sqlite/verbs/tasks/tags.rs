//! The tags of tasks. They exist from the submit until the task is removed. An orchestration may
//! change its own.

use std::collections::BTreeMap;

use rusqlite::{OptionalExtension, params};

use crate::api::error::Result;
use crate::api::tag::Tags;
use crate::api::task::TaskId;
use crate::sqlite::columns::task_options::TaskOptions;
use crate::sqlite::commit::transaction::{LiveTask, Transaction};

impl Transaction<'_> {
    /// Writes the deferred tags to the tables that serve searches by tag.
    pub(in crate::sqlite) fn write_tags(&mut self) -> Result<()> {
        let tag_watermark = self.cache.tags.tag_watermark(self.cache.next_task);
        self.write_tags_up_to(tag_watermark)
    }

    /// Writes the deferred tags, and sets the watermark of the tables.
    pub(in crate::sqlite) fn write_tags_up_to(&mut self, tag_watermark: i64) -> Result<()> {
        let tasks = self.cache.tags.take(self.connection, tag_watermark)?;
        let mut by_tag: BTreeMap<(&str, &str), Vec<i64>> = BTreeMap::new();
        for (task, tags) in &tasks {
            tags.iter().for_each(|tag| by_tag.entry(tag).or_default().push(*task));
        }
        let mut note = self.connection.prepare_cached("INSERT INTO task_tag (tag, task) VALUES (?, ?)")?;
        for ((key, value), tasks) in by_tag {
            let number = self.count_tag(key, value, tasks.len())?;
            for task in tasks {
                note.execute([number, task])?;
            }
        }
        Ok(())
    }

    /// Adds to the number of tasks that have a tag, and returns the tag's number.
    fn count_tag(&mut self, key: &str, value: &str, tasks: usize) -> Result<i64> {
        let tasks = tasks.cast_signed();
        let mut look = self.connection.prepare_cached("SELECT number FROM tag WHERE key = ? AND value = ?")?;
        let number: Option<i64> = look.query_row([key, value], |row| row.get(0)).optional()?;
        if let Some(number) = number {
            self.connection
                .prepare_cached("UPDATE tag SET tasks = tasks + ? WHERE key = ? AND value = ?")?
                .execute(params![tasks, key, value])?;
            return Ok(number);
        }
        let number = self.next_tag()?;
        self.connection
            .prepare_cached("INSERT INTO tag (key, value, number, tasks) VALUES (?, ?, ?, ?)")?
            .execute(params![key, value, number, tasks])?;
        self.cache.next_tag = Some(number + 1);
        Ok(number)
    }

    /// Removes the tags of a task that is removed.
    pub(super) fn untag(&mut self, task: TaskId, tags: &Tags) -> Result<()> {
        if tags.is_empty() || self.cache.tags.remove(task) {
            return Ok(());
        }
        tags.iter().try_for_each(|(key, value)| self.drop_tag(task, key, value))
    }

    /// Removes a tag of a task from the tables.
    fn drop_tag(&self, task: TaskId, key: &str, value: &str) -> Result<()> {
        let left: Option<(i64, i64)> = self
            .connection
            .prepare_cached("UPDATE tag SET tasks = tasks - 1 WHERE key = ? AND value = ? RETURNING number, tasks")?
            .query_row([key, value], |row| Ok((row.get(0)?, row.get(1)?)))
            .optional()?;
        let Some((number, tasks)) = left else { return Ok(()) };
        self.connection.prepare_cached("DELETE FROM task_tag WHERE tag = ? AND task = ?")?.execute([number, task.0])?;
        if tasks == 0 {
            self.connection.prepare_cached("DELETE FROM tag WHERE key = ? AND value = ?")?.execute([key, value])?;
        }
        Ok(())
    }

    /// Replaces the tags of a running task.
    pub(in crate::sqlite::verbs) fn set_tags(&mut self, task: &LiveTask, tags: Tags) -> Result<()> {
        self.cache.running_rows.remove(task.id);
        if !self.cache.tags.replace(task.id, &tags) {
            self.change_tags(task.id, &task.options.tags, &tags)?;
        }
        let options = TaskOptions { tags, ..task.options.clone() };
        self.connection
            .prepare_cached("UPDATE task SET options = ? WHERE id = ?")?
            .execute(params![options, task.id.0])?;
        Ok(())
    }

    /// Changes the tags of a task whose earlier tags are in the tables.
    fn change_tags(&mut self, task: TaskId, before: &Tags, after: &Tags) -> Result<()> {
        let gone = before.iter().filter(|(key, value)| after.get(key) != Some(*value));
        for (key, value) in gone {
            self.drop_tag(task, key, value)?;
        }
        for (key, value) in after.iter().filter(|(key, value)| before.get(key) != Some(*value)) {
            let number = self.count_tag(key, value, 1)?;
            self.connection
                .prepare_cached("INSERT INTO task_tag (tag, task) VALUES (?, ?)")?
                .execute([number, task.0])?;
        }
        Ok(())
    }

    /// Returns the number for a new tag. A tag exists only while a task has it, so the highest
    /// number in the table is the last one in use.
    fn next_tag(&self) -> Result<i64> {
        if let Some(next) = self.cache.next_tag {
            return Ok(next);
        }
        let mut statement = self.connection.prepare_cached("SELECT coalesce(max(tag), 0) + 1 FROM task_tag")?;
        Ok(statement.query_row([], |row| row.get(0))?)
    }
}
