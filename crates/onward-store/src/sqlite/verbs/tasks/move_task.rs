//! Moving tasks to other queues.

use rusqlite::{OptionalExtension, params};

use crate::api::error::Result;
use crate::api::event::Change;
use crate::api::name::Name;
use crate::api::outcome::{Outcome, Refusal};
use crate::api::task::TaskId;
use crate::sqlite::columns::links::MOVING;
use crate::sqlite::commit::transaction::{LiveTask, Transaction, Verb};
use crate::sqlite::verbs::relations::batches::is_member;

impl Transaction<'_> {
    pub(in crate::sqlite) fn move_task(&mut self, id: TaskId, queue: &Name) -> Verb<Outcome> {
        let task = self.live_or_refuse(id)?;
        if let Some(text) = self.cache.names.refusal(Some(queue), None) {
            return Err(Refusal::Invalid(text).into());
        }
        self.cache.names.ensure_queue(self.connection, queue)?;
        let is_there = self.cache.names.lane(task.lane).is_some_and(|lane| lane.queue_name == *queue);
        if is_there {
            self.forget_move(&task)?;
            return Ok(Outcome::Moved);
        }
        if task.held.is_some() {
            self.connection
                .prepare_cached("INSERT OR REPLACE INTO moving (task, queue) VALUES (?, ?)")?
                .execute(params![id.0, queue.as_str()])?;
            self.add_link(id, MOVING)?;
            return Ok(Outcome::MoveRequested);
        }
        let collected = if is_member(&task) { self.leave_collection(&task)? } else { None };
        self.leave_line(&task.entry())?;
        let moved = self.change_lane(task, queue)?;
        self.enter_line(&moved.entry())?;
        if let Some((bytes, aggregate)) = collected.zip(moved.options.aggregate) {
            self.collect(id, moved.lane, aggregate, bytes)?;
        }
        Ok(Outcome::Moved)
    }

    /// Moves a task that is in no line to the queue for which somebody asked while it ran. The
    /// caller puts it where it then belongs.
    pub(in crate::sqlite) fn settle_move(&mut self, task: LiveTask) -> Result<LiveTask> {
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
            Some(queue) => self.change_lane(task, &Name::new(queue)?),
            None => Ok(task),
        }
    }

    /// Whether somebody asked for a running task to be moved.
    pub(in crate::sqlite) fn is_moving(&self, task: TaskId) -> Result<bool> {
        let mut statement = self.connection.prepare_cached("SELECT EXISTS (SELECT 1 FROM moving WHERE task = ?)")?;
        Ok(statement.query_row([task.0], |row| row.get(0))?)
    }

    fn change_lane(&mut self, task: LiveTask, queue: &Name) -> Result<LiveTask> {
        let Some(lane) = self.cache.names.lane(task.lane) else { return Ok(task) };
        let (kind, group, orchestration) = (lane.kind_name.clone(), lane.group_name.clone(), lane.orchestration);
        let lane = self.cache.names.ensure_lane(self.connection, queue, &kind, group.as_ref(), orchestration)?;
        self.connection.prepare_cached("UPDATE task SET lane = ? WHERE id = ?")?.execute([lane, task.id.0])?;
        self.log(task.id, lane, Change::Moved);
        self.hint.work += 1;
        Ok(LiveTask { lane, ..task })
    }

    /// Nobody wants a task moved any more, or it has ended.
    pub(in crate::sqlite) fn forget_move(&self, task: &LiveTask) -> Result<()> {
        if task.links & MOVING != 0 {
            self.connection.prepare_cached("DELETE FROM moving WHERE task = ?")?.execute([task.id.0])?;
        }
        Ok(())
    }
}
