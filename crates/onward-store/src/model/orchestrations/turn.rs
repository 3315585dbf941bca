//! Turns of orchestrations.

use std::collections::{BTreeMap, BTreeSet};

use crate::api::event::Change;
use crate::api::name::Name;
use crate::api::orchestration::{AfterTurn, ChildTask, Instance, MessageBody, Turn, Turned};
use crate::api::outcome::{Outcome, Refusal, Submitted};
use crate::api::tag::Tags;
use crate::api::task::{NewTask, TaskId, TaskState};
use crate::api::timestamp::Timestamp;
use crate::bounds;
use crate::model::state::State;
use crate::model::tasks::task::Task;
use crate::rules::attempt::cut;
use crate::rules::orchestration::{self, TurnFacts};

impl State {
    /// Checks the lease and the turn as a whole, then writes it. A rejected turn leaves no trace.
    pub(in crate::model) fn turn(&mut self, turn: Turn) -> Result<Outcome, Refusal> {
        self.check_lease(turn.lease)?;
        let tags = self.check_turn(&turn)?;
        self.write_turn(turn, tags).map(Outcome::Turned)
    }

    /// Checks a turn, whether or not the orchestration runs. Returns the orchestration's new tags,
    /// if they change.
    pub(super) fn check_turn(&self, turn: &Turn) -> Result<Option<Tags>, Refusal> {
        let id = turn.lease.task;
        let task = self.existing(id)?;
        let instance = task.instance.as_ref().ok_or(Refusal::NotAnOrchestration(id))?;
        let (length, received, taken) = (instance.length, instance.received, instance.taken);
        let facts = TurnFacts { length, received, kind: &task.new.kind, payload_limit: self.payload_limit };
        orchestration::check(turn, facts)?;
        orchestration::check_offered(turn, received, taken)?;
        if !turn.values.is_empty() {
            orchestration::check_values(turn, &task.new.kind, instance.values.keys().map(String::as_str))?;
        }
        let tags = orchestration::tags_after(turn, &task.new.kind, &task.new.tags)?;
        self.check_room(&turn.submits)?;
        Ok(tags)
    }

    /// Writes a checked turn of a running orchestration.
    pub(super) fn write_turn(&mut self, turn: Turn, tags: Option<Tags>) -> Result<Turned, Refusal> {
        let (id, lease) = (turn.lease.task, turn.lease);
        self.change_instance(id, |instance| instance.take(&turn));
        if let Some(tags) = tags {
            self.tasks.change(id, |task| task.new.tags = tags);
        }
        let offers_all = orchestration::offers_all(&turn);
        let Turn { submits, cancels, withdraws, publishes, next, .. } = turn;
        publishes.into_iter().for_each(|position| self.log(id, Change::Published { position }));
        let submitted = submits.into_iter().map(|new| self.submit_of(id, new)).collect::<Result<_, _>>()?;
        self.cancel_children(id, &cancels, &withdraws);
        if offers_all {
            // The mailbox has only reports of tasks that this turn cancelled or could not submit.
            self.empty_mailbox(id);
        }
        let state = self.continue_after_turn(id, self.unless_superseded(id, next));
        if state == TaskState::Running {
            self.tasks.require_messages(id);
        }
        let kept = self.instance(id).filter(|_| state == TaskState::Running);
        let messages = kept.map_or_else(Vec::new, Instance::messages);
        Ok(Turned { lease, state, submitted, messages })
    }

    /// Rejects a turn whose tasks have more new names than the store has room for.
    fn check_room(&self, submits: &[NewTask]) -> Result<(), Refusal> {
        let fits = |existing: &BTreeSet<Name>, name_of: fn(&NewTask) -> Option<&Name>, most| {
            orchestration::has_room(submits, name_of, existing.len(), |name| existing.contains(name), most)
        };
        let has_room = fits(&self.queues, |task| Some(&task.queue), bounds::QUEUES)
            && fits(&self.kinds, |task| Some(&task.kind), bounds::KINDS)
            && fits(&self.groups, |task| task.group.as_ref(), bounds::GROUPS);
        if has_room { Ok(()) } else { Err(orchestration::no_room()) }
    }

    /// Submits a task of an orchestration. If its key is taken, the orchestration gets a message
    /// that it was not started.
    fn submit_of(&mut self, id: TaskId, new: NewTask) -> Result<Submitted, Refusal> {
        let reference = new.report;
        let Outcome::Submitted(submitted) = self.submit(new)? else { return Err(Refusal::TaskNotFound(id)) };
        if let Some(reference) = reference.filter(|_| !orchestration::is_taken(submitted)) {
            self.deliver(id, MessageBody::NotStarted { reference, existing: submitted.id() });
        }
        Ok(submitted)
    }

