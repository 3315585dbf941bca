//! Interventions of operators, by the state of the task.

use crate::api::outcome::Refusal;
use crate::api::task::{TaskId, TaskState};

/// The last error of a task that was killed. It may have run before: a task between two attempts,
/// or an orchestration between two turns.
pub const KILLED: &str = "killed on request";

/// Checks that a task can be made due.
///
/// # Errors
/// [`Refusal::Blocked`], [`Refusal::Running`] or [`Refusal::AlreadyEnded`], by the state.
pub fn run_now(task: TaskId, state: TaskState) -> Result<(), Refusal> {
    match state {
        TaskState::Scheduled | TaskState::Waiting => Ok(()),
        TaskState::Blocked => Err(Refusal::Blocked(task)),
        TaskState::Running => Err(Refusal::Running(task)),
        state => Err(Refusal::AlreadyEnded { task, state }),
    }
}

/// Checks that a task can be made a dead letter.
///
/// # Errors
/// [`Refusal::Running`] or [`Refusal::AlreadyEnded`], by the state.
pub fn kill(task: TaskId, state: TaskState) -> Result<(), Refusal> {
    match state {
        TaskState::Scheduled | TaskState::Waiting | TaskState::Blocked => Ok(()),
        TaskState::Running => Err(Refusal::Running(task)),
        state => Err(Refusal::AlreadyEnded { task, state }),
    }
}

/// Checks that a task can be removed.
///
/// # Errors
/// [`Refusal::Running`] for a running task.
pub fn delete(task: TaskId, state: TaskState) -> Result<(), Refusal> {
    if state == TaskState::Running { Err(Refusal::Running(task)) } else { Ok(()) }
}
