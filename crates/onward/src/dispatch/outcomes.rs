//! Applies the outcomes of a commit to the run.

use std::sync::Arc;

use onward_store::{
    AfterFailure, Change, Claimed, ClaimedTask, Ended, Failed, Lease, Outcome, Refusal, SessionId, TaskId, TaskState,
};

use super::deadlines::CallStart;
use super::dispatcher::Dispatcher;
use super::outbox::OutboxReply;
use super::run_state::{Added, AttemptEnd, EndedAttempt};
use super::write_batch::PendingWrite;
use crate::bounds;
use crate::dispatch::attempts::{failed_permanently, worker};
use crate::handlers::{Attempt, EndReport};
use crate::orchestration::InstanceCache;

impl Dispatcher {
    /// Acts on the outcomes of a call that began at `began`. Leases count from then, because the
    /// store may have set them at any moment of the commit.
    pub(super) fn apply_outcomes(&mut self, pending: Vec<PendingWrite>, outcomes: Vec<Outcome>, began: CallStart) {
        let mut lost = Vec::new();
        for (write, outcome) in pending.into_iter().zip(outcomes) {
            match (write, outcome) {
                (PendingWrite::AttemptEnd(ended), outcome) => self.apply_end_outcome(ended, outcome),
                (PendingWrite::Turn(reply), outcome) => drop(reply.send(Ok(outcome))),
                (PendingWrite::Queued(reply), outcome) => drop(reply.send(OutboxReply::Applied(Ok(outcome)))),
                (PendingWrite::Report(_) | PendingWrite::Output(..) | PendingWrite::RecordIo, _) => {}
                (PendingWrite::Open, Outcome::SessionOpened(session)) => {
                    self.session = Some(session);
                    self.deadlines.renewed(began.steady);
                }
                (PendingWrite::Claim { limit }, Outcome::Claimed(claimed)) => self.start_claimed(claimed, limit, began),
                (PendingWrite::ClaimTurns { limit }, Outcome::Claimed(claimed)) => {
                    self.start_turns(claimed, limit, began)
                }
                (PendingWrite::Renew, Outcome::Renewed { cancel }) => {
                    self.deadlines.renewed(began.steady);
                    self.cancel(&cancel);
                }
                (PendingWrite::Sweep, Outcome::Swept(swept)) => {
                    self.deadlines.set_due(swept.next_due, began, &*self.run.inner.clock);
                    self.deadlines.may_claim |= swept.due + swept.lost > 0 || self.is_limited_by_pressure;
                    self.may_claim_turns |= swept.due + swept.lost > 0;
                    self.preemption.recheck();
                }
                (PendingWrite::Retire, Outcome::Done) => {}
                (PendingWrite::Close(session), Outcome::Done) => self.retired.retain(|retired| *retired != session),
                (_, Outcome::Refused(Refusal::SessionLost(session))) => lost.push(session),
                (write, outcome) => {
                    tracing::error!(?write, ?outcome, "the store returned the outcome of another write")
                }
            }
        }
        // Only now, so that tasks which an outcome above has put into the buffer are dropped too.
        lost.into_iter().for_each(|session| self.drop_session(session));
        self.record_load();
    }

    fn record_load(&self) {
        let occupancy = self.run.state.occupancy();
        let gauge = |count: usize| f64::from(u32::try_from(count).unwrap_or(u32::MAX));
        self.run.inner.telemetry.running.set(gauge(occupancy.running));
        self.run.inner.telemetry.buffered.set(gauge(occupancy.buffered));
    }

