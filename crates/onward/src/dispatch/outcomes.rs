//! What the outcomes of a commit mean for the run.

use std::sync::Arc;
use std::time::Duration;

use onward_store::{
    AfterFailure, Change, Claimed, ClaimedTask, Failed, Lease, Outcome, Refusal, SessionId, TaskId, TaskState,
};

use super::dispatcher::Dispatcher;
use super::outbox::Delivery;
use super::run_state::{Added, End, Ended};
use super::write_batch::Part;
use crate::bounds;
use crate::dispatch::attempts::{failed_for_good, worker};
use crate::handlers::Attempt;
use crate::orchestration::Stage;

impl Dispatcher {
    /// Acts on the outcomes of a commit that began at `began`.
    pub(super) fn settle(&mut self, parts: Vec<Part>, outcomes: Vec<Outcome>, began: Duration) {
        let mut lost = Vec::new();
        for (part, outcome) in parts.into_iter().zip(outcomes) {
            match (part, outcome) {
                (Part::End(ended), outcome) => self.settle_end(ended, outcome),
                (Part::Turn(answer), outcome) => drop(answer.send(Ok(outcome))),
                (Part::Letter(answer), outcome) => drop(answer.send(Delivery::Answered(Ok(outcome)))),
                (Part::Report(_) | Part::RecordIo, _) => {}
                (Part::Open, Outcome::SessionOpened(session)) => {
                    self.session = Some(session);
                    self.agenda.renewed(began);
                }
                (Part::Claim { limit }, Outcome::Claimed(claimed)) => self.take_in(claimed, limit, began),
                (Part::ClaimTurns { limit }, Outcome::Claimed(claimed)) => self.begin_turns(claimed, limit, began),
                (Part::Renew, Outcome::Renewed { cancel }) => {
                    self.agenda.renewed(began);
                    self.cancel(&cancel);
                }
                (Part::Sweep, Outcome::Swept(swept)) => {
                    self.agenda.set_due(swept.next_due, &*self.run.inner.clock);
                    self.agenda.look |= swept.due + swept.lost > 0 || self.holds_back;
                    self.looks_for_turns |= swept.due + swept.lost > 0;
                    self.preempting.stir();
                }
                (Part::Retire, Outcome::Done) => {}
                (Part::Close(session), Outcome::Done) => self.retired.retain(|retired| *retired != session),
                (_, Outcome::Refused(Refusal::SessionLost(session))) => lost.push(session),
                (part, outcome) => {
                    tracing::error!(?part, ?outcome, "the store answered a write with an outcome of another")
                }
            }
        }
        lost.into_iter().for_each(|session| self.lose_session(session));
        self.show_load();
    }

    fn show_load(&self) {
        let floor = self.run.floor.state();
        let gauge = |count: usize| f64::from(u32::try_from(count).unwrap_or(u32::MAX));
        self.run.inner.telemetry.running.set(gauge(floor.running));
        self.run.inner.telemetry.buffered.set(gauge(floor.buffered));
    }

    fn take_in(&mut self, claimed: Claimed, limit: usize, began: Duration) {
        self.agenda.renewed(began);
        self.agenda.look = claimed.tasks.len() >= limit;
        self.agenda.set_due(claimed.next_due, &*self.run.inner.clock);
        self.preempting.claims = false;
        self.preempting.stir();
        self.holds_back = claimed.next_aged.is_some();
        self.awaits_token = claimed.next_token.is_some();
        if self.choosing.learn(&claimed) {
            self.give_back_what_was_chosen_before();
        }
        self.note_retentions(&claimed.tasks);
        let attempts = self.attempts(claimed.tasks);
        let came = attempts.len();
        let go_first = came > 0 && self.start(attempts);
        // There may be more such, and the more of them came now, the more there may be.
        self.agenda.probe = if go_first { (came * 2).min(bounds::PROBE) } else { 0 };
        self.cancel(&claimed.cancel);
    }

    fn begin_turns(&mut self, claimed: Claimed, limit: usize, began: Duration) {
        self.agenda.renewed(began);
        self.looks_for_turns = claimed.tasks.len() >= limit;
        self.agenda.set_due(claimed.next_due, &*self.run.inner.clock);
        if claimed.next_due.is_some_and(|after| after.is_zero()) {
            self.looks_for_turns = true;
        }
        self.note_retentions(&claimed.tasks);
        let (turns, others): (Vec<_>, Vec<_>) = claimed.tasks.into_iter().partition(|task| task.instance.is_some());
        turns.into_iter().for_each(|task| Stage::begin(&self.run, task));
        self.refuse_to_play(others);
        self.cancel(&claimed.cancel);
    }

