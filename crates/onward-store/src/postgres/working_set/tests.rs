//! Tests of the requests that writes make over a partly loaded store.

use std::time::Duration;

use super::applied::Covered;
use super::contents::WorkingSet;
use super::counters::Counters;
use super::small_state::SmallState;
use super::task_row::{LoadedTask, Relations, TaskRow};
use crate::api::outcome::Outcome;
use crate::api::task::{NewTask, TaskId, TaskState};
use crate::api::timestamp::Timestamp;
use crate::api::write::{Prune, Write};
use crate::model::Now;
use crate::model::{End, LoadRequest, Task};

fn ended(number: i64) -> LoadedTask {
    let at = Timestamp::from_microseconds(number);
    let mut task = Task::submitted(TaskId(number), NewTask::new("mail").unwrap(), at);
    (task.state, task.finished_at) = (TaskState::Completed, Some(at));
    task.end = Some(End { number: number.cast_unsigned(), entry: number });
    LoadedTask::of(TaskRow::of(&task, true).unwrap(), Relations::default()).unwrap()
}

/// Returns a store of a million ended tasks, of which three are loaded.
fn long_history() -> WorkingSet {
    let counters = Counters { last_task: 1_000_000, ends: 1_000_000, last_entry: 1_000_000, ..Counters::default() };
    let items = SmallState::of(std::iter::empty()).unwrap();
    let mut working_set = WorkingSet::new(counters, None, 1024, items).unwrap();
    working_set.order(&LoadRequest::Ended, (1..=3).map(ended).collect(), 3);
    working_set.order(&LoadRequest::Retained, Vec::new(), 3);
    working_set.count_unloaded();
    working_set
}

fn pruned(working_set: &WorkingSet, keep: Option<u64>, limit: usize) -> Covered<Outcome> {
    let prune = Prune { older_than: Some(Duration::ZERO), keep, limit };
    let now = Now { wall: Timestamp::from_microseconds(2_000_000), steady: Duration::ZERO };
    let applied = working_set.run(&[&[Write::Prune(prune)]], now).unwrap()?;
    Ok(applied.outcomes[0][0].clone())
}

/// Without this bound, each of the many small writes that prune a long history would load most of
/// it.
#[test]
fn a_prune_looks_one_task_beyond_its_limit_and_counts_for_who_keeps_some_alone() {
    assert_eq!(pruned(&long_history(), None, 2), Ok(Outcome::Removed { tasks: 2, more: true }));
    assert_eq!(pruned(&long_history(), None, 3), Err([LoadRequest::Ended].into()));
    assert_eq!(pruned(&long_history(), Some(5), 2), Err([LoadRequest::EndedCount].into()));
}
