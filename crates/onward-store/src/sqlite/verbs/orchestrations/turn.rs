//! Turns of orchestrations, and signals to them.

use std::collections::BTreeMap;

use rusqlite::params;

use crate::api::error::Result;
use crate::api::event::Change;
use crate::api::name::Name;
use crate::api::orchestration::{AfterTurn, Hold, MessageBody, Recipient, Signal, Turn, Turned};
use crate::api::outcome::{Outcome, Refusal, Submitted};
use crate::api::tag::Tags;
use crate::api::task::{NewTask, TaskId, TaskState, check_payload};
use crate::api::timestamp::Timestamp;
use crate::bounds;
use crate::rules::orchestration::{self, TurnFacts};
use crate::sqlite::columns::awaited_events::names_text;
use crate::sqlite::columns::task_options::TaskOptions;
use crate::sqlite::commit::transaction::{LiveTask, RunningAttempt, Transaction, VerbError, VerbResult};
use crate::sqlite::verbs::orchestrations::messages::InstanceRow;

impl Transaction<'_> {
    /// Applies a turn: checks it, appends its events, consumes its messages, submits and cancels
    /// tasks, and continues or ends the orchestration.
    pub(in crate::sqlite) fn turn(&mut self, turn: &Turn) -> VerbResult<Outcome> {
        let (task, running) = self.running_under(turn.lease)?;
        let row = self.instance(task.id)?;
        let tags = self.check_turn(&task, row, turn)?;
        self.write_turn(&task, (running, row.hold), turn, tags).map(Outcome::Turned)
    }

    /// Checks a turn, whether or not the orchestration runs. Returns the orchestration's new tags,
    /// if they change.
    pub(super) fn check_turn(&self, task: &LiveTask, row: InstanceRow, turn: &Turn) -> VerbResult<Option<Tags>> {
        if !task.options.orchestration {
            return Err(Refusal::NotAnOrchestration(task.id).into());
        }
        let kind = self.cache.names.sub_queue(task.sub_queue).map_or("", |sub_queue| sub_queue.kind_name.as_str());
        let (length, received, payload_limit) = (row.length, row.received, self.payload_limit);
        orchestration::check(turn, TurnFacts { length, received, kind, payload_limit })?;
        self.check_offered(turn, received)?;
        if !turn.values.is_empty() {
            let kept = self.value_keys(task.id)?;
            orchestration::check_values(turn, kind, kept.iter().map(String::as_str))?;
        }
        let tags = orchestration::tags_after(turn, kind, &task.options.tags)?;
        if !self.cache.names.has_room_for_turn(&turn.submits) {
            return Err(orchestration::no_room().into());
        }
        Ok(tags)
    }

    /// Writes a checked turn of a running orchestration.
    pub(super) fn write_turn(
        &mut self,
        task: &LiveTask,
        (running, hold): (RunningAttempt, Hold),
        turn: &Turn,
        tags: Option<Tags>,
    ) -> VerbResult<Turned> {
        self.append(turn)?;
        if let Some(tags) = tags {
            self.set_tags(task, tags)?;
        }
        for &position in &turn.publishes {
            self.log(task.id, task.sub_queue, Change::Published { position });
        }
        let submitted = turn.submits.iter().map(|new| self.submit_of(task.id, new)).collect::<VerbResult<_>>()?;
        let cancels = !(turn.cancels.is_empty() && turn.withdraws.is_empty());
        if cancels {
            self.cancel_children(task.id, turn)?;
        }
        if orchestration::offers_all(turn) && (cancels || !turn.submits.is_empty()) {
            // This turn ends the history, and was given all messages. The present ones are reports
            // of tasks that it cancelled or could not submit.
            self.empty_mailbox(task.id)?;
        }
        let state = self.go_on_after(task.id, (running, hold), &turn.next)?;
        let messages = if state == TaskState::Running { self.messages(task.id)? } else { Vec::new() };
        Ok(Turned { lease: turn.lease, state, submitted, messages })
    }

    /// Checks that a turn was decided with all messages that it must have been given.
    fn check_offered(&self, turn: &Turn, received: u64) -> VerbResult<()> {
        if turn.consumed == received || !orchestration::offers_all(turn) {
            return Ok(());
        }
        let taken = received.saturating_sub(self.count_messages(turn.lease.task)? as u64);
        Ok(orchestration::check_offered(turn, received, taken)?)
    }

    /// Writes the parts of a turn that concern the orchestration itself.
    fn append(&self, turn: &Turn) -> Result<()> {
        let id = turn.lease.task.0;
        let status = turn.status.as_deref();
        self.connection.prepare_cached(include_str!("../../sql/orchestrations/append_turn.sql"))?.execute(params![
            id,
            turn.events,
            turn.chunk.len() as u64,
            status,
            names_text(&turn.awaits),
            turn.version
        ])?;
        if turn.events > 0 {
            self.connection
                .prepare_cached("INSERT INTO turn (task, first, events, chunk) VALUES (?, ?, ?, ?)")?
                .execute(params![id, turn.length, turn.events, &turn.chunk[..]])?;
        }
        if turn.consumed > 0 {
            self.connection
                .prepare_cached("DELETE FROM message WHERE task = ? AND number <= ?")?
                .execute(params![id, turn.consumed])?;
        }
        turn.values.iter().try_for_each(|(key, value)| self.put_value(id, key, value.as_deref()))
    }

    /// Returns the keys of the published values.
    fn value_keys(&self, task: TaskId) -> Result<Vec<String>> {
        let mut statement = self.connection.prepare_cached("SELECT key FROM instance_value WHERE task = ?")?;
        let keys = statement.query_map([task.0], |row| row.get(0))?;
        Ok(keys.collect::<rusqlite::Result<_>>()?)
    }

    /// Writes or removes a published value.
    fn put_value(&self, task: i64, key: &str, value: Option<&[u8]>) -> Result<()> {
        match value {
            Some(value) => self
                .connection
                .prepare_cached("INSERT OR REPLACE INTO instance_value (task, key, value) VALUES (?, ?, ?)")?
                .execute(params![task, key, value])?,
            None => self
                .connection
                .prepare_cached("DELETE FROM instance_value WHERE task = ? AND key = ?")?
                .execute(params![task, key])?,
        };
        Ok(())
    }

    /// Submits a task of a turn. If its key is taken, sends the orchestration a message that it was
    /// not started.
    fn submit_of(&mut self, id: TaskId, new: &NewTask) -> VerbResult<Submitted> {
        let submitted = self.submit(new)?;
        if let Some(reference) = new.report.filter(|_| !orchestration::is_taken(submitted)) {
            self.deliver(id, MessageBody::NotStarted { reference, existing: submitted.id() })?;
        }
        Ok(submitted)
    }

    /// Cancels tasks that an orchestration submitted. Those to withdraw are cancelled only if they
    /// were never claimed.
    fn cancel_children(&mut self, id: TaskId, turn: &Turn) -> Result<()> {
        let (cancels, withdraws) = (&turn.cancels, &turn.withdraws);
        let names_references = orchestration::names_references(cancels) || orchestration::names_references(withdraws);
        let by_reference = if names_references { self.children_by_reference(id)? } else { BTreeMap::new() };
        for task in orchestration::named_tasks(cancels, &by_reference) {
            self.cancel_of(id, task, |_| true)?;
        }
        for task in orchestration::named_tasks(withdraws, &by_reference) {
            self.cancel_of(id, task, |task| task.running.is_none() && task.claims == 0)?;
        }
        Ok(())
    }

    /// Returns the live tasks that an orchestration submitted with references.
    fn children_by_reference(&self, id: TaskId) -> Result<BTreeMap<u64, Vec<TaskId>>> {
        let mut statement =
            self.connection.prepare_cached(include_str!("../../sql/orchestrations/reporting_children.sql"))?;
        let rows =
            statement.query_map([id.0], |row| Ok((row.get::<_, TaskOptions>(1)?.report, TaskId(row.get(0)?))))?;
        let mut children = BTreeMap::<u64, Vec<TaskId>>::new();
        for row in rows {
            if let (Some(reference), task) = row? {
                children.entry(reference).or_default().push(task);
            }
        }
        Ok(children)
    }

    /// Cancels a live task if the orchestration submitted it and `is_meant` holds.
    fn cancel_of(&mut self, id: TaskId, task: TaskId, is_meant: impl Fn(&LiveTask) -> bool) -> Result<()> {
        let is_its_own = self.live(task)?.is_some_and(|task| task.options.parent == Some(id) && is_meant(&task));
        if !is_its_own {
            return Ok(());
        }
        match self.cancel(task) {
            Ok(_) | Err(VerbError::Refused(_)) => Ok(()),
            Err(VerbError::Failed(error)) => Err(error),
        }
    }

    /// Continues or ends an orchestration after a turn.
    fn go_on_after(
        &mut self,
        id: TaskId,
        (running, hold): (RunningAttempt, Hold),
        next: &AfterTurn,
    ) -> VerbResult<TaskState> {
        // Read again, because the submits of the turn may have changed it.
        let task = self.live_or_refuse(id)?;
        let next = if task.cancel_requested > 0 { orchestration::superseded(next.clone()) } else { next.clone() };
        match next {
            AfterTurn::Continue => self.keep_turn(&task),
            AfterTurn::Park { until } => self.park(&task, (running, hold), until),
            AfterTurn::Complete { result } => {
                self.complete_one(&task, running, result.as_ref())?;
                Ok(TaskState::Completed)
            }
            AfterTurn::Fail { error } => self.end_turn_with(&task, running, &error, TaskState::Failed),
            AfterTurn::Dead { error } => self.end_turn_with(&task, running, &error, TaskState::Dead),
            AfterTurn::Cancelled { reason } => self.end_turn_with(&task, running, &reason, TaskState::Cancelled),
            AfterTurn::ContinueAsNew { payload, events, chunk } => {
                self.begin_again(id, &payload, (events, &chunk))?;
                self.leave_turn(&task, (running, hold), TaskState::Waiting, self.now)
            }
        }
    }

    /// Lets an orchestration continue under the same lease. Its lost leases count no more, because
    /// it has made progress.
    fn keep_turn(&mut self, task: &LiveTask) -> VerbResult<TaskState> {
        if task.lost > 0 {
            self.connection.prepare_cached("UPDATE task SET lost = 0 WHERE id = ?")?.execute([task.id.0])?;
            self.cache.running_rows.remove(task.id);
        }
        Ok(TaskState::Running)
    }

    /// Ends the orchestration with an error.
    fn end_turn_with(
        &mut self,
        task: &LiveTask,
        running: RunningAttempt,
        error: &str,
        state: TaskState,
    ) -> VerbResult<TaskState> {
        self.record_error(task, task.attempts.saturating_add(1), error)?;
        Ok(self.end_running(task, running, state)?)
    }

    /// Begins a new history, with the events that it takes over from the old one.
    fn begin_again(&self, id: TaskId, payload: &[u8], (events, chunk): (u64, &[u8])) -> Result<()> {
        self.connection.prepare_cached("UPDATE task SET payload = ? WHERE id = ?")?.execute(params![payload, id.0])?;
        self.connection.prepare_cached("DELETE FROM turn WHERE task = ?")?.execute([id.0])?;
        self.connection
            .prepare_cached("UPDATE instance SET generation = generation + 1, length = ?2, bytes = ?3, version = NULL WHERE task = ?1")?
            .execute(params![id.0, events, chunk.len() as u64])?;
        if events > 0 {
            self.connection
                .prepare_cached("INSERT INTO turn (task, first, events, chunk) VALUES (?, 0, ?, ?)")?
                .execute(params![id.0, events, chunk])?;
        }
        Ok(())
    }

    /// Ends the lease until a message arrives or a time is reached.
    fn park(&mut self, task: &LiveTask, by: (RunningAttempt, Hold), until: Option<Timestamp>) -> VerbResult<TaskState> {
        let state = orchestration::parked(until, self.has_messages(task.id)?, self.now);
        let run_at = until.filter(|_| state == TaskState::Scheduled).unwrap_or(self.now);
        self.leave_turn(task, by, state, run_at)
    }

    /// Ends a turn after which the orchestration is blocked, scheduled or waiting.
    fn leave_turn(
        &mut self,
        task: &LiveTask,
        (running, hold): (RunningAttempt, Hold),
        state: TaskState,
        run_at: Timestamp,
    ) -> VerbResult<TaskState> {
        self.cache.running_rows.remove(task.id);
        self.leave_lease(task.id)?;
        self.count_end(task.sub_queue)?;
        let stands_aside = self.is_put_aside(task.id, hold, state)?;
        let state = if stands_aside { TaskState::Blocked } else { state };
        let (scheduled, blocked) = (state == TaskState::Scheduled, state == TaskState::Blocked);
        let waits = if blocked { 2 } else { i64::from(scheduled) };
        let (run_at, claims) = (run_at.as_microseconds(), running.claim);
        self.connection.prepare_cached(include_str!("../../sql/orchestrations/end_turn.sql"))?.execute(params![
            task.id.0,
            waits,
            run_at,
            claims,
            running.started_at
        ])?;
        self.log(task.id, task.sub_queue, Change::Blocked);
        let parked = LiveTask { blocked, scheduled, run_at, claims, lost: 0, running: None, ..task.clone() };
        let parked = self.complete_move(parked)?;
        self.enter_list(&parked.entry())?;
        self.cache.index.cache_idle(&parked);
        self.hint.work += 1;
        Ok(parked.state())
    }

    /// Sends a signal to an orchestration that is named by its number or key.
    pub(in crate::sqlite) fn signal(&mut self, signal: &Signal) -> VerbResult<Outcome> {
        let task = match &signal.to {
            Recipient::KeyOrStart { kind, key, keep_for } => self.recipient_or_kept(signal, (kind, key), *keep_for)?,
            Recipient::Key { kind, key } => self.active_with(kind, key)?,
            Recipient::Task(task) => *task,
        };
        let live = self.live_or_refuse(task)?;
        if !live.options.orchestration {
            return Err(Refusal::NotAnOrchestration(task).into());
        }
        if self.count_messages(task)? >= bounds::MAILBOX {
            return Err(Refusal::MailboxFull(task).into());
        }
        let kind = self.cache.names.sub_queue(live.sub_queue).map_or("", |sub_queue| sub_queue.kind_name.as_str());
        check_payload("signal", signal.payload.len(), self.payload_limit, kind)
            .map_err(|error| Refusal::Invalid(error.to_string()))?;
        let Signal { name, payload, .. } = signal.clone();
        self.deliver(task, MessageBody::Signal { name, payload })?;
        Ok(Outcome::Done)
    }

    /// Ends an orchestration without a further turn.
    pub(in crate::sqlite) fn terminate(&mut self, task: TaskId, reason: &str) -> VerbResult<Outcome> {
        let live = self.live_or_refuse(task)?;
        if !live.options.orchestration {
            return Err(Refusal::NotAnOrchestration(task).into());
        }
        let sub_queue = self.cache.names.sub_queue(live.sub_queue);
        if sub_queue.is_some_and(|sub_queue| orchestration::is_run(&sub_queue.kind_name)) {
            return Err(Refusal::RunOfWorkflow(task).into());
        }
        if let Some(running) = live.running {
            self.end_turn_with(&live, running, reason, TaskState::Cancelled)?;
        } else {
            self.record_error(&live, live.attempts, reason)?;
            self.end_unheld(&live, TaskState::Cancelled)?;
        }
        Ok(Outcome::Cancelled)
    }

    /// Returns the started orchestration that holds a key, or the refusal.
    fn active_with(&self, kind: &Name, key: &str) -> VerbResult<TaskId> {
        let none = || Refusal::NoneWithKey { kind: kind.clone(), key: key.to_owned() };
        let owner = self.owner_of_key(kind, key)?.ok_or_else(none)?;
        // Only a caller that asked to keep signals for the key may find an orchestration that has
        // not been started.
        if self.instance(owner)?.hold == Hold::Unstarted { Err(none().into()) } else { Ok(owner) }
    }

    /// Returns the live task that holds a key.
    pub(super) fn owner_of_key(&self, kind: &Name, key: &str) -> Result<Option<TaskId>> {
        let Some(number) = self.cache.names.kind(kind) else { return Ok(None) };
        Ok(self.cache.index.key_owner(self.connection, number, key)?.map(TaskId))
    }
}
