//! Operators' control of tasks: cancel, retry, pause and resume.

use rusqlite::{OptionalExtension, params};

use crate::api::error::Result;
use crate::api::event::Change;
use crate::api::name::Name;
use crate::api::notification::TaskNotification;
use crate::api::orchestration::Hold;
use crate::api::outcome::{Outcome, Refusal};
use crate::api::task::{Priority, TaskId, TaskState};
use crate::api::timestamp::Timestamp;
use crate::api::write::Scope;
use crate::rules;
use crate::rules::attempt::{check_deadline, expiry_at_submission};
use crate::rules::orchestration::{self, never_started};
use crate::sqlite::columns::task_options::TaskOptions;
use crate::sqlite::commit::transaction::{LiveTask, StatisticsChange, Transaction, VerbResult};
use crate::sqlite::ready::index::Entry;

/// The columns of an ended task that `retry` needs.
pub(in crate::sqlite) struct EndedTask {
    /// The sub-queue's number.
    pub(in crate::sqlite) sub_queue: i64,
    /// The code of the final state.
    state: i64,
    /// The priority.
    priority: u8,
    /// The time of the end.
    finished_at: i64,
    /// The rarer options.
    pub(in crate::sqlite) options: TaskOptions,
    /// The unique key.
    key: Option<String>,
}

impl EndedTask {
    /// Returns true if it is an orchestration that still accepts messages.
    pub(in crate::sqlite::verbs) fn takes_messages(&self) -> bool {
        self.options.orchestration && TaskState::from_code(self.state).is_some_and(orchestration::takes_messages)
    }
}

