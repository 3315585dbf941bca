//! The tags of tasks: kept from the submit until the task is removed, live or ended.

use rusqlite::{OptionalExtension, params};

use crate::error::Result;
use crate::sqlite::transaction::Transaction;
use crate::tag::Tags;
use crate::task::TaskId;

impl Transaction<'_> {
    /// Notes the tags of a new task.
    pub(in crate::sqlite) fn tag(&mut self, task: TaskId, tags: &Tags) -> Result<()> {
        for (key, value) in tags.iter() {
            let next = self.next_tag()?;
            let mut statement = self.connection.prepare_cached(include_str!("../sql/add_tag.sql"))?;
            let number: i64 = statement.query_row(params![key, value, next], |row| row.get(0))?;
            if number == next {
                self.cache.next_tag = Some(next + 1);
            }
            self.connection
                .prepare_cached("INSERT INTO tagged (tag, task) VALUES (?, ?)")?
                .execute([number, task.0])?;
        }
        Ok(())
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
