//! What is looked for of a store of which a part is loaded.

use std::time::Duration;

use super::applied::Answered;
use super::contents::Partial;
use super::counters::{Counters, Now};
use super::small_state::Items;
use super::task_row::{Links, LoadedTask, TaskRow};
use crate::api::outcome::Outcome;
use crate::api::task::{NewTask, TaskId, TaskState};
use crate::api::timestamp::Timestamp;
use crate::api::write::{Prune, Write};
use crate::model::{End, Task, Want};

fn ended(number: i64) -> LoadedTask {
    let at = Timestamp::from_microseconds(number);
    let mut task = Task::submitted(TaskId(number), NewTask::new("mail").unwrap(), at);
    (task.state, task.finished_at) = (TaskState::Completed, Some(at));
    task.end = Some(End { number: number.cast_unsigned(), entry: number });
    LoadedTask::of(TaskRow::of(&task, true).unwrap(), Links::default()).unwrap()
}

/// A store of a million ended tasks, of which three are loaded.
fn long_history() -> Partial {
    let counters = Counters { last_task: 1_000_000, ends: 1_000_000, last_entry: 1_000_000, ..Counters::default() };
    let items = Items::of(std::iter::empty()).unwrap();
    let mut partial = Partial::new(counters, None, 1024, items).unwrap();
    partial.order(&Want::Ended, (1..=3).map(ended).collect(), 3);
    partial.order(&Want::Retained, Vec::new(), 3);
    partial.settle();
    partial
}

fn pruned(partial: &Partial, keep: Option<u64>, limit: usize) -> Answered<Outcome> {
    let prune = Prune { older_than: Some(Duration::ZERO), keep, limit };
    let now = Now { wall: Timestamp::from_microseconds(2_000_000), steady: Duration::ZERO };
    let ran = partial.run(&[&[Write::Prune(prune)]], now).unwrap()?;
    Ok(ran.outcomes[0][0].clone())
}

/// Else each of the many small writes that prune a long history would load most of it.
#[test]
fn a_prune_looks_one_task_beyond_its_limit_and_counts_for_who_keeps_some_alone() {
    assert_eq!(pruned(&long_history(), None, 2), Ok(Outcome::Removed { tasks: 2, more: true }));
    assert_eq!(pruned(&long_history(), None, 3), Err([Want::Ended].into()));
    assert_eq!(pruned(&long_history(), Some(5), 2), Err([Want::EndedCount].into()));
}