    /// Cancels tasks that an orchestration submitted. Those to withdraw are cancelled only if they
    /// were never claimed.
    fn cancel_children(&mut self, id: TaskId, cancels: &[ChildTask], withdraws: &[ChildTask]) {
        let names_references = orchestration::names_references(cancels) || orchestration::names_references(withdraws);
        let by_reference = if names_references { self.children_by_reference(id) } else { BTreeMap::new() };
        for task in orchestration::named_tasks(cancels, &by_reference) {
            self.cancel_of(id, task, |_| true);
        }
        for task in orchestration::named_tasks(withdraws, &by_reference) {
            self.cancel_of(id, task, |task| task.claims == 0);
        }
    }

    /// Cancels a task on behalf of the orchestration that submitted it, unless the task has ended.
    fn cancel_of(&mut self, id: TaskId, task: TaskId, is_meant: impl Fn(&Task) -> bool) {
        let is_its_own = self.tasks.get(task).is_some_and(|task| task.new.parent == Some(id) && is_meant(task));
        if is_its_own {
            let _ = self.cancel(task);
        }
    }

    /// Returns the live tasks that an orchestration submitted with references.
    fn children_by_reference(&self, id: TaskId) -> BTreeMap<u64, Vec<TaskId>> {
        let mut children = BTreeMap::<u64, Vec<TaskId>>::new();
        for task in self.tasks.live_children_of(id) {
            if let Some(reference) = task.new.report {
                children.entry(reference).or_default().push(task.id);
            }
        }
        children
    }

    /// Applies the continuation after a turn. Returns the new state.
    fn continue_after_turn(&mut self, id: TaskId, next: AfterTurn) -> TaskState {
        let now = self.now.wall;
        match next {
            AfterTurn::Continue => self.tasks.change(id, |task| task.lost = 0),
            AfterTurn::Park { until } => self.park(id, until),
            AfterTurn::Complete { result } => {
                self.tasks.change(id, |task| task.result = result);
                self.end_attempt(id, TaskState::Completed);
            }
            AfterTurn::Fail { error } => self.end_turn_with(id, error, TaskState::Failed),
            AfterTurn::Dead { error } => self.end_turn_with(id, error, TaskState::Dead),
            AfterTurn::Cancelled { reason } => self.end_turn_with(id, reason, TaskState::Cancelled),
            AfterTurn::ContinueAsNew { payload, events, chunk } => {
                self.tasks.change(id, |task| task.new.payload = payload);
                self.change_instance(id, |instance| instance.begin_again(events, chunk));
                self.leave_turn(id, TaskState::Waiting, now);
            }
        }
        self.tasks.get(id).map_or(TaskState::Completed, |task| task.state)
    }

    /// Returns the continuation after a turn. An orchestration whose key another one has taken ends
    /// with the turn.
    fn unless_superseded(&self, id: TaskId, next: AfterTurn) -> AfterTurn {
        let is_superseded = self.tasks.get(id).is_some_and(|task| task.cancel_requested);
        if is_superseded { orchestration::superseded(next) } else { next }
    }

    /// Ends the orchestration with an error of its running attempt.
    fn end_turn_with(&mut self, id: TaskId, error: String, state: TaskState) {
        let now = self.now.wall;
        self.tasks.change(id, |task| task.push_error(now, cut(error, bounds::ERROR_BYTES)));
        self.end_attempt(id, state);
    }

    /// Ends the turn of an orchestration that waits. Messages that arrived during the turn make it
    /// due at once.
    fn park(&mut self, id: TaskId, until: Option<Timestamp>) {
        let now = self.now.wall;
        let has_messages = self.instance(id).is_some_and(|instance| instance.waiting() > 0);
        let state = orchestration::parked(until, has_messages, now);
        let run_at = until.filter(|_| state == TaskState::Scheduled).unwrap_or(now);
        self.leave_turn(id, state, run_at);
    }

    /// Ends a turn after which the orchestration is blocked, scheduled or waiting.
    fn leave_turn(&mut self, id: TaskId, state: TaskState, run_at: Timestamp) {
        let state = self.state_unless_paused(id, state);
        self.tasks.change(id, |task| {
            (task.state, task.run_at) = (state, run_at);
            task.session = None;
            task.lost = 0;
        });
        self.log(id, Change::Blocked);
        self.apply_move(id);
        self.hint_work();
    }

    /// Ends an orchestration in any state without another turn. A running turn loses its lease, so
    /// its write is rejected.
    pub(in crate::model) fn terminate(&mut self, id: TaskId, reason: String) -> Result<Outcome, Refusal> {
        let task = self.existing(id)?;
        let state = task.state;
        if state.is_ended() {
            return Err(Refusal::AlreadyEnded { task: id, state });
        }
        if task.instance.is_none() {
            return Err(Refusal::NotAnOrchestration(id));
        }
        if orchestration::is_run(&task.new.kind) {
            return Err(Refusal::RunOfWorkflow(id));
        }
        if state == TaskState::Running {
            self.end_turn_with(id, reason, TaskState::Cancelled);
        } else {
            let now = self.now.wall;
            self.tasks.change(id, |task| task.push_error_between(now, cut(reason, bounds::ERROR_BYTES)));
            self.end(id, TaskState::Cancelled);
        }
        Ok(Outcome::Cancelled)
    }
}
