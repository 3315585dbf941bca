//! Parents and children: a parent can wait for its children, and its failure cancels them.

use bytes::Bytes;

use crate::api::dependency::{Dependency, OnDependencyFailure};
use crate::api::event::Change;
use crate::api::outcome::{Outcome, Refusal};
use crate::api::task::{Lease, NewTask, TaskId, TaskState, check_payload};
use crate::model::dependencies::dependents::UnpropagatedEnd;
use crate::model::state::State;
use crate::rules::children;
use crate::rules::dependencies::Ended;
use crate::rules::orchestration;

impl State {
    /// Rejects a parent that does not exist, and a child that would wait for its own parent.
    pub(in crate::model) fn check_parent(&self, new: &NewTask) -> Result<(), Refusal> {
        let Some(parent) = new.parent else { return Ok(()) };
        if self.tasks.get(parent).is_none() {
            return Err(Refusal::TaskNotFound(parent));
        }
        if self.awaits_children(parent) { self.check_cycle(parent, &on_tasks(new)) } else { Ok(()) }
    }

    /// Rejects a wait that would close a circle of tasks that wait for each other.
    fn check_cycle(&self, parent: TaskId, tasks: &[TaskId]) -> Result<(), Refusal> {
        children::check_cycle(parent, tasks, |task| Ok(self.open_of(task)))
    }

    /// Returns whether a task waits for its children, not for an external completion.
    fn awaits_children(&self, task: TaskId) -> bool {
        self.tasks
            .get(task)
            .is_some_and(|task| task.state == TaskState::Blocked && task.checkpoint.is_some() && task.awaited.is_none())
    }

    /// Makes a new child count for its parent: a parent that waits for its children also waits for
    /// it, and an ended parent cancels it.
    pub(in crate::model) fn attach_to_parent(&mut self, id: TaskId) {
        let Some(task) = self.tasks.get(id).filter(|task| !task.state.is_ended()) else { return };
        let Some(parent) = task.new.parent else { return };
        let on_tasks = on_tasks(&task.new);
        let state = self.tasks.get(parent).map(|parent| parent.state);
        if children::is_cancelled_at_once(state) {
            self.cancel_child(id, parent, state);
        } else if self.awaits_children(parent) && self.check_cycle(parent, &on_tasks).is_ok() {
            self.dependencies.add(id, parent);
        }
    }

    /// Ends the attempt, and blocks the task until its live children have ended. A child that has
    /// failed since the attempt began takes effect at once, as does a cancellation.
    pub(in crate::model) fn await_children(
        &mut self,
        lease: Lease,
        checkpoint: Bytes,
        on_failure: OnDependencyFailure,
    ) -> Result<Outcome, Refusal> {
        let id = lease.task;
        let task = self.check_lease(lease)?;
        let (cancelled, since) = (task.cancel_requested, task.started_at);
        if task.new.orchestration {
            return Err(orchestration::waits_by_parking(&task.new.kind));
        }
        check_payload("checkpoint", checkpoint.len(), self.payload_limit, &task.new.kind)
            .map_err(|error| Refusal::Invalid(error.to_string()))?;
        let live = self.children_of(id, |state| !state.is_ended());
        children::check_count(live.len())?;
        self.check_cycle(id, &live)?;
        let recent = |child: &TaskId| self.tasks.get(*child).is_some_and(|child| Some(child.submitted_at) >= since);
        let failed = self.children_of(id, |state| state.is_ended() && state != TaskState::Completed);
        let failed = failed.into_iter().find(recent).and_then(|child| Some((child, self.tasks.get(child)?.state)));
        if cancelled {
            self.end_attempt(id, TaskState::Cancelled);
        } else if let (Some((child, ended)), Some(state)) = (failed, children::end_of_parent(failed, on_failure)) {
            let now = self.now.wall;
            self.tasks.change(id, |task| task.push_error(now, children::child_error(child, ended)));
            self.end_attempt(id, state);
        } else {
            self.block(id, checkpoint, on_failure, live);
        }
        Ok(Outcome::AwaitsChildren { state: self.tasks.get(id).map_or(TaskState::Blocked, |task| task.state) })
    }

    /// Blocks a task until its children have ended. Without live children it waits for a worker at
    /// once.
    fn block(&mut self, id: TaskId, checkpoint: Bytes, on_failure: OnDependencyFailure, live: Vec<TaskId>) {
        self.tasks.change(id, |task| {
            task.state = TaskState::Blocked;
            task.session = None;
            task.lost = 0;
            task.checkpoint = Some(checkpoint);
            // The task's own dependencies have ended, so the field can hold the policy for its
            // children.
            task.new.depends_on.on_failure = on_failure;
        });
        self.log(id, Change::Blocked);
        self.apply_move(id);
        self.hint_work();
        live.iter().for_each(|child| self.dependencies.add(*child, id));
        if live.is_empty() {
            self.unblock(id);
        }
    }

    /// Returns the children of a task whose state matches, by number.
    fn children_of(&self, parent: TaskId, of_state: impl Fn(TaskState) -> bool) -> Vec<TaskId> {
        let children = self.tasks.children_of(parent).filter(|task| of_state(task.state));
        children.map(|task| task.id).collect()
    }

    /// Returns whether a task is an orchestration.
    fn is_orchestration(&self, task: TaskId) -> bool {
        self.tasks.get(task).is_some_and(|task| task.new.orchestration)
    }

    /// Returns whether an ended task has children to cancel.
    pub(in crate::model) fn leaves_children(&self, task: TaskId, ended: Ended) -> bool {
        children::follow(ended, self.is_orchestration(task)) && !self.children_of(task, |_| true).is_empty()
    }

    /// Returns the next child to cancel of an ended task.
    pub(in crate::model) fn next_child(&self, over: UnpropagatedEnd) -> Option<TaskId> {
        let next = |child: &TaskId| *child >= over.next_child && *child <= over.up_to;
        children::are_cancelled(over.ended).then(|| self.children_of(over.task, |_| true).into_iter().find(next))?
    }

    /// Cancels a child because of its parent.
    pub(in crate::model) fn cancel_child(&mut self, child: TaskId, parent: TaskId, ended: Ended) {
        let now = self.now.wall;
        if self.deliver_cancel(child) {
            return;
        }
        match self.tasks.get(child).map(|task| self.effective_state(task)) {
            Some(TaskState::Running) => self.request_cancel(child),
            Some(state) if !state.is_ended() => {
                self.tasks.change(child, |task| task.push_error_between(now, children::error(parent, ended)));
                self.end(child, TaskState::Cancelled);
            }
            _ => {}
        }
    }
}

/// Returns the dependencies that are tasks. The caller has resolved positions.
fn on_tasks(new: &NewTask) -> Vec<TaskId> {
    let task = |dependency: &Dependency| match dependency {
        Dependency::Task(task) => Some(*task),
        Dependency::Position(_) => None,
    };
    new.depends_on.tasks.iter().filter_map(task).collect()
}
