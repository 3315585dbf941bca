//! Moves tasks to other queues.

use rusqlite::{OptionalExtension, params};

use crate::api::error::Result;
use crate::api::event::Change;
use crate::api::name::Name;
use crate::api::outcome::{Outcome, Refusal};
use crate::api::task::TaskId;
use crate::rules;
use crate::sqlite::columns::links::MOVING;
use crate::sqlite::commit::transaction::{LiveTask, Transaction, VerbResult};
use crate::sqlite::verbs::relations::batches::is_batch_item;

impl Transaction<'_> {
    /// Moves a task to another queue: at once, or after its attempt if it is running.
    pub(in crate::sqlite) fn move_task(&mut self, id: TaskId, queue: &Name) -> VerbResult<Outcome> {
        rules::queue::check_own(queue)?;
        let task = self.live_or_refuse(id)?;
        if let Some(text) = self.cache.names.refusal(Some(queue), None) {
            return Err(Refusal::Invalid(text).into());
        }
        self.cache.names.ensure_queue(self.connection, queue)?;
        let is_there =
            self.cache.names.sub_queue(task.sub_queue).is_some_and(|sub_queue| sub_queue.queue_name == *queue);
        if is_there {
            self.forget_move(&task)?;
            return Ok(Outcome::Moved);
        }
        if task.running.is_some() {
            self.connection
                .prepare_cached("INSERT OR REPLACE INTO moving (task, queue) VALUES (?, ?)")?
                .execute(params![id.0, queue.as_str()])?;
            self.add_link(id, MOVING)?;
            return Ok(Outcome::MoveRequested);
        }
        let collected = if is_batch_item(&task) { self.leave_pending_batch(&task)? } else { None };
        self.leave_list(&task.entry())?;
        let moved = self.change_sub_queue(task, queue)?;
        self.enter_list(&moved.entry())?;
        if let Some((bytes, aggregate)) = collected.zip(moved.options.aggregate) {
            self.add_to_batch(id, moved.sub_queue, aggregate, bytes)?;
        }
        Ok(Outcome::Moved)
    }

    /// Moves a task that is in no list to the queue that was requested while it ran. The caller
    /// adds it to its new list.
    pub(in crate::sqlite::verbs) fn complete_move(&mut self, task: LiveTask) -> Result<LiveTask> {
        if task.links & MOVING == 0 {
            return Ok(task);
        }
        let queue: Option<String> = self
            .connection
            .prepare_cached("SELECT queue FROM moving WHERE task = ?")?
            .query_row([task.id.0], |row| row.get(0))
            .optional()?;
        self.forget_move(&task)?;
        match queue {
            Some(queue) => self.change_sub_queue(task, &Name::new(queue)?),
            None => Ok(task),
        }
    }

    /// Returns true if a move was requested while the task ran.
    pub(in crate::sqlite::verbs) fn is_moving(&self, task: TaskId) -> Result<bool> {
        let mut statement = self.connection.prepare_cached("SELECT EXISTS (SELECT 1 FROM moving WHERE task = ?)")?;
        Ok(statement.query_row([task.0], |row| row.get(0))?)
    }

    /// Changes the sub-queue in a task's row.
    fn change_sub_queue(&mut self, task: LiveTask, queue: &Name) -> Result<LiveTask> {
        let Some(sub_queue) = self.cache.names.sub_queue(task.sub_queue) else { return Ok(task) };
        let (kind, group, orchestration) =
            (sub_queue.kind_name.clone(), sub_queue.group_name.clone(), sub_queue.orchestration);
        let sub_queue =
            self.cache.names.ensure_sub_queue(self.connection, queue, &kind, group.as_ref(), orchestration)?;
        self.connection
            .prepare_cached("UPDATE task SET sub_queue = ? WHERE id = ?")?
            .execute([sub_queue, task.id.0])?;
        self.log(task.id, sub_queue, Change::Moved);
        self.hint.work += 1;
        Ok(LiveTask { sub_queue, ..task })
    }

    /// Deletes the request to move a task.
    pub(in crate::sqlite::verbs) fn forget_move(&self, task: &LiveTask) -> Result<()> {
        if task.links & MOVING != 0 {
            self.connection.prepare_cached("DELETE FROM moving WHERE task = ?")?.execute([task.id.0])?;
        }
        Ok(())
    }
}
