//! Parents and children: a parent can wait for its children, and its failure cancels them.

use bytes::Bytes;
use rusqlite::{OptionalExtension, params};

use crate::api::dependency::{Dependencies, Dependency, OnDependencyFailure};
use crate::api::error::Result;
use crate::api::event::Change;
use crate::api::outcome::{Outcome, Refusal};
use crate::api::task::{Lease, NewTask, TaskId, TaskState, check_payload};
use crate::bounds;
use crate::rules::children;
use crate::rules::dependencies::Ended;
use crate::rules::orchestration;
use crate::sqlite::columns::links::{AWAITED, CHECKPOINT, CHILDREN};
use crate::sqlite::columns::task_options::TaskOptions;
use crate::sqlite::commit::transaction::{LiveTask, RunningAttempt, Transaction, VerbError, VerbResult};

impl Transaction<'_> {
    /// Rejects a parent that does not exist, and a child that would wait for its own parent.
    pub(in crate::sqlite::verbs) fn check_parent(&mut self, new: &NewTask) -> VerbResult<()> {
        let Some(parent) = new.parent else { return Ok(()) };
        self.flush_completions()?;
        match self.live(parent)? {
            Some(live) if awaits_children(&live) => self.check_cycle(parent, &on_tasks(&new.depends_on)),
            Some(_) => Ok(()),
            None if self.ended_state(parent)?.is_some() => Ok(()),
            None => Err(Refusal::TaskNotFound(parent).into()),
        }
    }

    /// Rejects dependencies that lead to the parent.
    fn check_cycle(&self, parent: TaskId, tasks: &[TaskId]) -> VerbResult<()> {
        children::check_cycle(parent, tasks, |task| self.open_of(task).map_err(VerbError::from))
    }

    /// Returns the tasks for whose end a task still waits.
    fn open_of(&self, task: TaskId) -> Result<Vec<TaskId>> {
        let mut statement =
            self.connection.prepare_cached("SELECT task FROM dependency WHERE dependent = ? ORDER BY task")?;
        let open = statement.query_map([task.0], |row| row.get(0).map(TaskId))?;
        Ok(open.collect::<rusqlite::Result<_>>()?)
    }

    /// Makes a new task a child of its parent. A parent that waits for its children also waits for
    /// this one. A parent that ended without completing cancels it.
    pub(in crate::sqlite::verbs) fn join_family(&mut self, id: TaskId, new: &NewTask) -> Result<()> {
        let Some(parent) = new.parent else { return Ok(()) };
        self.flush_completions()?;
        self.connection.prepare_cached("INSERT INTO child (parent, child) VALUES (?, ?)")?.execute([parent.0, id.0])?;
        let Some(live) = self.live(parent)? else {
            let ended = self.ended_state(parent)?;
            return if children::is_cancelled_at_once(ended) { self.cancel_child(id, parent, ended) } else { Ok(()) };
        };
        self.add_link(parent, CHILDREN)?;
        if awaits_children(&live)
            && self.is_live(id)?
            && is_no_circle(self.check_cycle(parent, &on_tasks(&new.depends_on)))?
        {
            self.add_dependency(id, parent)?;
        }
        Ok(())
    }

    /// Ends an attempt until all children have ended. If they have already, the task waits for a
    /// worker at once.
    pub(in crate::sqlite) fn await_children(
        &mut self,
        lease: Lease,
        checkpoint: &Bytes,
        on_failure: OnDependencyFailure,
    ) -> VerbResult<Outcome> {
        let (task, running) = self.running_under(lease)?;
        let kind = self.cache.names.sub_queue(task.sub_queue).map_or("", |sub_queue| sub_queue.kind_name.as_str());
        if task.options.orchestration {
            return Err(orchestration::waits_by_parking(kind).into());
        }
        check_payload("checkpoint", checkpoint.len(), self.payload_limit, kind)
            .map_err(|error| Refusal::Invalid(error.to_string()))?;
        let live = self.live_children(task.id)?;
        children::check_count(live.len())?;
        self.check_cycle(task.id, &live)?;
        let failed = self.failed_child(task.id, running.started_at)?;
        let state = match (failed, children::end_of_parent(failed, on_failure)) {
            _ if task.cancel_requested > 0 => self.end_running(&task, running, TaskState::Cancelled)?,
            (Some((child, ended)), Some(state)) => {
                self.record_error(&task, task.attempts.saturating_add(1), &children::child_error(child, ended))?;
                self.end_running(&task, running, state)?
            }
            _ => self.block(&task, running, (checkpoint, on_failure), &live)?,
        };
        Ok(Outcome::AwaitsChildren { state })
    }

    /// Returns the live children: at most one more than a task may await, so that the caller sees
    /// an excess.
    fn live_children(&self, parent: TaskId) -> Result<Vec<TaskId>> {
        let limit = bounds::AWAITED_CHILDREN.saturating_add(1).cast_signed();
        let mut statement = self.connection.prepare_cached(include_str!("../../sql/relations/live_children.sql"))?;
        let children = statement.query_map(params![parent.0, limit], |row| row.get(0).map(TaskId))?;
        Ok(children.collect::<rusqlite::Result<_>>()?)
    }

    /// Returns the first child that was submitted since `since` and did not complete.
    fn failed_child(&self, parent: TaskId, since: i64) -> Result<Option<(TaskId, TaskState)>> {
        let mut statement = self.connection.prepare_cached(include_str!("../../sql/relations/failed_child.sql"))?;
        let found: Option<(i64, i64)> =
            statement.query_row([parent.0, since], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
        Ok(found.and_then(|(child, state)| Some((TaskId(child), TaskState::from_code(state)?))))
    }

    /// Blocks a task until its children have ended.
    fn block(
        &mut self,
        task: &LiveTask,
        running: RunningAttempt,
        (checkpoint, on_failure): (&Bytes, OnDependencyFailure),
        live: &[TaskId],
    ) -> Result<TaskState> {
        self.cache.running_rows.remove(task.id);
        self.leave_lease(task.id)?;
        self.count_end(task.sub_queue)?;
        // The task's own dependencies have ended, so its policy for failures can now be that for
        // its children.
        let options = TaskOptions { on_dependency_failure: on_failure, ..task.options.clone() };
        self.connection.prepare_cached(include_str!("../../sql/relations/await_children.sql"))?.execute(params![
            task.id.0,
            running.claim,
            running.started_at,
            options,
            CHECKPOINT
        ])?;
        self.put_checkpoint(task.id, checkpoint)?;
        let blocked = LiveTask { blocked: true, scheduled: false, running: None, ..task.clone() };
        self.log(task.id, task.sub_queue, Change::Blocked);
        let blocked = self.complete_move(blocked)?;
        self.enter_list(&blocked.entry())?;
        self.hint.work += 1;
        live.iter().try_for_each(|child| self.add_dependency(*child, task.id))?;
        if live.is_empty() { self.unblock(&blocked) } else { Ok(TaskState::Blocked) }
    }

    /// Stores the checkpoint of a running task.
    pub(in crate::sqlite) fn save_checkpoint(&mut self, lease: Lease, checkpoint: &Bytes) -> VerbResult<Outcome> {
        let (task, _) = self.running_under(lease)?;
        let kind = self.cache.names.sub_queue(task.sub_queue).map_or("", |sub_queue| sub_queue.kind_name.as_str());
        if task.options.orchestration {
            return Err(orchestration::saves_no_checkpoint(kind).into());
        }
        check_payload("checkpoint", checkpoint.len(), self.payload_limit, kind)
            .map_err(|error| Refusal::Invalid(error.to_string()))?;
        self.put_checkpoint(task.id, checkpoint)?;
        self.add_link(task.id, CHECKPOINT)?;
        Ok(Outcome::Done)
    }

    /// Writes a checkpoint.
    fn put_checkpoint(&self, task: TaskId, checkpoint: &Bytes) -> Result<()> {
        self.connection
            .prepare_cached("INSERT OR REPLACE INTO task_checkpoint (task, checkpoint) VALUES (?, ?)")?
            .execute(params![task.0, checkpoint.as_ref()])?;
        Ok(())
    }

    /// Returns the checkpoint that an attempt left for the next one.
    pub(in crate::sqlite::verbs) fn checkpoint_of(&self, task: &LiveTask) -> Result<Option<Bytes>> {
        if task.links & CHECKPOINT == 0 {
            return Ok(None);
        }
        let mut statement = self.connection.prepare_cached("SELECT checkpoint FROM task_checkpoint WHERE task = ?")?;
        let checkpoint: Option<Vec<u8>> = statement.query_row([task.id.0], |row| row.get(0)).optional()?;
        Ok(checkpoint.map(Bytes::from))
    }

    /// Cancels the next child of an ended task, from a number on, and returns the child's number.
    pub(super) fn cancel_next_child(
        &mut self,
        parent: TaskId,
        ended: Ended,
        (from, up_to): (i64, i64),
    ) -> Result<Option<i64>> {
        if !children::are_cancelled(ended) {
            return Ok(None);
        }
        let child: Option<i64> = self
            .connection
            .prepare_cached("SELECT min(child) FROM child WHERE parent = ? AND child BETWEEN ? AND ?")?
            .query_row([parent.0, from, up_to], |row| row.get(0))?;
        if let Some(child) = child {
            self.cancel_child(TaskId(child), parent, ended)?;
        }
        Ok(child)
    }

    /// Cancels a child of an ended parent, or requests its cancellation if it runs.
    fn cancel_child(&mut self, child: TaskId, parent: TaskId, ended: Ended) -> Result<()> {
        match self.live(child)? {
            Some(live) if self.notify_of_cancel(&live)? => Ok(()),
            Some(live) if self.standing_of(&live)? == TaskState::Running => self.request_cancel(&live, 1),
            Some(live) => {
                self.record_error(&live, live.attempts, &children::error(parent, ended))?;
                self.end_unheld(&live, TaskState::Cancelled)
            }
            None => Ok(()),
        }
    }

    /// Deletes the record of a parent's child that was removed.
    pub(in crate::sqlite::verbs) fn forget_child(&self, child: TaskId, parent: Option<i64>) -> Result<()> {
        if let Some(parent) = parent {
            self.connection
                .prepare_cached("DELETE FROM child WHERE parent = ? AND child = ?")?
                .execute([parent, child.0])?;
        }
        Ok(())
    }
}

/// Returns true if a blocked task waits for its children. Only such a task has a checkpoint while
/// it is blocked and awaits no external completion.
fn awaits_children(task: &LiveTask) -> bool {
    task.blocked && task.links & (CHECKPOINT | AWAITED) == CHECKPOINT
}

/// Returns the dependencies on existing tasks.
fn on_tasks(dependencies: &Dependencies) -> Vec<TaskId> {
    let task = |dependency: &Dependency| match dependency {
        Dependency::Task(task) => Some(*task),
        Dependency::Position(_) => None,
    };
    dependencies.tasks.iter().filter_map(task).collect()
}

/// Converts the result of a check for circles to a boolean.
fn is_no_circle(checked: VerbResult<()>) -> Result<bool> {
    match checked {
        Ok(()) => Ok(true),
        Err(VerbError::Refused(_)) => Ok(false),
        Err(VerbError::Failed(error)) => Err(error),
    }
}
