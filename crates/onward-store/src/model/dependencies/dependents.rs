//! Dependencies between tasks, and their effects when a task ends.

use std::collections::{BTreeSet, VecDeque};

use crate::api::dependency::{Dependencies, Dependency};
use crate::api::event::Change;
use crate::api::outcome::Refusal;
use crate::api::task::{TaskId, TaskState};
use crate::bounds;
use crate::model::state::State;
use crate::rules::dependencies::{self, Dependent, Ended, InitialState};

/// The dependencies, indexed in both directions.
#[derive(Debug, Clone, Default)]
pub(crate) struct DependencyIndex {
    /// Pairs of a task and one that depends on it.
    pub(crate) dependents: BTreeSet<(TaskId, TaskId)>,
    /// Pairs of a blocked task and one that it depends on.
    pub(crate) open: BTreeSet<(TaskId, TaskId)>,
    /// Ended tasks whose dependents are not all updated, in the order of the ends.
    pub(crate) unpropagated_ends: VecDeque<UnpropagatedEnd>,
}

/// An ended task, with the progress of updating its dependents.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
pub(crate) struct UnpropagatedEnd {
    pub(crate) task: TaskId,
    pub(crate) ended: Ended,
    /// The highest task number at the time of the end. A later task depends on the outcome of a
    /// retry instead.
    pub(crate) up_to: TaskId,
    /// The number from which the next child to cancel is searched.
    pub(crate) next_child: TaskId,
    /// The number from which the next item to end is searched.
    pub(crate) next_item: TaskId,
}

impl DependencyIndex {
    /// Adds a dependency in both directions.
    pub(crate) fn add(&mut self, task: TaskId, dependent: TaskId) {
        self.dependents.insert((task, dependent));
        self.open.insert((dependent, task));
    }

    /// Removes a dependency in both directions.
    fn remove(&mut self, task: TaskId, dependent: TaskId) {
        self.dependents.remove(&(task, dependent));
        self.open.remove(&(dependent, task));
    }

    /// Returns the dependent of a task that has the lowest number.
    fn first_dependent(&self, task: TaskId) -> Option<TaskId> {
        self.dependents.range((task, TaskId(i64::MIN))..).next().filter(|(of, _)| *of == task).map(|(_, found)| *found)
    }

    /// Returns the first dependent that is not updated.
    fn next_dependent(&self, over: UnpropagatedEnd) -> Option<TaskId> {
        self.first_dependent(over.task).filter(|dependent| *dependent <= over.up_to)
    }

    /// Returns the tasks that a task waits for, by number.
    pub(in crate::model) fn open_of(&self, dependent: TaskId) -> Vec<TaskId> {
        let of = self.open.range((dependent, TaskId(i64::MIN))..=(dependent, TaskId(i64::MAX)));
        of.map(|(_, task)| *task).collect()
    }

    /// Stops ending the items of an ended batch, because the batch is retried.
    pub(in crate::model) fn keep_items(&mut self, batch: TaskId) {
        let of_batch = self.unpropagated_ends.iter_mut().filter(|over| over.task == batch);
        of_batch.for_each(|over| over.next_item = TaskId(i64::MAX));
    }

    /// Returns whether some dependents are not updated.
    pub(in crate::model) fn has_unpropagated_ends(&self) -> bool {
        !self.unpropagated_ends.is_empty()
    }
}

impl State {
    /// Removes the dependencies of an ended task, and queues the update of its dependents.
    pub(in crate::model) fn propagate_end(&mut self, task: TaskId, ended: Ended) {
        for open in self.dependencies.open_of(task) {
            self.dependencies.remove(open, task);
        }
        let leaves_children = self.leaves_children(task, ended);
        let leaves_others = leaves_children || self.batches.has_items(task);
        if self.dependencies.first_dependent(task).is_some() || leaves_others {
            let up_to = TaskId(self.last_task);
            let next_child = if leaves_children { TaskId(0) } else { TaskId(i64::MAX) };
            self.dependencies.unpropagated_ends.push_back(UnpropagatedEnd {
                task,
                ended,
                up_to,
                next_child,
                next_item: TaskId(0),
            });
        }
    }

    /// Rejects dependencies on tasks that do not exist.
    pub(in crate::model) fn check_dependencies(&self, dependencies: &Dependencies) -> Result<(), Refusal> {
        dependencies.tasks.iter().try_for_each(|dependency| match *dependency {
            Dependency::Task(task) if self.tasks.get(task).is_some() => Ok(()),
            Dependency::Task(task) => Err(Refusal::DependencyNotFound(task)),
            Dependency::Position(position) => Err(dependencies::no_position(position)),
        })
    }

