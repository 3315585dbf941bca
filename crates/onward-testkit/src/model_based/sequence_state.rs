//! The state of a sequence while it is run.

use std::collections::BTreeMap;

use onward_store::{
    AfterTurn, Bulk, BulkVerb, ChildTask, Claim, Claimed, ClaimedTask, CompletionToken, Dependency, EndWithTurn, Ended,
    Failed, FireSchedule, InstanceRecord, Lease, Name, NewTask, OpenSession, Outcome, OutputPiece, OutputStream,
    QueueChoice, QueueTurn, Recipient, Refusal, ScheduleRecord, SessionId, Signal, TaskFilter, TaskId, Timestamp, Turn,
    Write,
};

use super::steps::{ChildPick, EndWithTurnOperation, NextTurn, Operation, Pick, TurnOperation};
use crate::test_store::name;

/// The sessions, leases and tasks seen so far, including those that have ended or are outdated.
#[derive(Debug, Default)]
pub(super) struct SequenceState {
    sessions: Vec<SessionId>,
    leases: Vec<Lease>,
    /// The parents of tasks that were claimed.
    parents: BTreeMap<TaskId, TaskId>,
    /// The position in the round of queues after the last claim.
    turn: QueueTurn,
    /// The schedules as they were after the last step.
    pub(super) schedules: Vec<ScheduleRecord>,
    /// The instance records of orchestrations, as they were after the last step.
    pub(super) instances: BTreeMap<TaskId, InstanceRecord>,
    /// The highest task number.
    pub(super) highest: i64,
}

impl SequenceState {
    /// Returns the write that an operation stands for now.
    pub(super) fn write(&self, operation: &Operation, now: Timestamp) -> Write {
        match operation.clone() {
            Operation::OpenSession { lease, serves } => {
                Write::OpenSession(OpenSession { serves, ..OpenSession::new("model-based", lease) })
            }
            Operation::RenewSession(session) => Write::RenewSession { session: self.session(session) },
            Operation::CloseSession(session) => Write::CloseSession { session: self.session(session) },
            Operation::Retire(session) => Write::Retire { session: self.session(session) },
            Operation::Submit(new) => Write::Submit(self.submitted(new)),
            Operation::Claim { session, queues, kinds, orchestrations, limit, mode, random, least } => {
                let (session, choice) = (self.session(session), QueueChoice { mode, turn: self.turn.clone(), random });
                Write::Claim(Claim { session, queues, kinds, orchestrations, limit, choice, least })
            }
            Operation::Complete { lease, result } => Write::Complete { lease: self.lease(lease), result },
            Operation::Fail { lease, next } => Write::Fail { lease: self.lease(lease), error: "oops".into(), next },
            Operation::Release { lease, after } => Write::Release { lease: self.lease(lease), after },
            Operation::AwaitChildren { lease, checkpoint, on_failure } => {
                Write::AwaitChildren { lease: self.lease(lease), checkpoint, on_failure }
            }
            Operation::ConfirmCancel(lease) => confirm_cancel(self.lease(lease)),
            Operation::AwaitCompletion { lease, wait } => Write::AwaitCompletion { lease: self.lease(lease), wait },
            Operation::CompleteExternally { lease, by_number, completion } => {
                Write::CompleteExternally { token: self.token(lease, by_number), completion }
            }
            Operation::Move { task, queue } => Write::Move { task: self.task(task), queue },
            Operation::Report { lease, fraction, bytes } => {
                Write::Report { lease: self.lease(lease), fraction, message: Some("busy".into()), bytes }
            }
            Operation::SaveCheckpoint(lease) => {
                Write::SaveCheckpoint { lease: self.lease(lease), checkpoint: b"half".as_slice().into() }
            }
            Operation::RecordIo { lease, io } => Write::RecordIo { lease: self.lease(lease), io },
            Operation::AppendOutput { lease, stream, at, units } => self.append_output(lease, (stream, at, units)),
            Operation::OutputIsResult { lease, stream, length } => self.output_is_result(lease, stream, length),
            Operation::Cancel(task) => Write::Cancel { task: self.task(task) },
            Operation::Retry(task) => Write::Retry { task: self.task(task) },
            Operation::RunNow(task) => Write::RunNow { task: self.task(task) },
            Operation::Kill(task) => Write::Kill { task: self.task(task) },
            Operation::Delete(task) => Write::Delete { task: self.task(task) },
            Operation::Pause { scope, for_ } => Write::Pause { scope, until: for_.map(|duration| now.plus(duration)) },
            Operation::Resume(scope) => Write::Resume { scope },
            Operation::SetQueue(set) => Write::SetQueue(set),
            Operation::SetLimit(set) => Write::SetLimit(set),
            Operation::SetQueueMode(mode) => Write::SetQueueMode(mode),
            Operation::SetSchedule(set) => Write::SetSchedule(set),
            Operation::DeleteSchedule(schedule) => Write::DeleteSchedule { schedule },
            Operation::PauseSchedule(schedule) => Write::PauseSchedule { schedule },
            Operation::ResumeSchedule { schedule, revision, next } => {
                Write::ResumeSchedule { revision: self.revision(&schedule, revision), schedule, next }
            }
            Operation::FireSchedule { fire, revision } => self.fire(*fire, revision),
            Operation::Purge { queue, states, limit } => Write::Purge { queue, states, limit },
            Operation::DeleteQueue(queue) => Write::DeleteQueue { queue },
            Operation::Prune(prune) => Write::Prune(prune),
            Operation::Bulk { verb, filter, before, limit } => self.bulk(verb, *filter, before, limit),
            Operation::Sweep => Write::Sweep,
            Operation::Turn(turn) => Write::Turn(Box::new(self.turn(*turn, now))),
            Operation::EndWithTurn(end) => Write::EndWithTurn(Box::new(self.end_with_turn(*end, now))),
            Operation::Terminate(task) => Write::Terminate { task: self.task(task), reason: "enough".to_owned() },
            Operation::SignalKeyOrStart { kind, key, keep_for } => signal(key_or_start(kind, key, keep_for)),
            Operation::Document(write) => *write,
            Operation::PauseOrchestration(task) => Write::PauseOrchestration { task: self.task(task) },
            Operation::ResumeOrchestration(task) => Write::ResumeOrchestration { task: self.task(task) },
            Operation::Signal(task) => signal(Recipient::Task(self.task(task))),
            Operation::SignalKey { kind, key } => signal(Recipient::Key { kind, key }),
            Operation::All(operations) => {
                Write::All(operations.iter().map(|operation| self.write(operation, now)).collect())
            }
        }
    }