    fn note_retentions(&self, tasks: &[ClaimedTask]) {
        for task in tasks.iter().filter(|task| task.retention.is_some()) {
            self.run.inner.own_retentions.note(self.run.inner.clock.now(), task.retention);
        }
    }

    /// Tasks that were submitted as such, under a kind that has the code of an orchestration.
    fn refuse_to_play(&self, tasks: Vec<ClaimedTask>) {
        let refused = self.attempts(tasks).into_iter().map(|attempt| {
            let kind = &attempt.task.kind;
            let text = format!(
                "the kind `{kind}` has the code of an orchestration, and this is a plain task of it; submit it as an orchestration"
            );
            Ended { attempt, end: failed_for_good(text) }
        });
        self.run.floor.hand_in(refused);
    }

    fn attempts(&self, tasks: Vec<ClaimedTask>) -> Vec<Arc<Attempt>> {
        let mut attempts: Vec<Arc<Attempt>> = Vec::with_capacity(tasks.len());
        for task in tasks {
            // Tasks of one kind come in rows.
            let telemetry = match attempts.last() {
                Some(last) if last.task.kind == task.kind => Arc::clone(&last.telemetry),
                _ => self.run.inner.telemetry.kind(&task.kind),
            };
            attempts.push(Arc::new(Attempt::new(task, telemetry)));
        }
        attempts
    }

    /// Queues are worked off in another way than when the buffer was filled: it is chosen anew.
    fn give_back_what_was_chosen_before(&mut self) {
        let unstarted = self.run.floor.clear_buffer();
        self.agenda.look |= !unstarted.is_empty();
        self.run.floor.hand_in(unstarted.into_iter().map(|attempt| Ended { attempt, end: End::Release }));
    }

    /// Buffers attempts and mans slots for them; answers whether all of them go before something
    /// that was buffered. Once the run stops, what comes is given back.
    fn start(&mut self, attempts: Vec<Arc<Attempt>>) -> bool {
        if self.stopping.is_stopping() {
            self.run.floor.hand_in(attempts.into_iter().map(|attempt| Ended { attempt, end: End::Release }));
            return false;
        }
        for attempt in &attempts {
            self.tell(attempt, Change::Started { attempt: attempt.task.attempt });
        }
        let (now, order) = (self.now(), self.choosing.start_order());
        self.agenda.watch_buffer(self.run.floor.state().counts.started, now);
        let Added { slots, go_first } = self.run.floor.add(attempts, order, self.run.inner.settings.concurrency, now);
        for number in slots {
            tokio::spawn(worker::man(Arc::clone(&self.run), number));
        }
        go_first
    }

    fn cancel(&self, tasks: &[TaskId]) {
        for task in tasks {
            self.run.floor.cancel(*task);
        }
    }

    fn settle_end(&mut self, ended: Ended, outcome: Outcome) {
        let Ended { attempt, end } = ended;
        match (end, of_end(outcome)) {
            (End::Complete(_), Outcome::Done) => self.count(&attempt, TaskState::Completed),
            (End::ConfirmCancel(_), Outcome::Done) => self.count(&attempt, TaskState::Cancelled),
            (End::AwaitChildren(_), Outcome::AwaitsChildren { state }) => {
                self.agenda.look = true;
                if state.is_ended() {
                    self.count(&attempt, state);
                } else {
                    self.tell(&attempt, Change::Blocked);
                }
            }
            (End::AwaitCompletion(wait), Outcome::AwaitsCompletion { state }) => {
                self.agenda.look = true;
                wait.within.into_iter().for_each(|within| self.agenda.due_by(within, &*self.run.inner.clock));
                if state.is_ended() {
                    self.count(&attempt, state);
                } else {
                    self.tell(&attempt, Change::Blocked);
                }
            }
            (End::Release | End::Move(_), Outcome::Done) => {
                self.agenda.look = true;
                self.tell(&attempt, Change::Released);
            }
            (End::Fail { next, .. }, Outcome::Failed(failed)) => self.settle_failure(&attempt, next, failed),
            (_, Outcome::Refused(Refusal::LeaseLost(_) | Refusal::SessionLost(_))) => self.lose(&attempt),
            (end, Outcome::Refused(refusal)) => self.settle_refusal(attempt, &end, &refusal),
            (end, outcome) => tracing::error!(?end, ?outcome, "the store answered a write with an outcome of another"),
        }
    }

