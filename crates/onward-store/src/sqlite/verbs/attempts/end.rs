//! Ends of attempts.

use std::time::Duration;

use bytes::Bytes;
use rusqlite::params;

use crate::api::error::Result;
use crate::api::event::Change;
use crate::api::notification::TaskNotification;
use crate::api::outcome::{Failed, Outcome, Refusal};
use crate::api::task::{ByteProgress, Lease, SessionId, TaskId, TaskState};
use crate::api::timestamp::Timestamp;
use crate::api::write::AfterFailure;
use crate::bounds;
use crate::rules;
use crate::rules::attempt::{self, AfterAttempt, FailedAttempt, cut};
use crate::sqlite::columns::links::MOVING;
use crate::sqlite::commit::transaction::{LiveTask, RunningAttempt, Transaction, VerbResult};
use crate::sqlite::commit::transition_log::end_change;
use crate::sqlite::verbs::attempts::leases::Leased;
use crate::sqlite::verbs::relations::batches::is_batch_item;

/// The end of a task.
struct End<'a> {
    /// The final state.
    state: TaskState,
    /// The attempts, including the last one if it counts.
    attempts: u32,
    /// The claims.
    claims: u32,
    /// The start of the last attempt.
    started_at: Option<i64>,
    /// The result of a completed task.
    result: Option<&'a Bytes>,
}

