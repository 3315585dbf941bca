//! Bulk changes: one verb applied to many tasks, one chunk at a time.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::api::name::Name;
use crate::api::outcome::{Outcome, Refusal};
use crate::api::store::TaskFilter;
use crate::api::task::{TaskId, TaskState};

/// The verb that a bulk change applies to each task.
///
/// A filter without states selects the states for which the verb is meant. A filter with states
/// selects those of them to which the verb can be applied.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BulkVerb {
    /// Cancels live tasks, as [`Write::Cancel`](crate::Write::Cancel) does. Skips tasks that were
    /// already asked to stop.
    Cancel,
    /// Retries ended tasks, as [`Write::Retry`](crate::Write::Retry) does. Skips tasks whose key is
    /// taken, and completed tasks unless the filter names that state.
    Retry,
    /// Removes tasks and their records, as [`Write::Purge`](crate::Write::Purge) does. Skips
    /// running tasks.
    Delete,
    /// Makes scheduled tasks due, as [`Write::RunNow`](crate::Write::RunNow) does.
    RunNow,
    /// Ends live tasks that do not run as dead letters, as [`Write::Kill`](crate::Write::Kill)
    /// does.
    Kill,
    /// Pauses live orchestrations, as
    /// [`Write::PauseOrchestration`](crate::Write::PauseOrchestration) does.
    Pause,
    /// Resumes live orchestrations, as
    /// [`Write::ResumeOrchestration`](crate::Write::ResumeOrchestration) does.
    Resume,
    /// Moves live tasks to this queue, as [`Write::Move`](crate::Write::Move) does. A task that is
    /// already there is counted as moved.
    Move(Name),
}

/// One chunk of a bulk change. A caller repeats it with [`before`](Self::before) until
/// [`BulkDone::next`] is `None`.
/// ```
/// use onward_store::{Bulk, BulkVerb, MemoryStore, NewTask, Outcome, Store, TaskFilter, Write};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let store = MemoryStore::new();
/// for _ in 0..3 {
///     store.apply(vec![Write::Submit(Box::new(NewTask::new("mail")?))]).await?;
/// }
///
/// // Cancels every waiting mail, two tasks a write.
/// let filter = TaskFilter { kind: Some("mail".parse()?), ..TaskFilter::default() };
/// let (mut before, mut chunks) = (None, 0);
/// loop {
///     let bulk = Bulk { verb: BulkVerb::Cancel, filter: filter.clone(), before, limit: 2 };
///     let outcomes = store.apply(vec![Write::Bulk(Box::new(bulk))]).await?;
///     let Outcome::Bulk(done) = &outcomes[0] else { panic!("a bulk change was asked for") };
///     (before, chunks) = (done.next, chunks + 1);
///     if before.is_none() {
///         break;
///     }
/// }
/// assert_eq!(chunks, 2);
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Bulk {
    /// The verb.
    pub verb: BulkVerb,
    /// The tasks to change. Tasks to which the verb cannot be applied are excluded. An empty filter
    /// selects every task.
    pub filter: TaskFilter,
    /// The exclusive upper end of the task numbers: [`BulkDone::next`] of the previous chunk.
    /// `None` starts with the newest task of the store.
    pub before: Option<TaskId>,
    /// The largest number of tasks to change, clamped to 1 to 1000.
    pub limit: usize,
}

/// The number of tasks in each state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct StateCounts([u64; TaskState::ALL.len()]);

impl StateCounts {
    /// Adds a number of tasks to the count of `state`.
    pub fn add(&mut self, state: TaskState, tasks: u64) {
        let counts = TaskState::ALL.iter().zip(&mut self.0);
        counts.filter(|(counted, _)| **counted == state).for_each(|(_, count)| *count += tasks);
    }

    /// Returns the counts that are not zero, in the order of [`TaskState::ALL`].
    pub fn iter(&self) -> impl Iterator<Item = (TaskState, u64)> + '_ {
        TaskState::ALL.into_iter().zip(self.0).filter(|(_, tasks)| *tasks > 0)
    }

    /// Returns the sum of all counts.
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

/// Serializes as a map from state to count, without counts of zero.
impl Serialize for StateCounts {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

impl<'de> Deserialize<'de> for StateCounts {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(BTreeMap::<TaskState, u64>::deserialize(deserializer)?.into_iter().collect())
    }
}

/// The result of one chunk of a bulk change.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct BulkDone {
    /// The number of tasks that were changed.
    pub tasks: u64,
    /// The number of changed tasks for each state that they had before.
    pub states: StateCounts,
    /// The changed tasks that were asked to stop instead of ending at once, newest first.
    pub cancel_requested: Vec<TaskId>,
    /// The number of selected tasks to which the verb could not be applied.
    pub skipped: u64,
    /// The value for [`Bulk::before`] of the next chunk; `None` if this was the last chunk.
    pub next: Option<TaskId>,
}

impl BulkDone {
    /// Counts the outcome of one task, which was in the state `before`.
    pub(crate) fn count(&mut self, task: TaskId, before: TaskState, outcome: &Result<Outcome, Refusal>) {
        match outcome {
            Err(_) => self.skipped += 1,
            Ok(outcome) => {
                self.tasks += 1;
                self.states.add(before, 1);
                self.cancel_requested.extend(matches!(outcome, Outcome::CancelRequested).then_some(task));
            }
        }
    }
}
