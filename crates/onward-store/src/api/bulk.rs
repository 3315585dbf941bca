//! The same done to many tasks, a chunk at a time.

use serde::{Deserialize, Serialize};

use crate::api::name::Name;
use crate::api::outcome::{Outcome, Refusal};
use crate::api::store::TaskFilter;
use crate::api::task::{TaskId, TaskState};

/// What is done to each task.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BulkVerb {
    /// As [`Write::Cancel`](crate::Write::Cancel): of live tasks; those that were asked to stop
    /// already are passed over.
    Cancel,
    /// As [`Write::Retry`](crate::Write::Retry), of ended tasks. Those whose key is taken are
    /// passed over, and completed ones unless the filter names their state.
    Retry,
    /// Removed without a trace, as by [`Write::Purge`](crate::Write::Purge): of all but running
    /// tasks.
    Delete,
    /// As [`Write::RunNow`](crate::Write::RunNow): of scheduled tasks.
    RunNow,
    /// As [`Write::Kill`](crate::Write::Kill): of live tasks that do not run.
    Kill,
    /// As [`Write::PauseOrchestration`](crate::Write::PauseOrchestration): of live orchestrations.
    Pause,
    /// As [`Write::ResumeOrchestration`](crate::Write::ResumeOrchestration): of live
    /// orchestrations.
    Resume,
    /// As [`Write::Move`](crate::Write::Move): of live tasks, to this queue; those that are there
    /// count too.
    Move(Name),
}

/// A chunk of a change of many tasks.
#[derive(Debug, Clone, PartialEq)]
pub struct Bulk {
    /// What is done.
    pub verb: BulkVerb,
    /// To which tasks; those to which it cannot be done are left out. An empty filter means every
    /// task.
    pub filter: TaskFilter,
    /// Only to tasks with lower numbers: [`BulkDone::next`] of the chunk before. Without it, to
    /// those there are now.
    pub before: Option<TaskId>,
    /// To at most so many, from 1 to 1000.
    pub limit: usize,
}

/// A number of tasks for each state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct StateCounts([u64; TaskState::ALL.len()]);

impl StateCounts {
    /// Adds `tasks` tasks that are in `state`.
    pub fn add(&mut self, state: TaskState, tasks: u64) {
        let counts = TaskState::ALL.iter().zip(&mut self.0);
        counts.filter(|(counted, _)| **counted == state).for_each(|(_, count)| *count += tasks);
    }

    /// Returns the states in which there are tasks, in the order of [`TaskState::ALL`].
    pub fn iter(&self) -> impl Iterator<Item = (TaskState, u64)> + '_ {
        TaskState::ALL.into_iter().zip(self.0).filter(|(_, tasks)| *tasks > 0)
    }

    /// Returns the number of tasks in all states together.
    #[must_use]
    pub fn sum(&self) -> u64 {
        self.0.iter().sum()
    }
}

impl std::ops::AddAssign for StateCounts {
    fn add_assign(&mut self, other: Self) {
        other.iter().for_each(|(state, tasks)| self.add(state, tasks));
    }
}

impl FromIterator<(TaskState, u64)> for StateCounts {
    fn from_iter<I: IntoIterator<Item = (TaskState, u64)>>(counts: I) -> Self {
        let mut sum = Self::default();
        counts.into_iter().for_each(|(state, tasks)| sum.add(state, tasks));
        sum
    }
}

/// An object of the states in which there are tasks, and their numbers.
impl Serialize for StateCounts {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

/// What a chunk did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BulkDone {
    /// To how many tasks it was done.
    pub tasks: u64,
    /// Their number by the state that each had before.
    pub states: StateCounts,
    /// Those of them that run and were asked to stop, newest first.
    pub asked: Vec<TaskId>,
    /// Tasks to which it could not be done.
    pub passed_over: u64,
    /// Where the next chunk begins; `None` if this was the last.
    pub next: Option<TaskId>,
}

impl BulkDone {
    /// Counts the outcome of one task, which was in the state `before`.
    pub(crate) fn count(&mut self, task: TaskId, before: TaskState, outcome: &Result<Outcome, Refusal>) {
        match outcome {
            Err(_) => self.passed_over += 1,
            Ok(outcome) => {
                self.tasks += 1;
                self.states.add(before, 1);
                self.asked.extend(matches!(outcome, Outcome::CancelRequested).then_some(task));
            }
        }
    }
}