    /// Blocks or ends a task that was just inserted, according to its dependencies.
    pub(in crate::model) fn apply_dependencies(&mut self, id: TaskId) {
        let Some(dependencies) = self.tasks.get(id).map(|task| &task.new.depends_on) else { return };
        let found: Vec<Dependent> = dependencies.tasks.iter().filter_map(|task| self.dependent(*task)).collect();
        match dependencies::at_submission(&found, dependencies.on_failure) {
            InitialState::Free => {}
            InitialState::Blocked(open) => {
                open.into_iter().for_each(|task| self.dependencies.add(task, id));
                self.tasks.change(id, |task| task.state = TaskState::Blocked);
            }
            InitialState::Ends(state, dependency, ended) => self.end_dependent(id, state, dependency, ended),
        }
    }

    /// Returns the state of a dependency. It may not exist any more, because a follower is inserted
    /// later than it was submitted.
    fn dependent(&self, dependency: Dependency) -> Option<Dependent> {
        let Dependency::Task(id) = dependency else { return None };
        let state = self.tasks.get(id).map(|task| task.state);
        Some(match state {
            Some(state) if !state.is_ended() => Dependent::On(id),
            ended => Dependent::Ended(id, ended),
        })
    }

    /// Ends a task because of the end of a dependency, which its error names.
    fn end_dependent(&mut self, id: TaskId, state: TaskState, dependency: TaskId, ended: Ended) {
        let now = self.now.wall;
        self.tasks.change(id, |task| task.push_error_between(now, dependencies::error(dependency, ended)));
        self.end(id, state);
    }

    /// Updates the dependents of ended tasks, in the order of the ends. The next sweep updates
    /// those beyond the bound.
    pub(in crate::model) fn propagate_ends(&mut self) {
        for _ in 0..bounds::CASCADE {
            let Some(over) = self.dependencies.unpropagated_ends.front().copied() else { return };
            // Loading the task loads its dependents, even if the task itself no longer exists.
            self.tasks.require(over.task);
            match self.dependencies.next_dependent(over) {
                Some(dependent) => self.propagate_to_dependent(over, dependent),
                None => self.propagate_to_next_item(over),
            }
        }
    }

    /// Returns the tasks that a task waits for, by number.
    pub(in crate::model) fn open_of(&self, task: TaskId) -> Vec<TaskId> {
        // The dependencies of a task are loaded together with the task.
        self.tasks.require(task);
        self.dependencies.open_of(task)
    }

    /// Ends the next item of an ended batch. After the last item it continues with the children.
    fn propagate_to_next_item(&mut self, over: UnpropagatedEnd) {
        let Some(item) = self.next_batch_item(over) else { return self.propagate_to_next_child(over) };
        self.dependencies.unpropagated_ends.iter_mut().take(1).for_each(|front| front.next_item = TaskId(item.0 + 1));
        self.end_item(item, over);
    }

    /// Cancels the next child of an ended task. After the last child the end is complete.
    fn propagate_to_next_child(&mut self, over: UnpropagatedEnd) {
        match self.next_child(over) {
            Some(child) => {
                self.dependencies
                    .unpropagated_ends
                    .iter_mut()
                    .take(1)
                    .for_each(|front| front.next_child = TaskId(child.0 + 1));
                self.cancel_child(child, over.task, over.ended);
            }
            None => drop(self.dependencies.unpropagated_ends.pop_front()),
        }
    }

    /// Applies an end to a dependent. It ends if its policy requires that, and is unblocked if this
    /// was its last open dependency.
    fn propagate_to_dependent(&mut self, over: UnpropagatedEnd, dependent: TaskId) {
        let UnpropagatedEnd { task, ended, .. } = over;
        self.dependencies.remove(task, dependent);
        let Some(on_failure) = self.tasks.get(dependent).map(|task| task.new.depends_on.on_failure) else { return };
        if let Some(state) = dependencies::end_of_dependent(ended, on_failure) {
            self.end_dependent(dependent, state, task, ended);
        } else if self.dependencies.open_of(dependent).is_empty() {
            self.unblock(dependent);
        }
    }

    /// Makes a task without open dependencies wait for a worker or for its due time.
    pub(in crate::model) fn unblock(&mut self, id: TaskId) {
        if self.state_unless_paused(id, TaskState::Waiting) == TaskState::Blocked {
            return;
        }
        let now = self.now.wall;
        self.tasks.change(id, |task| task.unblock(now));
        self.log(id, Change::Unblocked);
        self.hint_work();
        self.cancel_marked_items(id);
    }
}
