//! External completion: an attempt ends, and a later call with its token completes the task.

use std::time::Duration;

use bytes::Bytes;
use rusqlite::{OptionalExtension, Row, params};

use crate::api::completion::{CompletionToken, CompletionWait, ExternalCompletion};
use crate::api::error::{Error, Result};
use crate::api::event::Change;
use crate::api::outcome::{Outcome, Refusal};
use crate::api::task::{Lease, TaskId, TaskState};
use crate::api::timestamp::Timestamp;
use crate::bounds;
use crate::rules::attempt::AfterAttempt;
use crate::rules::completion::{self, LiveAttempt};
use crate::rules::orchestration;
use crate::rules::retry::FailureClass;
use crate::sqlite::columns::links::AWAITED;
use crate::sqlite::commit::cache::next_overdue;
use crate::sqlite::commit::transaction::{LiveTask, Transaction, VerbResult};

/// A row of `awaited_completion`.
struct Awaited {
    /// The number of the claim, which the token contains.
    claim: u32,
    /// The conditions of the wait, as JSON.
    wait: String,
    /// The time at which the task would have expired if it had not been claimed.
    expires_at: Option<i64>,
}

impl Awaited {
    /// Decodes a row.
    fn from_row(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self { claim: row.get(0)?, wait: row.get(1)?, expires_at: row.get(2)? })
    }

    /// Decodes the conditions.
    fn wait(&self) -> Result<CompletionWait> {
        serde_json::from_str(&self.wait)
            .map_err(|error| Error::corrupt("a wait to be finished cannot be read; restore a backup").caused_by(error))
    }
}