    /// Returns a write of output. Offsets are multiples of a unit, so that pieces often follow each
    /// other.
    fn append_output(&self, lease: Pick, (stream, at, units): (OutputStream, u64, usize)) -> Write {
        let piece = OutputPiece::new(stream, 3 * at, vec![b'o'; 3 * units]);
        Write::AppendOutput { lease: self.lease(lease), piece }
    }

    fn output_is_result(&self, lease: Pick, stream: OutputStream, length: u32) -> Write {
        Write::AppendOutput { lease: self.lease(lease), piece: OutputPiece::of_result(stream, length) }
    }

    /// Returns the completion token of a lease, or of whatever attempt of its task waits now.
    fn token(&self, lease: Pick, by_number: bool) -> CompletionToken {
        let lease = self.lease(lease);
        if by_number { lease.task.into() } else { lease.into() }
    }

    fn bulk(&self, verb: BulkVerb, filter: TaskFilter, before: Option<Pick>, limit: usize) -> Write {
        let before = before.map(|before| self.task(before));
        Write::Bulk(Box::new(Bulk { verb, filter, before, limit }))
    }

    fn fire(&self, fire: FireSchedule, revision: Pick) -> Write {
        let revision = self.revision(&fire.name, revision);
        Write::FireSchedule(Box::new(FireSchedule { revision, ..fire }))
    }

    /// Replaces the picks in a submit, which stand in place of task numbers, by task numbers.
    fn submitted(&self, mut new: Box<NewTask>) -> Box<NewTask> {
        for dependency in &mut new.depends_on.tasks {
            if let Dependency::Task(pick) = dependency {
                *pick = self.task(Pick(usize::try_from(pick.0).unwrap_or(0)));
            }
        }
        new.parent = new.parent.map(|pick| self.task(Pick(usize::try_from(pick.0).unwrap_or(0))));
        new
    }

    fn end_with_turn(&self, operation: EndWithTurnOperation, now: Timestamp) -> EndWithTurn {
        let EndWithTurnOperation { lease, end, turn, ahead, outdated } = operation;
        let of_children: Vec<Lease> =
            self.leases.iter().filter(|lease| self.parents.contains_key(&lease.task)).copied().collect();
        let lease = lease.of(&of_children).unwrap_or(Lease { task: TaskId(1), session: SessionId(1), claim: 1 });
        let parent = self.parents.get(&lease.task).copied().unwrap_or(TaskId(1));
        let instance = self.instances.get(&parent).cloned().unwrap_or_default();
        let turn = self.turn_of(Lease { task: parent, session: SessionId(0), claim: 0 }, turn, now);
        let (generation, received) = (instance.generation.wrapping_sub(u32::from(outdated)), instance.received + ahead);
        EndWithTurn { lease, end, turn: Turn { length: turn.length + ahead, ..turn }, generation, received }
    }

    fn turn(&self, operation: TurnOperation, now: Timestamp) -> Turn {
        self.turn_of(self.lease(operation.lease), operation, now)
    }