    fn settle_failure(&mut self, attempt: &Attempt, next: AfterFailure, failed: Failed) {
        match (failed.state, next, failed.lease) {
            (_, AfterFailure::Retry { uses_attempt, after, .. }, Some(lease)) => {
                self.count(attempt, failed.state);
                self.tell(attempt, Change::Retrying { attempt: attempt.task.attempt, after });
                self.try_again(attempt, uses_attempt, lease);
            }
            (TaskState::Scheduled, AfterFailure::Retry { after, .. }, None) => {
                self.count(attempt, failed.state);
                self.tell(attempt, Change::Retrying { attempt: attempt.task.attempt, after });
                self.agenda.due_by(after, &*self.run.inner.clock);
            }
            (state, next, _) => {
                self.count(attempt, state);
                if let AfterFailure::Retry { after, .. } = next
                    && !state.is_ended()
                {
                    self.tell(attempt, Change::Retrying { attempt: attempt.task.attempt, after });
                }
                self.agenda.look |= !state.is_ended();
            }
        }
    }

    /// The session keeps the task: its next attempt starts without a trip through the queue.
    fn try_again(&mut self, attempt: &Attempt, uses_attempt: bool, lease: Lease) {
        let mut task = attempt.task.clone();
        task.lease = lease;
        task.memo = attempt.kept.get().or(task.memo.take());
        task.attempt = task.attempt.saturating_add(u32::from(uses_attempt));
        let next = Arc::new(Attempt::new(task, Arc::clone(&attempt.telemetry)));
        self.start(vec![next]);
    }

    pub(super) fn count(&mut self, attempt: &Attempt, state: TaskState) {
        attempt.telemetry.ended(state);
        let (task, kind, number) = (attempt.id().0, attempt.task.kind.as_str(), attempt.task.attempt);
        tracing::debug!(task, kind, attempt = number, state = state.as_str(), "the end of the attempt is durable");
        if state.is_ended() {
            self.preempting.forget(attempt.id());
            self.note_retentions(std::slice::from_ref(&attempt.task));
        }
        self.summary.count(state);
        if let Some(end) = end_of(state) {
            self.tell(attempt, end);
        }
    }

    fn tell(&self, attempt: &Attempt, change: Change) {
        if !self.run.hooks.is_empty() {
            self.run.hooks.tell(attempt, change);
        }
    }

    /// A refusal that is about what was written: the task fails with the store's words, so that its
    /// result is not lost in silence.
    fn settle_refusal(&mut self, attempt: Arc<Attempt>, end: &End, refusal: &Refusal) {
        let task = attempt.id();
        if matches!(end, End::Complete(_) | End::AwaitChildren(_) | End::AwaitCompletion(_) | End::Move(_)) {
            let end = failed_for_good(refusal.to_string());
            self.run.floor.hand_in([Ended { attempt, end }]);
        } else {
            tracing::error!(%task, %refusal, "the store refused the end of an attempt");
        }
    }

    fn lose(&mut self, attempt: &Attempt) {
        let (task, kind, number) = (attempt.id().0, attempt.task.kind.as_str(), attempt.task.attempt);
        tracing::warn!(task, kind, attempt = number, "the lease was lost; the attempt's result is dropped");
        self.run.inner.telemetry.leases_lost.increment(1);
        self.summary.lost += 1;
    }

    /// Lets go of everything that the session held. Handlers are asked to stop; what they still
    /// answer will be refused.
    fn lose_session(&mut self, session: SessionId) {
        tracing::info!(session = session.0, "the session lapsed");
        self.session = self.session.filter(|current| *current != session);
        self.retired.retain(|retired| *retired != session);
        self.agenda.look = true;
        self.run.floor.lose_session(session);
    }
}

/// The change by which a task came to a state in which it has ended.
fn end_of(state: TaskState) -> Option<Change> {
    match state {
        TaskState::Completed => Some(Change::Completed),
        TaskState::Failed => Some(Change::Failed),
        TaskState::Dead => Some(Change::Dead),
        TaskState::Cancelled => Some(Change::Cancelled),
        TaskState::Expired => Some(Change::Expired),
        TaskState::Blocked | TaskState::Scheduled | TaskState::Waiting | TaskState::Running => None,
    }
}

/// The outcome of an attempt's end, which may have been written together with what it spawned.
fn of_end(outcome: Outcome) -> Outcome {
    match outcome {
        Outcome::All(mut outcomes) => outcomes.pop().unwrap_or(Outcome::Done),
        Outcome::Refused(Refusal::Member { refusal, .. }) => Outcome::Refused(*refusal),
        outcome => outcome,
    }
}