    fn start_claimed(&mut self, claimed: Claimed, limit: usize, began: CallStart) {
        self.deadlines.renewed(began.steady);
        // A claim that returned fewer tasks than it asked for has taken all that it could.
        self.deadlines.may_claim = claimed.tasks.len() >= limit;
        self.note_seen(claimed.work_seen);
        self.deadlines.set_due(claimed.next_due, began, &*self.run.inner.clock);
        self.preemption.must_claim = false;
        self.preemption.recheck();
        self.is_limited_by_pressure = claimed.next_aged.is_some();
        self.is_limited_by_rate = claimed.next_token.is_some();
        if self.last_claim.update(&claimed) {
            self.return_buffer();
        }
        self.note_retentions(&claimed.tasks);
        let attempts = self.attempts(claimed.tasks);
        let came = attempts.len();
        let go_first = came > 0 && self.start(attempts);
        // Tasks that overtake the buffer often come in groups, so the next claim asks for twice as
        // many.
        self.deadlines.look_ahead = if go_first { (came * 2).min(bounds::LOOK_AHEAD) } else { 0 };
        self.cancel(&claimed.cancel);
    }

    fn start_turns(&mut self, claimed: Claimed, limit: usize, began: CallStart) {
        self.deadlines.renewed(began.steady);
        self.may_claim_turns = claimed.tasks.len() >= limit;
        self.note_turns_seen(claimed.work_seen);
        self.deadlines.set_due(claimed.next_due, began, &*self.run.inner.clock);
        // Orchestrations that are due now may not have been in the claim.
        if claimed.next_due.is_some_and(|after| after.is_zero()) {
            self.may_claim_turns = true;
        }
        self.note_retentions(&claimed.tasks);
        let (turns, others): (Vec<_>, Vec<_>) = claimed.tasks.into_iter().partition(|task| task.instance.is_some());
        turns.into_iter().for_each(|task| InstanceCache::start_turn(&self.run, task));
        self.reject_plain_tasks(others);
        self.cancel(&claimed.cancel);
    }

    fn note_retentions(&self, tasks: &[ClaimedTask]) {
        for task in tasks.iter().filter(|task| task.retention.is_some()) {
            self.run.inner.own_retentions.note(self.run.inner.clock.now(), task.retention);
        }
    }

    /// Fails tasks that were submitted as plain tasks under a kind that has the code of an
    /// orchestration.
    fn reject_plain_tasks(&self, tasks: Vec<ClaimedTask>) {
        let refused = self.attempts(tasks).into_iter().map(|attempt| {
            let kind = &attempt.task.kind;
            let text = format!(
                "the kind `{kind}` has the code of an orchestration, but this task is not one; submit it as an orchestration"
            );
            EndedAttempt::alone(attempt, failed_permanently(text))
        });
        self.run.state.add_ended(refused);
    }

    fn attempts(&self, tasks: Vec<ClaimedTask>) -> Vec<Arc<Attempt>> {
        let mut attempts: Vec<Arc<Attempt>> = Vec::with_capacity(tasks.len());
        for task in tasks {
            // Tasks of one kind often follow each other, so the last telemetry usually fits.
            let telemetry = match attempts.last() {
                Some(last) if last.task.kind == task.kind => Arc::clone(&last.telemetry),
                _ => self.run.inner.telemetry.kind(&task.kind),
            };
            attempts.push(Arc::new(Attempt::new(task, telemetry)));
        }
        attempts
    }

    /// Returns the buffer to the store after the queues' configuration has changed, so that tasks
    /// are chosen again.
    fn return_buffer(&mut self) {
        let unstarted = self.run.state.clear_buffer();
        self.deadlines.may_claim |= !unstarted.is_empty();
        self.run.state.add_ended(unstarted.into_iter().map(EndedAttempt::released));
    }

    /// Buffers attempts and starts workers for them. Returns true if all of them sort before
    /// something that was buffered. A stopping run releases them instead.
    fn start(&mut self, attempts: Vec<Arc<Attempt>>) -> bool {
        if self.shutdown.is_stopping() {
            self.run.state.add_ended(attempts.into_iter().map(EndedAttempt::released));
            return false;
        }
        for attempt in &attempts {
            self.notify_hooks(attempt, Change::Started { attempt: attempt.task.attempt });
        }
        let (now, order) = (self.now(), self.last_claim.start_order());
        self.deadlines.watch_buffer(self.run.state.occupancy().counts.started, now);
        let Added { slots, go_first } = self.run.state.add(attempts, order, self.run.inner.settings.concurrency, now);
        for number in slots {
            tokio::spawn(worker::run_worker(Arc::clone(&self.run), number));
        }
        go_first
    }