    fn turn_of(&self, lease: Lease, operation: TurnOperation, now: Timestamp) -> Turn {
        let instance = self.instances.get(&lease.task).cloned().unwrap_or_default();
        let first_waiting = instance.received - instance.waiting;
        let submit = |mut new: NewTask| {
            new.parent = new.parent.map(|_| lease.task);
            new
        };
        let length = instance.length.saturating_sub(operation.behind);
        let begins_again = matches!(operation.next, NextTurn::ContinueAsNew { .. });
        let published = (length..length + operation.events).last().filter(|_| !begins_again);
        Turn {
            publishes: published.into_iter().collect(),
            events: operation.events,
            chunk: vec![b'e'; usize::try_from(operation.events).unwrap_or(0)].into(),
            consumed: first_waiting + operation.consumed.min(instance.waiting),
            status: operation.status,
            values: operation.values,
            tags: operation.tags,
            version: u32::try_from(operation.events).ok().filter(|events| *events > 0),
            awaits: if operation.events % 2 == 1 { vec![name("event")] } else { Vec::new() },
            submits: operation.submits.into_iter().map(submit).collect(),
            cancels: operation.cancels.into_iter().map(|pick| self.child(pick)).collect(),
            withdraws: operation.withdraws.into_iter().map(|pick| self.child(pick)).collect(),
            leaves_unread: operation.leaves_unread,
            ..Turn::new(lease, length, next_turn(operation.next, now))
        }
    }

    fn session(&self, pick: Pick) -> SessionId {
        pick.of(&self.sessions).unwrap_or(SessionId(99))
    }

    fn lease(&self, pick: Pick) -> Lease {
        pick.of(&self.leases).unwrap_or(Lease { task: TaskId(1), session: SessionId(1), claim: 1 })
    }

    /// Returns the revision that the schedule has, or for a pick above 9 the one before.
    fn revision(&self, schedule: &Name, pick: Pick) -> u64 {
        let known = self.schedules.iter().find(|record| record.schedule.name == *schedule);
        known.map_or(1, |record| record.revision) - u64::from(pick.0 > 9)
    }

    fn child(&self, pick: ChildPick) -> ChildTask {
        match pick {
            ChildPick::Task(pick) => ChildTask::Task(self.task(pick)),
            ChildPick::Reference(reference) => ChildTask::Reference(reference),
        }
    }

    /// Returns the number of a picked task. If there is no task yet, returns the number that the
    /// next one gets.
    fn task(&self, pick: Pick) -> TaskId {
        let known: Vec<i64> = (1..=self.highest).collect();
        TaskId(pick.of(&known).unwrap_or(self.highest + 1))
    }

    /// Remembers the sessions, leases and the turn that an outcome returns.
    pub(super) fn remember(&mut self, outcome: &Outcome) {
        match outcome {
            Outcome::SessionOpened(session) => self.sessions.push(*session),
            Outcome::Claimed(claimed) => {
                self.leases.extend(claimed.tasks.iter().map(|task| task.lease));
                let parent = |task: &ClaimedTask| Some((task.lease.task, task.parent?));
                self.parents.extend(claimed.tasks.iter().filter_map(parent));
                self.turn = claimed.turn.clone();
            }
            Outcome::Failed(Failed { lease, .. }) => self.leases.extend(*lease),
            Outcome::Ended(Ended { lease, turned, .. }) => {
                self.leases.extend(*lease);
                self.leases.extend(turned.as_ref().map(|turned| turned.lease));
            }
            Outcome::All(outcomes) => outcomes.iter().for_each(|outcome| self.remember(outcome)),
            _ => {}
        }
    }
}

fn confirm_cancel(lease: Lease) -> Write {
    Write::ConfirmCancel { lease, reason: "stopped".into() }
}

fn key_or_start(kind: Name, key: String, keep_for: std::time::Duration) -> Recipient {
    Recipient::KeyOrStart { kind, key, keep_for }
}

fn signal(to: Recipient) -> Write {
    Write::Signal(Box::new(Signal { to, name: name("event"), payload: "payload".into() }))
}

fn next_turn(next: NextTurn, now: Timestamp) -> AfterTurn {
    match next {
        NextTurn::Continue => AfterTurn::Continue,
        NextTurn::Park(after) => AfterTurn::Park { until: after.map(|after| now.plus(after)) },
        NextTurn::Complete(result) => AfterTurn::Complete { result },
        NextTurn::Fail => AfterTurn::Fail { error: "oops".into() },
        NextTurn::Dead => AfterTurn::Dead { error: "other code".into() },
        NextTurn::Cancelled => AfterTurn::Cancelled { reason: "cleaned up".into() },
        NextTurn::ContinueAsNew { payload, events } => {
            let chunk = vec![b'c'; usize::try_from(events).unwrap_or(0)].into();
            AfterTurn::ContinueAsNew { payload, events, chunk }
        }
    }
}

/// Returns an outcome without its texts for people and its counts of hints, in which stores may
/// differ.
#[must_use]
pub fn comparable(outcome: Outcome) -> Outcome {
    match outcome {
        Outcome::Claimed(claimed) => Outcome::Claimed(Claimed { work_seen: 0, ..claimed }),
        Outcome::All(outcomes) => Outcome::All(outcomes.into_iter().map(comparable).collect()),
        Outcome::Refused(refusal) => Outcome::Refused(refusal_without_message(refusal)),
        other => other,
    }
}

fn refusal_without_message(refusal: Refusal) -> Refusal {
    match refusal {
        Refusal::Invalid(_) => Refusal::Invalid(String::new()),
        Refusal::InAll { index, refusal } => {
            Refusal::InAll { index, refusal: Box::new(refusal_without_message(*refusal)) }
        }
        other => other,
    }
}
