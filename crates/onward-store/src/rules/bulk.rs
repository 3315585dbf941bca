//! The tasks that a chunk of a bulk change examines.

use crate::api::bulk::{Bulk, BulkVerb};
use crate::api::outcome::Refusal;
use crate::api::store::TaskFilter;
use crate::api::task::{TaskId, TaskState};
use crate::bounds;
use crate::rules::queue;

/// Checks a bulk change before any task is examined.
///
/// # Errors
/// [`Refusal::Invalid`] for a move to a queue that is reserved for Onward.
pub fn check(bulk: &Bulk) -> Result<(), Refusal> {
    if let BulkVerb::Move(queue) = &bulk.verb { queue::check_own(queue) } else { Ok(()) }
}

/// Returns the filter of the tasks that `filter` selects and to which `verb` can be applied; `None`
/// if no task can match.
///
/// A filter without states selects the states for which the verb is meant. A retry excludes
/// completed tasks unless their state is named, because it would repeat finished work.
#[must_use]
pub fn eligible(verb: &BulkVerb, filter: &TaskFilter) -> Option<TaskFilter> {
    let is_selected = |state: &TaskState| match filter.states.is_empty() {
        true => is_meant(verb, *state),
        false => filter.states.contains(state),
    };
    let states: Vec<_> =
        TaskState::ALL.into_iter().filter(|state| is_possible(verb, *state)).filter(is_selected).collect();
    let asked = if *verb == BulkVerb::Cancel { Some(false) } else { filter.cancel_requested };
    let is_of_orchestrations = matches!(verb, BulkVerb::Pause | BulkVerb::Resume);
    let orchestration = if is_of_orchestrations { Some(true) } else { filter.orchestration };
    let contradicts = filter.cancel_requested.is_some() && filter.cancel_requested != asked
        || filter.orchestration.is_some() && filter.orchestration != orchestration;
    let eligible = || TaskFilter { states, cancel_requested: asked, orchestration, ..filter.clone() };
    (!contradicts).then(eligible).filter(|filter| !filter.states.is_empty())
}

/// Returns true if the verb can change tasks in this state. A bulk action skips the other tasks
/// instead of failing, because the filter may name no state.
fn is_possible(verb: &BulkVerb, state: TaskState) -> bool {
    match verb {
        BulkVerb::Cancel | BulkVerb::Pause | BulkVerb::Resume | BulkVerb::Move(_) => !state.is_ended(),
        BulkVerb::Retry => state.is_ended(),
        BulkVerb::Delete => state != TaskState::Running,
        BulkVerb::RunNow => state == TaskState::Scheduled,
        BulkVerb::Kill => !state.is_ended() && state != TaskState::Running,
    }
}

/// Returns whether the verb applies to tasks in this state if the filter names no state.
fn is_meant(verb: &BulkVerb, state: TaskState) -> bool {
    *verb != BulkVerb::Retry || state != TaskState::Completed
}

/// The tasks that one chunk examines.
#[derive(Debug, Clone, PartialEq)]
pub struct Chunk {
    /// The filter.
    pub filter: TaskFilter,
    /// The lowest task number.
    pub from: TaskId,
    /// The exclusive upper end of the task numbers.
    pub before: TaskId,
    /// The largest number of tasks.
    pub limit: usize,
}

impl Chunk {
    /// Returns the chunk that is requested; `None` if it is empty. `highest` is the highest task
    /// number so far.
    #[must_use]
    pub fn of(bulk: &Bulk, highest: TaskId) -> Option<Self> {
        let end = TaskId(highest.0.saturating_add(1));
        let before = bulk.before.map_or(end, |before| before.min(end));
        let from = TaskId(before.0.saturating_sub(bounds::BULK_WINDOW).max(1));
        let filter = eligible(&bulk.verb, &bulk.filter).filter(|_| from < before)?;
        Some(Self { filter, from, before, limit: bulk.limit.clamp(1, bounds::BULK) })
    }

    /// Cuts the tasks found to the limit, and returns the start of the next chunk. The tasks are in
    /// the order newest first, and one more than the limit shows that others follow.
    #[must_use]
    pub fn cut(&self, tasks: &mut Vec<TaskId>) -> Option<TaskId> {
        if tasks.len() > self.limit {
            tasks.truncate(self.limit);
            return tasks.last().copied();
        }
        // The window was examined completely, so the next chunk starts below it.
        (self.from > TaskId(1)).then_some(self.from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::name::Name;

    fn bulk(verb: BulkVerb, states: &[TaskState]) -> Bulk {
        Bulk { verb, filter: TaskFilter { states: states.to_vec(), ..TaskFilter::default() }, before: None, limit: 2 }
    }

    #[test]
    fn a_verb_takes_the_states_that_it_can_do_something_to() {
        let states = |verb, states: &[TaskState]| {
            eligible(&verb, &bulk(verb.clone(), states).filter).map(|filter| filter.states)
        };
        let live = vec![TaskState::Blocked, TaskState::Scheduled, TaskState::Waiting, TaskState::Running];
        assert_eq!(states(BulkVerb::Cancel, &[]), Some(live.clone()));
        assert_eq!(states(BulkVerb::Move(Name::new("q").unwrap()), &[]), Some(live));
        assert_eq!(states(BulkVerb::Retry, &[TaskState::Dead, TaskState::Waiting]), Some(vec![TaskState::Dead]));
        assert_eq!(states(BulkVerb::Delete, &[TaskState::Running]), None);
        assert_eq!(states(BulkVerb::RunNow, &[]), Some(vec![TaskState::Scheduled]));
        let unstarted = vec![TaskState::Blocked, TaskState::Scheduled, TaskState::Waiting];
        assert_eq!(states(BulkVerb::Kill, &[]), Some(unstarted));
    }

    #[test]
    fn a_retry_repeats_completed_tasks_only_where_their_state_is_named() {
        let states = |states: &[TaskState]| {
            eligible(&BulkVerb::Retry, &bulk(BulkVerb::Retry, states).filter).map(|filter| filter.states)
        };
        let unsuccessful = vec![TaskState::Failed, TaskState::Dead, TaskState::Cancelled, TaskState::Expired];
        assert_eq!(states(&[]), Some(unsuccessful));
        assert_eq!(states(&[TaskState::Completed]), Some(vec![TaskState::Completed]));
    }

    #[test]
    fn chunks_reach_from_the_highest_number_to_the_first_and_end() {
        let window = bounds::BULK_WINDOW;
        let (mut bulk, mut looked_at) = (bulk(BulkVerb::Cancel, &[]), Vec::new());
        while let Some(chunk) = Chunk::of(&bulk, TaskId(2 * window + 5)) {
            looked_at.push((chunk.from.0, chunk.before.0));
            bulk.before = chunk.cut(&mut Vec::new());
            if bulk.before.is_none() {
                break;
            }
        }
        assert_eq!(looked_at, [(window + 6, 2 * window + 6), (6, window + 6), (1, 6)]);
    }

    #[test]
    fn a_full_chunk_goes_on_behind_its_last_task() {
        let chunk = Chunk::of(&bulk(BulkVerb::Cancel, &[]), TaskId(9)).unwrap();
        let mut tasks = [9, 8, 7].map(TaskId).to_vec();
        assert_eq!((chunk.cut(&mut tasks), tasks.len()), (Some(TaskId(8)), 2));
    }
}
