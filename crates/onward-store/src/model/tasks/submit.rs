//! Submission of tasks.

use crate::api::event::Change;
use crate::api::outcome::{Outcome, Refusal, Submitted};
use crate::api::task::{NewTask, OnDuplicate, Priority, TaskId, TaskState, UniqueKey};
use crate::model::state::State;
use crate::model::tasks::task::Task;
use crate::rules::duplicate::{self, Decision, KeyHolder};

impl State {
    /// Checks a task, decides by its key, and inserts it or applies the decision to the task that
    /// has the key.
    pub(in crate::model) fn submit(&mut self, new: NewTask) -> Result<Outcome, Refusal> {
        new.check(self.payload_limit).map_err(|error| Refusal::Invalid(error.to_string()))?;
        self.check_dependencies(&new.depends_on)?;
        self.check_parent(&new)?;
        let decision = self.decide(&new);
        if let Decision::Refuse(task, by) = decision {
            return Err(Refusal::KeyTaken { task, by });
        }
        if !matches!(decision, Decision::Keep(_) | Decision::Reject(_) | Decision::Raise(_)) {
            self.check_names(Some(&new.queue), Some(&new.kind))?;
            self.check_group(new.group.as_ref())?;
            self.groups.extend(new.group.clone());
            self.register_names(Some(&new.queue), Some(&new.kind));
        }
        Ok(Outcome::Submitted(match decision {
            Decision::Insert | Decision::TakeOver(_) => Submitted::Inserted { id: self.insert(new) },
            Decision::Keep(id) => Submitted::Duplicate { id },
            Decision::Start(unstarted) => Submitted::Inserted { id: self.start_with_kept(unstarted, new) },
            Decision::Reject(id) | Decision::Refuse(_, id) => Submitted::Rejected { id },
            Decision::Raise(id) => self.raise(id, &new),
            Decision::Follow(id) => {
                self.tasks.change(id, |task| task.follower = Some(Box::new(new)));
                Submitted::Requeued { id }
            }
            Decision::Supersede(old) => self.supersede(old, new),
        }))
    }

    /// Returns the effect of a submit: an insert, or what the policy for duplicates decides.
    fn decide(&self, new: &NewTask) -> Decision {
        if let Some(UniqueKey { key, .. }) = &new.unique {
            self.tasks.coverage.request_key(&new.kind, key);
        }
        let holder = self.keys.holder(new, self.now.wall, |id| self.tasks.get(id)).map(|holder| KeyHolder {
            running: self.tasks.get(holder.id).is_some_and(|task| self.effective_state(task) == TaskState::Running),
            ..holder
        });
        let on_duplicate = new.unique.as_ref().map_or(OnDuplicate::default(), |unique| unique.on_duplicate);
        duplicate::decide(holder, on_duplicate, new.priority)
    }

    /// Inserts a task under a new number; it takes over its key.
    pub(in crate::model) fn insert(&mut self, new: NewTask) -> TaskId {
        self.last_task += 1;
        let id = TaskId(self.last_task);
        self.keys.take(id, &new);
        self.tasks.insert(Task::submitted(id, new, self.now.wall));
        self.apply_dependencies(id);
        self.attach_to_parent(id);
        self.hint_work();
        self.collect(id);
        if self.tasks.get(id).is_some_and(|task| task.has_expired(self.now.wall)) {
            // Its deadline had passed already when it was submitted.
            self.end(id, TaskState::Expired);
        }
        id
    }

    /// Raises the priority of the task that has the key, and of the batch that it is in.
    fn raise(&mut self, id: TaskId, new: &NewTask) -> Submitted {
        self.raise_to(id, new.priority);
        let batch = self.live_batch_of(id).filter(|batch| batch.new.priority < new.priority);
        if let Some(batch) = batch.map(|batch| batch.id) {
            self.raise_to(batch, new.priority);
        }
        Submitted::PriorityRaised { id }
    }

    /// Sets a higher priority.
    fn raise_to(&mut self, id: TaskId, priority: Priority) {
        self.tasks.change(id, |task| task.new.priority = priority);
        self.log(id, Change::PriorityRaised);
        self.hint_work();
    }

    /// Ends the task that has the key and inserts the new one. A running task only gets a request
    /// to cancel.
    fn supersede(&mut self, old: TaskId, new: NewTask) -> Submitted {
        self.tasks.change(old, |task| task.follower = None);
        if self.tasks.get(old).is_some_and(|task| self.effective_state(task) == TaskState::Running) {
            self.request_cancel(old);
        } else {
            self.end(old, TaskState::Cancelled);
        }
        Submitted::Superseded { id: self.insert(new), old }
    }
}