impl Transaction<'_> {
    /// Cancels a task, or requests its cancellation if it runs.
    pub(in crate::sqlite) fn cancel(&mut self, task: TaskId) -> VerbResult<Outcome> {
        let live = self.live_or_refuse(task)?;
        if self.notify_of_cancel(&live)? {
            return Ok(Outcome::CancelRequested);
        }
        if self.standing_of(&live)? == TaskState::Running {
            self.request_cancel(&live, 1)?;
            return Ok(Outcome::CancelRequested);
        }
        self.end_unheld(&live, TaskState::Cancelled)?;
        Ok(Outcome::Cancelled)
    }

    /// Requests the cancellation of a running task. A `mark` of 2 also takes its key away.
    pub(in crate::sqlite::verbs) fn request_cancel(&mut self, task: &LiveTask, mark: u8) -> Result<()> {
        self.cache.running_rows.remove(task.id);
        if mark > 1
            && let Some(key) = &task.key
        {
            let kind = self.kind_of(task.sub_queue);
            self.cache.index.free_key(self.connection, kind, key, task.id.0)?;
        }
        self.connection
            .prepare_cached("UPDATE task SET cancel_requested = max(cancel_requested, ?) WHERE id = ?")?
            .execute(params![mark, task.id.0])?;
        if task.cancel_requested == 0 {
            self.log(task.id, task.sub_queue, Change::CancelRequested);
            self.hint.transitions += 1;
        }
        Ok(())
    }

    /// Retries an ended task under its old number. Its attempts begin at zero.
    pub(in crate::sqlite) fn retry(&mut self, task: TaskId) -> VerbResult<Outcome> {
        if let Some(live) = self.live(task)? {
            return Err(Refusal::NotEnded { task, state: live.state() }.into());
        }
        let ended = self.ended(task)?.ok_or(Refusal::TaskNotFound(task))?;
        if ended.options.orchestration && self.instance(task)?.hold == Hold::Unstarted {
            return Err(never_started(task).into());
        }
        if let Some(run) = self.run_of_step(&ended.options)? {
            return Err(Refusal::StepOfRun { task, run }.into());
        }
        if let Some(by) = self.key_taken_by(&ended)? {
            return Err(Refusal::KeyTaken { task, by }.into());
        }
        check_deadline(task, ended.options.deadline, self.now)?;
        let items = self.items_to_retry(task, &ended)?;
        self.take_key_again(task, &ended)?;
        self.revive(task, &ended)?;
        self.hint.work += 1;
        self.retry_items(task, items)?;
        self.add_to_batch_again(task, &ended)?;
        Ok(Outcome::Done)
    }

    /// Returns the active workflow run that a task is a step of.
    fn run_of_step(&self, step: &TaskOptions) -> Result<Option<TaskId>> {
        let Some(parent) = step.parent.filter(|_| step.report.is_some()) else { return Ok(None) };
        let Some(parent) = self.live(parent)? else { return Ok(None) };
        let kind = self.cache.names.sub_queue(parent.sub_queue).map_or("", |sub_queue| sub_queue.kind_name.as_str());
        Ok(orchestration::run_of_step(step.report, Some((parent.id, kind, parent.state()))))
    }

    /// Moves an ended task from history back to the live tasks.
    pub(in crate::sqlite::verbs) fn revive(&mut self, task: TaskId, ended: &EndedTask) -> Result<()> {
        if let Some(sub_queue) = self.cache.names.sub_queue(ended.sub_queue) {
            let queue = sub_queue.queue_name.clone();
            self.cache.names.ensure_queue(self.connection, &queue)?;
        }
        let expires_at =
            expiry_at_submission(ended.options.ttl, ended.options.deadline, self.now).map(Timestamp::as_microseconds);
        let now = self.now.as_microseconds();
        // The lease may still cover this number, because other tasks of its range are running.
        self.leave_lease(task)?;
        self.connection
            .prepare_cached(include_str!("../../sql/tasks/move_from_history.sql"))?
            .execute(params![task.0, now, expires_at])?;
        self.connection.prepare_cached("DELETE FROM history WHERE id = ?")?.execute([task.0])?;
        self.forget_retention(task, ended.finished_at, &ended.options)?;
        self.connection.prepare_cached("DELETE FROM progress WHERE task = ?")?.execute([task.0])?;
        let hold = if ended.options.orchestration { self.instance(task)?.hold } else { Hold::None };
        let blocked = ended.options.aggregate.is_some() || self.is_put_aside(task, hold, TaskState::Waiting)?;
        if blocked {
            self.connection.prepare_cached("UPDATE task SET scheduled = 2 WHERE id = ?")?.execute([task.0])?;
        }
        if ended.options.items.is_some() {
            self.note_batch(task)?;
        }
        self.enter_list(&Entry {
            id: task.0,
            list: ended.sub_queue,
            priority: Priority(ended.priority),
            scheduled: false,
            blocked,
            run_at: now,
            expires_at,
            key: None,
            affinity_key: ended.options.affinity.as_ref(),
        })?;
        self.uncount(ended.sub_queue, ended.state);
        self.log(task, ended.sub_queue, Change::Retried);
        self.notify(TaskNotification::Retried { task });
        Ok(())
    }

    /// Reads an ended task.
    pub(in crate::sqlite) fn ended(&self, task: TaskId) -> Result<Option<EndedTask>> {
        let mut statement = self
            .connection
            .prepare_cached("SELECT sub_queue, state, priority, finished_at, options, key FROM history WHERE id = ?")?;
        let ended = statement.query_row([task.0], |row| {
            Ok(EndedTask {
                sub_queue: row.get(0)?,
                state: row.get(1)?,
                priority: row.get(2)?,
                finished_at: row.get(3)?,
                options: row.get(4)?,
                key: row.get(5)?,
            })
        });
        Ok(ended.optional()?)
    }

    /// Returns the active task that holds the key of an ended one.
    pub(in crate::sqlite::verbs) fn key_taken_by(&self, ended: &EndedTask) -> Result<Option<TaskId>> {
        let Some(key) = &ended.key else { return Ok(None) };
        let owner = self.cache.index.key_owner(self.connection, self.kind_of(ended.sub_queue), key)?;
        Ok(owner.map(TaskId))
    }

    /// Gives a task its unique key again.
    pub(in crate::sqlite::verbs) fn take_key_again(&mut self, task: TaskId, ended: &EndedTask) -> Result<()> {
        let Some(key) = &ended.key else { return Ok(()) };
        let kind = self.kind_of(ended.sub_queue);
        self.connection
            .prepare_cached("DELETE FROM retained_key WHERE kind = ? AND key = ?")?
            .execute(params![kind, key])?;
        self.cache.index.take_key(self.connection, kind, key, task.0)?;
        Ok(())
    }

    /// Subtracts an ended task in history from the statistics.
    pub(super) fn uncount(&mut self, sub_queue: i64, state: i64) {
        if let Some(state) = TaskState::from_code(state) {
            let base = self.cache.names.ungrouped_of(sub_queue);
            let change: &mut StatisticsChange = self.statistics.entry((base, state)).or_default();
            change.in_history -= 1;
        }
    }

    /// Pauses a scope.
    pub(in crate::sqlite) fn pause(&mut self, scope: &Scope, until: Option<Timestamp>) -> VerbResult<Outcome> {
        self.ensure_scope(scope)?;
        self.cache.pauses.set(self.connection, scope, until)?;
        self.refresh_scope(scope)?;
        self.cache.queues.reconfigured(self.connection)?;
        self.hint.work += 1;
        Ok(Outcome::Done)
    }

    /// Creates a queue or kind that is paused before its first task.
    fn ensure_scope(&mut self, scope: &Scope) -> VerbResult<()> {
        let (queue, kind) = match scope {
            Scope::All => (None, None),
            Scope::Queue(name) => (Some(name), None),
            Scope::Kind(name) => (None, Some(name)),
            Scope::Group(name) => return self.ensure_paused_group(name),
        };
        queue.map_or(Ok(()), rules::queue::check_own)?;
        if let Some(text) = self.cache.names.refusal(queue, kind) {
            return Err(Refusal::Invalid(text).into());
        }
        if let Some(queue) = queue {
            self.cache.names.ensure_queue(self.connection, queue)?;
        }
        if let Some(kind) = kind {
            self.cache.names.ensure_kind(self.connection, kind)?;
        }
        Ok(())
    }

    /// Creates a group that is paused before its first task.
    fn ensure_paused_group(&mut self, group: &Name) -> VerbResult<()> {
        if let Some(text) = self.cache.names.group_refusal(Some(group)) {
            return Err(Refusal::Invalid(text).into());
        }
        self.cache.names.ensure_group(self.connection, group)?;
        Ok(())
    }

    /// Applies a pause or a resume to the claimable heads, if the scope is a group.
    pub(in crate::sqlite::verbs) fn refresh_scope(&mut self, scope: &Scope) -> Result<()> {
        let Scope::Group(name) = scope else { return Ok(()) };
        self.cache.names.group(name).map_or(Ok(()), |group| self.refresh_group(group))
    }

    /// Ends the pause of a scope.
    pub(in crate::sqlite) fn resume(&mut self, scope: &Scope) -> VerbResult<Outcome> {
        if self.cache.pauses.clear(self.connection, scope)? {
            self.refresh_scope(scope)?;
            self.cache.queues.reconfigured(self.connection)?;
            self.hint.work += 1;
        }
        Ok(Outcome::Done)
    }
}