    fn cancel(&self, tasks: &[TaskId]) {
        for task in tasks {
            self.run.state.cancel(*task);
        }
    }

    fn apply_end_outcome(&mut self, ended: EndedAttempt, outcome: Outcome) {
        let EndedAttempt { attempt, end, planned } = ended;
        let mut outcome = outcome_of_end(outcome);
        if let Outcome::Ended(Ended { state, lease, turned }) = outcome {
            self.may_claim_turns |= planned.is_none_or(|planned| planned.settle(&self.run, turned.as_ref()));
            let failed = matches!(end, AttemptEnd::Fail { .. });
            outcome = if failed { Outcome::Failed(Failed { state, lease }) } else { Outcome::Done };
        }
        attempt.end_listener.report(|| report_of(&outcome));
        match (end, outcome) {
            (AttemptEnd::Complete(_), Outcome::Done) => self.count(&attempt, TaskState::Completed),
            (AttemptEnd::ConfirmCancel(_), Outcome::Done) => self.count(&attempt, TaskState::Cancelled),
            (AttemptEnd::AwaitChildren(_), Outcome::AwaitsChildren { state }) => {
                self.deadlines.may_claim = true;
                if state.is_ended() {
                    self.count(&attempt, state);
                } else {
                    self.notify_hooks(&attempt, Change::Blocked);
                }
            }
            (AttemptEnd::AwaitCompletion(wait), Outcome::AwaitsCompletion { state }) => {
                self.deadlines.may_claim = true;
                wait.within.into_iter().for_each(|within| self.deadlines.due_by(within, &*self.run.inner.clock));
                if state.is_ended() {
                    self.count(&attempt, state);
                } else {
                    self.notify_hooks(&attempt, Change::Blocked);
                }
            }
            (AttemptEnd::Release | AttemptEnd::Move(_), Outcome::Done) => {
                self.deadlines.may_claim = true;
                self.notify_hooks(&attempt, Change::Released);
            }
            (AttemptEnd::Fail { next, .. }, Outcome::Failed(failed)) => {
                self.apply_failure_outcome(&attempt, next, failed)
            }
            (_, Outcome::Refused(Refusal::LeaseLost(_) | Refusal::SessionLost(_))) => self.note_lost_lease(&attempt),
            (end, Outcome::Refused(refusal)) => self.apply_end_refusal(attempt, &end, &refusal),
            (end, outcome) => tracing::error!(?end, ?outcome, "the store returned the outcome of another write"),
        }
    }

    fn apply_failure_outcome(&mut self, attempt: &Attempt, next: AfterFailure, failed: Failed) {
        match (failed.state, next, failed.lease) {
            (_, AfterFailure::Retry { uses_attempt, after, .. }, Some(lease)) => {
                self.count(attempt, failed.state);
                self.notify_hooks(attempt, Change::Retrying { attempt: attempt.task.attempt, after });
                self.start_next_attempt(attempt, uses_attempt, lease);
            }
            (TaskState::Scheduled, AfterFailure::Retry { after, .. }, None) => {
                self.count(attempt, failed.state);
                self.notify_hooks(attempt, Change::Retrying { attempt: attempt.task.attempt, after });
                self.deadlines.due_by(after, &*self.run.inner.clock);
            }
            (state, next, _) => {
                self.count(attempt, state);
                if let AfterFailure::Retry { after, .. } = next
                    && !state.is_ended()
                {
                    self.notify_hooks(attempt, Change::Retrying { attempt: attempt.task.attempt, after });
                }
                self.deadlines.may_claim |= !state.is_ended();
            }
        }
    }