impl Transaction<'_> {
    /// Ends a running task as completed; the caller counts the attempt.
    pub(super) fn end_completed(
        &mut self,
        task: &LiveTask,
        running: RunningAttempt,
        result: Option<&Bytes>,
    ) -> Result<()> {
        self.end(
            task,
            &End {
                state: TaskState::Completed,
                attempts: task.attempts.saturating_add(1),
                claims: running.claim,
                started_at: Some(running.started_at),
                result,
            },
        )
    }

    /// Ends an attempt with an error. The rules decide between a retry, a hold and the end.
    pub(in crate::sqlite) fn fail(&mut self, lease: Lease, error: &str, next: AfterFailure) -> VerbResult<Outcome> {
        let (task, running) = self.running_under(lease)?;
        self.record_error(&task, task.attempts.saturating_add(1), error)?;
        let failed = FailedAttempt {
            cancel_requested: task.cancel_requested > 0,
            attempts: task.attempts,
            expires_at: task.expires_at.map(Timestamp::from_microseconds),
            is_rated: self.is_rated(task.sub_queue)?,
            // A batch with items to cancel must release its lease, as a moving task must, so that
            // they can leave it.
            is_moving: task.links & MOVING != 0 && self.is_moving(task.id)? || self.has_items_to_cancel(&task)?,
        };
        Ok(Outcome::Failed(match attempt::failed(failed, next, self.now) {
            AfterAttempt::End(state) => {
                self.end_running(&task, running, state)?;
                Failed { state, lease: None }
            }
            AfterAttempt::Again { at, attempts } => {
                let after = at - self.now;
                self.log(task.id, task.sub_queue, Change::Retrying { attempt: task.attempts.saturating_add(1), after });
                let state = self.wait_again(&task, running, at, attempts, 0)?;
                Failed { state, lease: None }
            }
            AfterAttempt::Hold { attempts } => self.hold(&task, running, attempts)?,
        }))
    }

    /// Lets the session continue with the task at once, under a new lease.
    fn hold(&mut self, task: &LiveTask, running: RunningAttempt, attempts: u32) -> VerbResult<Failed> {
        self.cache.running_rows.remove(task.id);
        let claim = running.claim.saturating_add(1);
        let now = self.now.as_microseconds();
        let leased = Leased { task: task.id, claim, expires_at: task.expires_at };
        if !self.renew_single_lease(leased)? {
            self.leave_lease(task.id)?;
            self.lease(SessionId(running.session), [leased])?;
        }
        self.connection
            .prepare_cached("UPDATE task SET claims = ?, attempts = ?, lost = 0, started_at = ? WHERE id = ?")?
            .execute(params![running.claim, attempts, now, task.id.0])?;
        self.cache.running_rows.insert(Box::new(LiveTask {
            claims: running.claim,
            attempts,
            lost: 0,
            started_at: Some(now),
            running: Some(RunningAttempt { claim, started_at: now, ..running }),
            ..task.clone()
        }));
        let failed_attempt = task.attempts.saturating_add(1);
        self.log(task.id, task.sub_queue, Change::Retrying { attempt: failed_attempt, after: Duration::ZERO });
        self.log(task.id, task.sub_queue, Change::Started { attempt: attempts.saturating_add(1) });
        let lease = Lease { task: task.id, session: SessionId(running.session), claim };
        Ok(Failed { state: TaskState::Running, lease: Some(lease) })
    }

    /// Releases a task. This is no failure, so no error is recorded.
    pub(in crate::sqlite) fn release(&mut self, lease: Lease, after: Duration) -> VerbResult<Outcome> {
        let (task, running) = self.running_under(lease)?;
        self.give_back(&task, running, after)?;
        Ok(Outcome::Done)
    }

    /// Releases a running task as if it had not been claimed.
    pub(in crate::sqlite) fn give_back(
        &mut self,
        task: &LiveTask,
        running: RunningAttempt,
        after: Duration,
    ) -> Result<()> {
        if task.cancel_requested > 0 {
            return self.end_running_with(task, running, TaskState::Cancelled, task.attempts);
        }
        self.log(task.id, task.sub_queue, Change::Released);
        let expires_at = self.expiry_before_claim(task.id)?;
        if expires_at != task.expires_at {
            self.connection
                .prepare_cached("UPDATE task SET expires_at = ? WHERE id = ?")?
                .execute(params![expires_at, task.id.0])?;
        }
        let task = LiveTask { expires_at, ..task.clone() };
        self.wait_again(&task, running, self.now.plus(after), task.attempts, task.lost).map(|_| ())
    }

    /// Returns the time at which a running task would have expired if it had not been claimed.
    fn expiry_before_claim(&self, task: TaskId) -> Result<Option<i64>> {
        Ok(self.lease_of(task)?.and_then(|lease| lease.expires_at))
    }

    /// Ends a task whose cancellation was requested.
    pub(in crate::sqlite) fn confirm_cancel(&mut self, lease: Lease, reason: &str) -> VerbResult<Outcome> {
        let (task, running) = self.running_under(lease)?;
        self.record_error(&task, task.attempts.saturating_add(1), reason)?;
        self.end_running(&task, running, TaskState::Cancelled)?;
        Ok(Outcome::Done)
    }

    /// Records the progress of a running task.
    pub(in crate::sqlite) fn report(
        &mut self,
        lease: Lease,
        fraction: Option<f32>,
        message: Option<&str>,
        bytes: Option<ByteProgress>,
    ) -> VerbResult<Outcome> {
        let (task, _) = self.running_under(lease)?;
        let fraction = attempt::fraction(fraction);
        let bytes = attempt::bytes(bytes);
        let done = bytes.map(|bytes| bytes.done.cast_signed());
        let total = bytes.and_then(|bytes| bytes.total).map(u64::cast_signed);
        let message = message.map(|message| cut(message.to_owned(), bounds::PROGRESS_BYTES));
        self.connection.prepare_cached(include_str!("../../sql/attempts/put_progress.sql"))?.execute(params![
            task.id.0,
            fraction,
            message,
            self.now.as_microseconds(),
            done,
            total
        ])?;
        Ok(Outcome::Done)
    }

    /// Ends an attempt whose session has lapsed: the task waits again, or is dead after too many
    /// lost leases.
    pub(in crate::sqlite) fn lose(&mut self, task: &LiveTask, running: RunningAttempt) -> Result<()> {
        let text = rules::errors::lost_lease(SessionId(running.session));
        self.record_error(task, task.attempts.saturating_add(1), &text)?;
        match attempt::lease_lost(task.cancel_requested > 0, task.lost, task.attempts, self.now) {
            AfterAttempt::End(state) => self.end_running(task, running, state).map(drop),
            AfterAttempt::Again { at, attempts } => {
                self.log(task.id, task.sub_queue, Change::LeaseLost);
                self.wait_again(task, running, at, attempts, task.lost.saturating_add(1)).map(|_| ())
            }
            AfterAttempt::Hold { .. } => Ok(()),
        }
    }

    /// Makes a running task waiting or scheduled again.
    fn wait_again(
        &mut self,
        task: &LiveTask,
        running: RunningAttempt,
        at: Timestamp,
        attempts: u32,
        lost: u32,
    ) -> Result<TaskState> {
        let scheduled = at > self.now;
        // A task that need not wait keeps its due time, and so its position in its list.
        let run_at = if scheduled { at.as_microseconds() } else { task.run_at };
        let state = if scheduled { TaskState::Scheduled } else { TaskState::Waiting };
        let blocked = self.stands_aside(task, state)?;
        let scheduled = scheduled && !blocked;
        self.cache.running_rows.remove(task.id);
        self.leave_lease(task.id)?;
        self.count_end(task.sub_queue)?;
        self.connection.prepare_cached(include_str!("../../sql/attempts/requeue_task.sql"))?.execute(params![
            task.id.0,
            if blocked { 2 } else { i64::from(scheduled) },
            run_at,
            running.claim,
            attempts,
            lost,
            running.started_at
        ])?;
        let waiting = self.complete_move(LiveTask { scheduled, blocked, run_at, running: None, ..task.clone() })?;
        self.enter_list(&waiting.entry())?;
        self.hint.work += 1;
        self.let_go(&waiting)
    }

    /// Adds an error to those of a task. Deletes the second oldest if there are too many.
    pub(in crate::sqlite::verbs) fn record_error(
        &mut self,
        task: &LiveTask,
        attempt: u32,
        message: &str,
    ) -> Result<()> {
        let message = cut(message.to_owned(), bounds::ERROR_BYTES);
        let last: Option<usize> = self
            .connection
            .prepare_cached("SELECT max(number) FROM attempt_error WHERE task = ?")?
            .query_row([task.id.0], |row| row.get(0))?;
        let number = last.map_or(0, |last| last + 1);
        self.connection
            .prepare_cached("INSERT INTO attempt_error (task, number, attempt, at, message) VALUES (?, ?, ?, ?, ?)")?
            .execute(params![task.id.0, number, attempt, self.now.as_microseconds(), message])?;
        // Errors are numbered without a gap until the second one is deleted. From then on each new
        // error deletes one.
        if number >= bounds::ERRORS_KEPT {
            self.connection
                .prepare_cached(include_str!("../../sql/attempts/drop_second_error.sql"))?
                .execute([task.id.0])?;
        }
        Ok(())
    }

    /// Ends a task that no session holds.
    pub(in crate::sqlite::verbs) fn end_unheld(&mut self, task: &LiveTask, state: TaskState) -> Result<()> {
        self.leave_list(&task.entry())?;
        let (attempts, claims, started_at) = (task.attempts, task.claims, task.started_at);
        self.end(task, &End { state, attempts, claims, started_at, result: None })
    }

    /// Ends a task that awaits its external completion. No session holds it, but its attempt
    /// counts.
    pub(super) fn end_awaited(&mut self, task: &LiveTask, state: TaskState, result: Option<&Bytes>) -> Result<()> {
        self.leave_list(&task.entry())?;
        let (attempts, claims, started_at) = (task.attempts.saturating_add(1), task.claims, task.started_at);
        self.end(task, &End { state, attempts, claims, started_at, result })
    }

    /// Ends a running task. The current attempt counts.
    pub(in crate::sqlite::verbs) fn end_running(
        &mut self,
        task: &LiveTask,
        running: RunningAttempt,
        state: TaskState,
    ) -> Result<TaskState> {
        self.end_running_with(task, running, state, task.attempts.saturating_add(1))?;
        Ok(state)
    }

    /// Ends a running task without a result.
    fn end_running_with(
        &mut self,
        task: &LiveTask,
        running: RunningAttempt,
        state: TaskState,
        attempts: u32,
    ) -> Result<()> {
        let started_at = Some(running.started_at);
        self.end(task, &End { state, attempts, claims: running.claim, started_at, result: None })
    }

    /// Moves a task to history, frees its key, and submits the task that waits for its end.
    fn end(&mut self, task: &LiveTask, end: &End<'_>) -> Result<()> {
        self.connection.prepare_cached(include_str!("../../sql/attempts/move_to_history.sql"))?.execute(params![
            task.id.0,
            end.state.code(),
            self.cache.next_log,
            end.claims,
            end.attempts,
            end.started_at,
            self.now.as_microseconds(),
            end.result.map(AsRef::as_ref),
        ])?;
        self.note_retention(task.id, task.options.retention)?;
        self.cache.running_rows.remove(task.id);
        self.connection.prepare_cached("DELETE FROM task WHERE id = ?")?.execute([task.id.0])?;
        if task.running.is_some() {
            self.drop_empty_leases(task.id, task.id)?;
            self.count_end(task.sub_queue)?;
        }
        if task.blocked || task.links != 0 {
            self.propagate_end(task, Some(end.state))?;
        }
        self.log(task.id, task.sub_queue, end_change(end.state));
        self.hint.transitions += 1;
        self.report_end(task, end.state, (end.claims, end.result))?;
        self.notify(match end.state {
            TaskState::Completed if !is_batch_item(task) => {
                TaskNotification::Completed { task: task.id, result: end.result.cloned() }
            }
            _ => TaskNotification::Ended { task: task.id },
        });
        if end.state != TaskState::Completed {
            let base = self.cache.names.ungrouped_of(task.sub_queue);
            let change = self.statistics.entry((base, end.state)).or_default();
            change.ended += 1;
            change.in_history += 1;
        }
        if is_batch_item(task) {
            self.leave_batch(task, false)?;
        }
        if let Some(key) = &task.key {
            self.free_key(task, key)?;
            self.submit_successor(task.id)?;
        }
        Ok(())
    }

    /// Frees the key of a task that ends, or retains it for the time that the submitter chose.
    pub(in crate::sqlite) fn free_key(&mut self, task: &LiveTask, key: &str) -> Result<()> {
        let kind = self.kind_of(task.sub_queue);
        if task.cancel_requested > 1 {
            return Ok(());
        }
        self.cache.index.free_key(self.connection, kind, key, task.id.0)?;
        if let Some(until) = rules::key::kept_until(task.options.keep_key_for, self.now) {
            let until = until.as_microseconds();
            self.connection
                .prepare_cached("INSERT OR REPLACE INTO retained_key (kind, key, task, until) VALUES (?, ?, ?, ?)")?
                .execute(params![kind, key, task.id.0, until])?;
            self.cache.retained_keys = true;
        }
        Ok(())
    }

    /// Deletes the retained key of an ended task, because another task takes the key.
    pub(in crate::sqlite::verbs) fn forget_retained_key(&self, task: TaskId) -> Result<()> {
        self.connection.prepare_cached("DELETE FROM retained_key WHERE task = ?")?.execute([task.0])?;
        Ok(())
    }

    /// Returns a live task, or the refusal that says why there is none.
    pub(in crate::sqlite::verbs) fn live_or_refuse(&self, task: TaskId) -> VerbResult<LiveTask> {
        if let Some(live) = self.live(task)? {
            return Ok(live);
        }
        match self.ended_state(task)? {
            Some(state) => Err(Refusal::AlreadyEnded { task, state }.into()),
            None => Err(Refusal::TaskNotFound(task).into()),
        }
    }
}
