//! Dependencies between tasks, and the effects of an end on dependents.
//!
//! A dependency is a row of `dependency`. A task with dependents has the bit [`DEPENDENTS`] in the
//! column `links`, so the end of any other task needs no lookup. An ended task is queued in
//! [`Transaction::unpropagated_ends`]. The last step of a write updates the dependents of queued
//! tasks, up to a bound. What is left is stored in the table `unpropagated_end` for the next
//! sweeps.

use std::collections::VecDeque;

use rusqlite::params;

use crate::api::dependency::{Dependencies, Dependency};
use crate::api::error::Result;
use crate::api::event::Change;
use crate::api::outcome::Refusal;
use crate::api::task::{TaskId, TaskState};
use crate::api::timestamp::Timestamp;
use crate::bounds;
use crate::rules;
use crate::rules::dependencies::{self, Dependent, Ended, InitialState};
use crate::sqlite::columns::links::{AWAITED, BATCH, CHECKPOINT, CHILDREN, DEPENDENTS};
use crate::sqlite::commit::prepared_statements;
use crate::sqlite::commit::transaction::{LiveTask, Transaction, VerbResult};

/// An ended task whose dependents are to be updated.
#[derive(Debug, Clone, Copy)]
pub(in crate::sqlite) struct UnpropagatedEnd {
    /// Its position in the table `unpropagated_end`; `None` if it is not in the table.
    number: Option<i64>,
    /// The ended task.
    task: TaskId,
    /// The way in which it ended.
    ended: Ended,
    /// The highest task number at the time of the end. A later task depends on the outcome of a
    /// retry instead.
    up_to: i64,
    /// The number of the next child to cancel; the largest number if none is cancelled.
    next_child: i64,
    /// The number of the next item to end, if it is a batch with items left.
    next_item: Option<i64>,
}

/// A task that depends on an ended one.
struct DependentOf {
    /// The dependent.
    task: TaskId,
    /// True if it also depends on other tasks that have not ended.
    for_others: bool,
}