    /// Starts the next attempt in this session, which keeps the task instead of returning it to the
    /// queue.
    fn start_next_attempt(&mut self, attempt: &Attempt, uses_attempt: bool, lease: Lease) {
        let mut task = attempt.task.clone();
        task.lease = lease;
        task.checkpoint = attempt.checkpoint.get().or(task.checkpoint.take());
        task.attempt = task.attempt.saturating_add(u32::from(uses_attempt));
        let next = Arc::new(Attempt::new(task, Arc::clone(&attempt.telemetry)));
        self.start(vec![next]);
    }

    pub(super) fn count(&mut self, attempt: &Attempt, state: TaskState) {
        attempt.telemetry.ended(state);
        let (task, kind, number) = (attempt.id().0, attempt.task.kind.as_str(), attempt.task.attempt);
        tracing::debug!(task, kind, attempt = number, state = state.as_str(), "the end of the attempt is durable");
        if state.is_ended() {
            self.preemption.forget(attempt.id());
            self.note_retentions(std::slice::from_ref(&attempt.task));
        }
        self.summary.count(state);
        if let Some(end) = change_of_end(state) {
            self.notify_hooks(attempt, end);
        }
    }

    fn notify_hooks(&self, attempt: &Attempt, change: Change) {
        if !self.run.hooks.is_empty() {
            self.run.hooks.notify(attempt, change);
        }
    }

    /// Handles a refusal that concerns the written end. The task fails with the store's message, so
    /// that its result is not lost silently.
    fn apply_end_refusal(&mut self, attempt: Arc<Attempt>, end: &AttemptEnd, refusal: &Refusal) {
        let task = attempt.id();
        if matches!(
            end,
            AttemptEnd::Complete(_)
                | AttemptEnd::AwaitChildren(_)
                | AttemptEnd::AwaitCompletion(_)
                | AttemptEnd::Move(_)
        ) {
            let end = failed_permanently(refusal.to_string());
            self.run.state.add_ended([EndedAttempt::alone(attempt, end)]);
        } else {
            tracing::error!(%task, %refusal, "the store refused the end of an attempt");
        }
    }

    fn note_lost_lease(&mut self, attempt: &Attempt) {
        let (task, kind, number) = (attempt.id().0, attempt.task.kind.as_str(), attempt.task.attempt);
        tracing::warn!(task, kind, attempt = number, "the lease was lost; the attempt's result is dropped");
        self.run.inner.telemetry.leases_lost.increment(1);
        self.summary.lost += 1;
    }

    /// Drops everything that the session held. Handlers are asked to stop; the store will reject
    /// what they still return.
    fn drop_session(&mut self, session: SessionId) {
        tracing::info!(session = session.0, "the session lapsed");
        self.session = self.session.filter(|current| *current != session);
        self.retired.retain(|retired| *retired != session);
        self.deadlines.may_claim = true;
        self.run.state.drop_session(session);
    }
}

/// Returns what the outcome of a written end means for the process that ran the attempt.
fn report_of(outcome: &Outcome) -> EndReport {
    match outcome {
        Outcome::Refused(Refusal::LeaseLost(_) | Refusal::SessionLost(_)) => EndReport::Stale,
        Outcome::Refused(refusal) => EndReport::Refused(refusal.to_string()),
        _ => EndReport::Durable,
    }
}

/// Returns the change by which a task reached an ended state.
fn change_of_end(state: TaskState) -> Option<Change> {
    match state {
        TaskState::Completed => Some(Change::Completed),
        TaskState::Failed => Some(Change::Failed),
        TaskState::Dead => Some(Change::Dead),
        TaskState::Cancelled => Some(Change::Cancelled),
        TaskState::Expired => Some(Change::Expired),
        TaskState::Blocked | TaskState::Scheduled | TaskState::Waiting | TaskState::Running => None,
    }
}

/// Returns the outcome of an attempt's end. It may have been written together with spawned tasks,
/// and is the last write then.
fn outcome_of_end(outcome: Outcome) -> Outcome {
    match outcome {
        Outcome::All(mut outcomes) => outcomes.pop().unwrap_or(Outcome::Done),
        Outcome::Refused(Refusal::InAll { refusal, .. }) => Outcome::Refused(*refusal),
        outcome => outcome,
    }
}
