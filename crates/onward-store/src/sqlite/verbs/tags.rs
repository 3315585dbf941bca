//! The tags of tasks: kept from the submit until the task is removed, live or ended.

use rusqlite::{OptionalExtension, params};

use crate::error::Result;
use crate::sqlite::transaction::Transaction;
use crate::tag::Tags;
use crate::task::TaskId;

impl Transaction<'_> {
    /// Notes the tags of a new task.
    pub(in crate::sqlite) fn tag(&mut self, task: TaskId, tags: &Tags) -> Result<()> {
        let connection = self.connection;
        let mut look = connection.prepare_cached("SELECT number FROM tag WHERE key = ? AND value = ?")?;
        let mut note = connection.prepare_cached("INSERT INTO tagged (tag, task) VALUES (?, ?)")?;
        for (key, value) in tags.iter() {
            let number: Option<i64> = look.query_row([key, value], |row| row.get(0)).optional()?;
            let number = match number {
                Some(number) => {
                    connection
                        .prepare_cached("UPDATE tag SET tasks = tasks + 1 WHERE key = ? AND value = ?")?
                        .execute([key, value])?;
                    number
                }
                None => self.add_tag(key, value)?,
            };
            note.execute([number, task.0])?;
        }
        Ok(())
    }

    /// Adds a tag that no other task has, and answers its number.
    fn add_tag(&mut self, key: &str, value: &str) -> Result<i64> {
        let number = self.next_tag()?;
        self.connection
            .prepare_cached("INSERT INTO tag (key, value, number, tasks) VALUES (?, ?, ?, 1)")?
            .execute(params![key, value, number])?;
        self.cache.next_tag = Some(number + 1);
        Ok(number)
    }

    /// Forgets the tags of a task that is removed.
    pub(in crate::sqlite) fn untag(&self, task: TaskId, tags: &Tags) -> Result<()> {
        for (key, value) in tags.iter() {
            let left: Option<(i64, i64)> = self
                .connection
                .prepare_cached("UPDATE tag SET tasks = tasks - 1 WHERE key = ? AND value = ? RETURNING number, tasks")?
                .query_row([key, value], |row| Ok((row.get(0)?, row.get(1)?)))
                .optional()?;
            let Some((number, tasks)) = left else { continue };
            self.connection
                .prepare_cached("DELETE FROM tagged WHERE tag = ? AND task = ?")?
                .execute([number, task.0])?;
            if tasks == 0 {
                self.connection.prepare_cached("DELETE FROM tag WHERE key = ? AND value = ?")?.execute([key, value])?;
            }
        }
        Ok(())
    }

    /// The number of the next tag that is new. A tag is on a task for as long as it is there, so the highest in use is on one.
    fn next_tag(&self) -> Result<i64> {
        if let Some(next) = self.cache.next_tag {
            return Ok(next);
        }
        let mut statement = self.connection.prepare_cached("SELECT coalesce(max(tag), 0) + 1 FROM tagged")?;
        Ok(statement.query_row([], |row| row.get(0))?)
    }
}