impl Transaction<'_> {
    /// Rejects dependencies on tasks that do not exist.
    pub(in crate::sqlite::verbs) fn check_dependencies(&mut self, dependencies: &Dependencies) -> VerbResult<()> {
        self.flush_completions()?;
        for dependency in &dependencies.tasks {
            match *dependency {
                Dependency::Task(task) => {
                    if self.dependent(task)? == Dependent::Ended(task, None) {
                        return Err(Refusal::DependencyNotFound(task).into());
                    }
                }
                Dependency::Position(position) => return Err(dependencies::no_position(position).into()),
            }
        }
        Ok(())
    }

    /// Returns the state in which a new task begins, by its dependencies.
    pub(in crate::sqlite::verbs) fn initial_state(&mut self, dependencies: &Dependencies) -> Result<InitialState> {
        if dependencies.is_empty() {
            return Ok(InitialState::Free);
        }
        self.flush_completions()?;
        let mut found = Vec::with_capacity(dependencies.tasks.len());
        for dependency in &dependencies.tasks {
            if let Dependency::Task(task) = *dependency {
                found.push(self.dependent(task)?);
            }
        }
        Ok(dependencies::at_submission(&found, dependencies.on_failure))
    }

    /// Returns the state of a dependency: live, or the way in which it ended.
    fn dependent(&self, task: TaskId) -> Result<Dependent> {
        let is_known = self.cache.running_rows.get(task).is_some() || self.cache.index.has_waiting_row(task);
        if is_known || self.is_live(task)? {
            return Ok(Dependent::On(task));
        }
        Ok(Dependent::Ended(task, self.ended_state(task)?))
    }

    /// Returns true if a task is live.
    pub(super) fn is_live(&self, task: TaskId) -> Result<bool> {
        let mut statement = self.connection.prepare_cached("SELECT EXISTS (SELECT 1 FROM task WHERE id = ?)")?;
        Ok(statement.query_row([task.0], |row| row.get(0))?)
    }

    /// Applies the outcome of its dependencies to a task that was just inserted as blocked.
    pub(in crate::sqlite::verbs) fn apply_initial_state(
        &mut self,
        id: TaskId,
        initial_state: &InitialState,
    ) -> Result<()> {
        match initial_state {
            InitialState::Free => Ok(()),
            InitialState::Blocked(open) => open.iter().try_for_each(|task| self.add_dependency(*task, id)),
            InitialState::Ends(state, dependency, ended) => {
                let Some(live) = self.live(id)? else { return Ok(()) };
                self.end_dependent(&live, *state, *dependency, *ended)
            }
        }
    }

    /// Makes a blocked task wait for a live one.
    pub(super) fn add_dependency(&mut self, task: TaskId, dependent: TaskId) -> Result<()> {
        self.connection.prepare_cached(prepared_statements::ADD_DEPENDENCY)?.execute([task.0, dependent.0])?;
        self.add_link(task, DEPENDENTS)
    }

    /// Adds a link to the row of a live task, and to its cached row.
    pub(in crate::sqlite::verbs) fn add_link(&mut self, task: TaskId, link: u8) -> Result<()> {
        let mut is_marked = false;
        let mut mark = |task: &mut LiveTask| {
            is_marked |= task.links & link != 0;
            task.links |= link;
        };
        self.cache.running_rows.get_mut(task).map(&mut mark);
        self.cache.index.waiting_row_mut(task).map(&mut mark);
        self.cache.index.idle_row_mut(task).map(&mut mark);
        if !is_marked {
            self.connection.prepare_cached(prepared_statements::ADD_LINK)?.execute(params![link, task.0])?;
        }
        Ok(())
    }

    /// Handles the relations of an ended task: it waits for nothing any more, and the update of its
    /// dependents is queued.
    pub(in crate::sqlite::verbs) fn propagate_end(&mut self, task: &LiveTask, ended: Ended) -> Result<()> {
        if task.blocked {
            self.connection.prepare_cached("DELETE FROM dependency WHERE dependent = ?")?.execute([task.id.0])?;
        }
        if task.links & CHECKPOINT != 0 {
            self.connection.prepare_cached("DELETE FROM task_checkpoint WHERE task = ?")?.execute([task.id.0])?;
        }
        if task.links & AWAITED != 0 {
            self.forget_awaited(task.id)?;
        }
        self.forget_move(task)?;
        let leaves_children = task.links & CHILDREN != 0 && rules::children::follow(ended, task.options.orchestration);
        if task.links & (DEPENDENTS | BATCH) != 0 || leaves_children {
            let next_child = if leaves_children { 0 } else { i64::MAX };
            let next_item = (task.links & BATCH != 0).then_some(0);
            self.unpropagated_ends.push_back(UnpropagatedEnd {
                next_child,
                next_item,
                ..self.end_to_propagate(task.id, ended)
            });
        }
        Ok(())
    }

    /// Queues the update of the dependents of a completed task.
    pub(in crate::sqlite::verbs) fn queue_propagation(&mut self, task: TaskId) {
        let end = self.end_to_propagate(task, Some(TaskState::Completed));
        self.unpropagated_ends.push_back(end);
    }

    /// Returns the queue entry of an ended task without items and without children to cancel.
    fn end_to_propagate(&self, task: TaskId, ended: Ended) -> UnpropagatedEnd {
        let up_to = self.cache.next_task - 1;
        UnpropagatedEnd { number: None, task, ended, up_to, next_child: i64::MAX, next_item: None }
    }

    /// Updates the dependents of ended tasks in the order of the ends, at most [`bounds::CASCADE`]
    /// of them. The next sweep continues.
    pub(in crate::sqlite) fn propagate_ends(&mut self) -> Result<()> {
        if self.unpropagated_ends.is_empty() && !self.cache.has_unpropagated_ends {
            return Ok(());
        }
        let mut queue = self.read_unpropagated()?;
        // Entries in the table are older, so they come first. New ones wait until all of those were
        // read.
        let is_whole = queue.len() < bounds::CASCADE;
        for _ in 0..bounds::CASCADE {
            if is_whole {
                queue.append(&mut self.unpropagated_ends);
            }
            let Some(front) = queue.front_mut() else { break };
            if !self.propagate_next(front)? {
                self.forget_unpropagated(*front)?;
                queue.pop_front();
            }
        }
        self.note_progress(queue.front())?;
        queue.append(&mut self.unpropagated_ends);
        self.cache.has_unpropagated_ends = !is_whole || !queue.is_empty();
        queue.into_iter().filter(|end| end.number.is_none()).try_for_each(|end| self.save_unpropagated(end))
    }

    /// Reads the ends in the table, whose dependents earlier writes did not all update.
    fn read_unpropagated(&self) -> Result<VecDeque<UnpropagatedEnd>> {
        if !self.cache.has_unpropagated_ends {
            return Ok(VecDeque::new());
        }
        let mut statement = self.connection.prepare_cached(
            "SELECT number, task, state, up_to, next_child, next_item FROM unpropagated_end ORDER BY number LIMIT ?",
        )?;
        let rows = statement.query_map([bounds::CASCADE.cast_signed()], |row| {
            let ended = TaskState::from_code(row.get(2)?);
            Ok(UnpropagatedEnd {
                number: row.get(0)?,
                task: TaskId(row.get(1)?),
                ended,
                up_to: row.get(3)?,
                next_child: row.get(4)?,
                next_item: Some(row.get(5)?).filter(|next| *next < i64::MAX),
            })
        })?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// Writes an end to the table, for the next sweep.
    fn save_unpropagated(&self, end: UnpropagatedEnd) -> Result<()> {
        let code = end.ended.map_or(0, TaskState::code);
        self.connection
            .prepare_cached(
                "INSERT INTO unpropagated_end (task, state, up_to, next_child, next_item) VALUES (?, ?, ?, ?, ?)",
            )?
            .execute(params![end.task.0, code, end.up_to, end.next_child, end.next_item.unwrap_or(i64::MAX)])?;
        Ok(())
    }

    /// Writes the progress of an end in the table.
    fn note_progress(&self, end: Option<&UnpropagatedEnd>) -> Result<()> {
        if let Some(UnpropagatedEnd { number: Some(number), next_child, next_item, .. }) = end {
            self.connection
                .prepare_cached("UPDATE unpropagated_end SET next_child = ?, next_item = ? WHERE number = ?")?
                .execute([*next_child, next_item.unwrap_or(i64::MAX), *number])?;
        }
        Ok(())
    }

    /// Deletes an end whose effects are complete from the table.
    fn forget_unpropagated(&self, end: UnpropagatedEnd) -> Result<()> {
        if let Some(number) = end.number {
            self.connection.prepare_cached("DELETE FROM unpropagated_end WHERE number = ?")?.execute([number])?;
        }
        Ok(())
    }

    /// Updates one dependent, ends one item, or cancels one child of an ended task. Returns true if
    /// there may be more.
    fn propagate_next(&mut self, end: &mut UnpropagatedEnd) -> Result<bool> {
        let mut dependents = self.first_dependents(*end)?.into_iter();
        if let Some(dependent) = dependents.next() {
            self.connection
                .prepare_cached(prepared_statements::DROP_DEPENDENCY)?
                .execute([end.task.0, dependent.task.0])?;
            self.propagate_to_dependent(*end, &dependent)?;
            let has_more = dependents.next().is_some() || end.next_item.is_some();
            return Ok(has_more || rules::children::are_cancelled(end.ended));
        }
        if let Some(from) = end.next_item {
            end.next_item = self.end_next_item(end.task, end.ended, from)?;
            return Ok(true);
        }
        let child = self.cancel_next_child(end.task, end.ended, (end.next_child, end.up_to))?;
        end.next_child = child.map_or(end.next_child, |child| child + 1);
        Ok(child.is_some())
    }

    /// Returns the first dependent of a task, and a second one if there are more.
    fn first_dependents(&self, end: UnpropagatedEnd) -> Result<Vec<DependentOf>> {
        let mut statement = self.connection.prepare_cached(prepared_statements::FIRST_DEPENDENTS)?;
        let dependents = statement.query_map([end.task.0, end.up_to], |row| {
            Ok(DependentOf { task: TaskId(row.get(0)?), for_others: row.get(1)? })
        })?;
        Ok(dependents.collect::<rusqlite::Result<_>>()?)
    }

    /// Applies an end to a dependent, which becomes unblocked, ends, or continues to wait for other
    /// tasks.
    fn propagate_to_dependent(&mut self, end: UnpropagatedEnd, dependent: &DependentOf) -> Result<()> {
        if dependent.for_others && end.ended == Some(TaskState::Completed) {
            return Ok(());
        }
        let Some(task) = self.blocked(dependent.task)? else { return Ok(()) };
        match dependencies::end_of_dependent(end.ended, task.options.on_dependency_failure) {
            Some(state) => self.end_dependent(&task, state, end.task, end.ended),
            None if dependent.for_others => Ok(()),
            None => self.unblock(&task).map(drop),
        }
    }

    /// Reads a blocked task, from memory if possible.
    fn blocked(&self, task: TaskId) -> Result<Option<LiveTask>> {
        match self.cache.index.waiting_row(task) {
            Some(fresh) => Ok(Some(fresh.clone())),
            None => self.live(task),
        }
    }

    /// Ends a dependent because of its dependency.
    fn end_dependent(&mut self, task: &LiveTask, state: TaskState, dependency: TaskId, ended: Ended) -> Result<()> {
        self.record_error(task, task.attempts, &dependencies::error(dependency, ended))?;
        self.end_unheld(task, state)
    }

    /// Unblocks a task, which then waits for a worker or for its due time.
    pub(in crate::sqlite) fn unblock(&mut self, task: &LiveTask) -> Result<TaskState> {
        if self.stands_aside(task, TaskState::Waiting)? {
            return Ok(TaskState::Blocked);
        }
        let run_at = Timestamp::from_microseconds(task.run_at).max(self.now);
        let scheduled = rules::due::state(run_at, self.now) == TaskState::Scheduled;
        let run_at = run_at.as_microseconds();
        self.connection.prepare_cached(prepared_statements::UNBLOCK)?.execute(params![scheduled, run_at, task.id.0])?;
        let waiting = LiveTask { blocked: false, scheduled, run_at, ..task.clone() };
        self.cache.index.unblock(self.connection, &waiting)?;
        if !scheduled {
            self.enter_list_when_due(task.scheduled_list(), waiting.entry().sort_key())?;
        }
        self.log(task.id, task.sub_queue, Change::Unblocked);
        self.hint.work += 1;
        self.let_go(&waiting)
    }
}
