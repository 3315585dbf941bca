//! Messages to orchestrations, and the wake-ups that they cause.

use crate::api::event::Change;
use crate::api::name::Name;
use crate::api::orchestration::{EndReport, Instance, MessageBody, Recipient, Signal};
use crate::api::outcome::{Outcome, Refusal};
use crate::api::task::{TaskId, TaskState, check_payload};
use crate::bounds;
use crate::model::state::State;
use crate::model::tasks::task::Task;
use crate::rules::orchestration::{self};

impl State {
    /// Appends a signal to the mailbox of an active orchestration, and wakes it. An acknowledged
    /// signal is never discarded by an end before the code could read it.
    pub(in crate::model) fn signal(&mut self, signal: Signal) -> Result<Outcome, Refusal> {
        let id = match &signal.to {
            Recipient::KeyOrStart { kind, key, keep_for } => self.recipient_or_kept(&signal, (kind, key), *keep_for)?,
            Recipient::Key { kind, key } => self.active_with(kind, key)?,
            Recipient::Task(task) => *task,
        };
        let task = self.existing(id)?;
        if task.state.is_ended() {
            return Err(Refusal::AlreadyEnded { task: id, state: task.state });
        }
        let instance = task.instance.as_ref().ok_or(Refusal::NotAnOrchestration(id))?;
        if instance.waiting() >= bounds::MAILBOX as u64 {
            return Err(Refusal::MailboxFull(id));
        }
        check_payload("signal", signal.payload.len(), self.payload_limit, &task.new.kind)
            .map_err(|error| Refusal::Invalid(error.to_string()))?;
        self.deliver(id, MessageBody::Signal { name: signal.name, payload: signal.payload });
        Ok(Outcome::Done)
    }

    /// Returns the active orchestration that has a key.
    fn active_with(&self, kind: &Name, key: &str) -> Result<TaskId, Refusal> {
        self.tasks.coverage.request_key(kind, key);
        let active = self.keys.active_of(kind, key);
        // Only a sender that asked to keep signals for the key may find an unstarted orchestration.
        let active = active.filter(|id| !self.tasks.get(*id).is_some_and(Task::is_unstarted));
        active.ok_or_else(|| Refusal::NoneWithKey { kind: kind.clone(), key: key.to_owned() })
    }

    /// Sends a request to cancel to an orchestration that has begun. Returns whether it was sent.
    pub(in crate::model) fn deliver_cancel(&mut self, id: TaskId) -> bool {
        let Some(task) = self.tasks.get(id).filter(|task| !task.state.is_ended()) else { return false };
        let Some(instance) = &task.instance else { return false };
        if !orchestration::is_notified_of_cancel(instance.generation, instance.length, task.state) {
            return false;
        }
        if !instance.is_cancel_waiting() {
            self.log(id, Change::CancelRequested);
            self.deliver(id, MessageBody::Cancel);
        }
        true
    }

    /// Reports the end of a task to the orchestration that submitted it, if the task has a
    /// reference for that.
    pub(in crate::model) fn report_end(&mut self, id: TaskId, state: TaskState) {
        let Some(task) = self.tasks.get(id) else { return };
        let Some((parent, reference)) = task.new.parent.zip(task.new.report) else { return };
        let error = task.errors.last().map(|error| error.message.clone());
        let (result, claims) = (task.result.clone(), task.claims);
        let report = EndReport { reference, task: id, state, result, error, claims };
        self.deliver(parent, report.into_body());
    }

    /// Removes the unread messages of an orchestration that ends with this turn.
    pub(in crate::model) fn empty_mailbox(&mut self, id: TaskId) {
        if self.instance(id).is_some_and(|instance| instance.waiting() > 0) {
            self.change_instance(id, Instance::empty_mailbox);
        }
    }

    /// Adds a message to the mailbox of an orchestration that still accepts messages, and wakes it
    /// if it is parked.
    pub(in crate::model) fn deliver(&mut self, id: TaskId, body: MessageBody) {
        let now = self.now.wall;
        let Some(task) = self.tasks.get(id).filter(|task| orchestration::takes_messages(task.state)) else { return };
        let Some(instance) = &task.instance else { return };
        let is_woken = orchestration::is_woken(instance.length, instance.hold, task.state);
        self.change_instance(id, |instance| instance.receive(body, now));
        if is_woken {
            self.wake(id);
        }
    }

    /// Makes a parked orchestration wait for a turn.
    pub(in crate::model) fn wake(&mut self, id: TaskId) {
        let now = self.now.wall;
        self.tasks.change(id, |task| (task.state, task.run_at) = (TaskState::Waiting, now));
        self.log(id, Change::Unblocked);
        self.hint_work();
    }
}