impl Transaction<'_> {
    /// Ends an attempt whose task will be completed externally. The task is blocked until then, and
    /// no session holds it.
    pub(in crate::sqlite) fn await_completion(&mut self, lease: Lease, wait: &CompletionWait) -> VerbResult<Outcome> {
        let (task, running) = self.running_under(lease)?;
        let kind = self.cache.names.sub_queue(task.sub_queue).map_or("", |sub_queue| sub_queue.kind_name.as_str());
        if task.options.orchestration {
            return Err(orchestration::waits_by_parking(kind).into());
        }
        wait.retry.check(kind).map_err(|error| Refusal::Invalid(error.to_string()))?;
        if task.cancel_requested > 0 {
            let state = self.end_running(&task, running, TaskState::Cancelled)?;
            return Ok(Outcome::AwaitsCompletion { state });
        }
        self.cache.running_rows.remove(task.id);
        self.leave_lease(task.id)?;
        self.count_end(task.sub_queue)?;
        self.connection.prepare_cached(include_str!("../../sql/attempts/await_completion.sql"))?.execute(params![
            task.id.0,
            running.claim,
            running.started_at,
            AWAITED
        ])?;
        let blocked = LiveTask { blocked: true, scheduled: false, expires_at: None, running: None, ..task.clone() };
        self.log(task.id, task.sub_queue, Change::Blocked);
        let blocked = self.complete_move(blocked)?;
        self.enter_list(&blocked.entry())?;
        self.put_awaited(task.id, running.claim, wait, task.expires_at)?;
        self.hint.work += 1;
        Ok(Outcome::AwaitsCompletion { state: TaskState::Blocked })
    }

    /// Writes the row of a task that awaits its completion.
    fn put_awaited(&mut self, task: TaskId, claim: u32, wait: &CompletionWait, expires_at: Option<i64>) -> Result<()> {
        let text = serde_json::to_string(wait).map_err(|error| Error::invalid(error.to_string()))?;
        let until = self.until(wait.within);
        self.connection
            .prepare_cached(
                "INSERT OR REPLACE INTO awaited_completion (task, claim, wait, until, expires_at) VALUES (?, ?, ?, ?, ?)",
            )?
            .execute(params![task.0, claim, text, until, expires_at])?;
        self.cache.next_overdue = next_overdue(self.connection)?;
        Ok(())
    }

    /// Returns the latest time for the completion.
    fn until(&self, within: Option<Duration>) -> Option<i64> {
        within.map(|within| self.now.plus(within).as_microseconds())
    }

    /// Deletes the row of a task that no longer awaits its completion.
    pub(in crate::sqlite::verbs) fn forget_awaited(&mut self, task: TaskId) -> Result<()> {
        self.connection.prepare_cached("DELETE FROM awaited_completion WHERE task = ?")?.execute([task.0])?;
        self.cache.next_overdue = next_overdue(self.connection)?;
        Ok(())
    }

    /// Completes, fails or extends an attempt by its token.
    pub(in crate::sqlite) fn complete_externally(
        &mut self,
        token: CompletionToken,
        completion: &ExternalCompletion,
    ) -> VerbResult<Outcome> {
        let task = self.live_or_refuse(token.task)?;
        let standing = LiveAttempt {
            state: task.state(),
            claim: task.running.map_or(task.claims, |running| running.claim),
            waits: task.links & AWAITED != 0,
        };
        completion::check(token, completion, standing)?;
        let state = match completion {
            ExternalCompletion::Complete { result } => self.complete_awaited(&task, result.as_ref())?,
            ExternalCompletion::Fail { error, class } => self.fail_awaited(&task, error, *class)?,
            ExternalCompletion::Extend { within } => self.extend(task.id, *within)?,
        };
        Ok(Outcome::CompletedExternally { state })
    }

    /// Completes a task. Its attempt may still be running: a completion can be faster than the
    /// write with which the attempt ends.
    fn complete_awaited(&mut self, task: &LiveTask, result: Option<&Bytes>) -> VerbResult<TaskState> {
        self.check_result(task.sub_queue, result)?;
        if let Some(running) = task.running {
            self.complete_one(task, running, result)?;
        } else {
            let started_at = task.started_at.unwrap_or_else(|| self.now.as_microseconds());
            self.count_completed(task.sub_queue, task.attempts.saturating_add(1), task.run_at, started_at);
            self.count_io(task.sub_queue, task.options.expected_io, task.options.io)?;
            self.end_awaited(task, TaskState::Completed, result)?;
        }
        Ok(TaskState::Completed)
    }

    /// Reads the row of a task that awaits its completion.
    fn awaited(&self, task: TaskId) -> Result<Option<Awaited>> {
        let mut statement =
            self.connection.prepare_cached("SELECT claim, wait, expires_at FROM awaited_completion WHERE task = ?")?;
        Ok(statement.query_row([task.0], Awaited::from_row).optional()?)
    }

    /// Fails an attempt externally. The rules decide between a retry and the end.
    fn fail_awaited(&mut self, task: &LiveTask, error: &str, class: FailureClass) -> Result<TaskState> {
        let Some(awaited) = self.awaited(task.id)? else { return Ok(task.state()) };
        let expires_at = awaited.expires_at.map(Timestamp::from_microseconds);
        let attempt = task.attempts.saturating_add(1);
        self.record_error(task, attempt, error)?;
        match completion::failed(&awaited.wait()?, class, task.attempts, expires_at, self.now) {
            AfterAttempt::End(state) => {
                self.connection
                    .prepare_cached("UPDATE task SET expires_at = ? WHERE id = ?")?
                    .execute(params![awaited.expires_at, task.id.0])?;
                self.end_awaited(task, state, None)?;
                Ok(state)
            }
            AfterAttempt::Again { at, attempts } => {
                self.log(task.id, task.sub_queue, Change::Retrying { attempt, after: at - self.now });
                self.try_awaited_again(task, awaited.expires_at, at, attempts)
            }
            AfterAttempt::Hold { attempts } => self.try_awaited_again(task, awaited.expires_at, self.now, attempts),
        }
    }

    /// Makes a task wait for its next attempt.
    fn try_awaited_again(
        &mut self,
        task: &LiveTask,
        expires_at: Option<i64>,
        at: Timestamp,
        attempts: u32,
    ) -> Result<TaskState> {
        self.forget_awaited(task.id)?;
        self.leave_list(&task.entry())?;
        let scheduled = at > self.now;
        // A task that need not wait keeps its due time, and so its position in its list.
        let run_at = if scheduled { at.as_microseconds() } else { task.run_at };
        self.connection
            .prepare_cached(include_str!("../../sql/attempts/retry_awaited.sql"))?
            .execute(params![task.id.0, scheduled, run_at, attempts, expires_at, AWAITED])?;
        let waiting = LiveTask { blocked: false, scheduled, run_at, expires_at, ..task.clone() };
        self.enter_list(&waiting.entry())?;
        self.hint.work += 1;
        self.let_go(&waiting)
    }

    /// Changes the latest time for a completion.
    fn extend(&mut self, task: TaskId, within: Option<Duration>) -> Result<TaskState> {
        if let Some(awaited) = self.awaited(task)? {
            let wait = CompletionWait { within, ..awaited.wait()? };
            self.put_awaited(task, awaited.claim, &wait, awaited.expires_at)?;
            self.hint.work += 1;
        }
        Ok(TaskState::Blocked)
    }

    /// Fails attempts whose completion is overdue, the most overdue first.
    pub(in crate::sqlite::verbs) fn fail_overdue(&mut self) -> Result<()> {
        let now = self.now.as_microseconds();
        if self.cache.next_overdue.is_none_or(|at| at > now) {
            return Ok(());
        }
        for task in self.overdue(now)? {
            if let (Some(live), Some(awaited)) = (self.live(task)?, self.awaited(task)?) {
                self.fail_awaited(&live, &completion::overdue(&awaited.wait()?), FailureClass::Retryable)?;
            }
        }
        Ok(())
    }

    /// Returns the tasks whose completion is overdue, as many as one sweep may end.
    fn overdue(&self, now: i64) -> Result<Vec<TaskId>> {
        let mut statement = self
            .connection
            .prepare_cached("SELECT task FROM awaited_completion WHERE until <= ? ORDER BY until, task LIMIT ?")?;
        let limit = i64::try_from(bounds::SWEEP).unwrap_or(i64::MAX);
        let tasks = statement.query_map([now, limit], |row| row.get(0).map(TaskId))?;
        Ok(tasks.collect::<rusqlite::Result<_>>()?)
    }
}
