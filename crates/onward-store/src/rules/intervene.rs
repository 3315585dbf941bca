//! What people may do to a task, by where it stands.

use crate::api::outcome::Refusal;
use crate::api::task::{TaskId, TaskState};

/// What a task says of why it is dead that somebody killed.
pub const KILLED: &str = "it was killed before it ran: somebody asked for it";

/// Whether a task can be made due.
///
/// # Errors
/// Why not.
pub fn run_now(task: TaskId, state: TaskState) -> Result<(), Refusal> {
    match state {
        TaskState::Scheduled | TaskState::Waiting => Ok(()),
        TaskState::Blocked => Err(Refusal::Blocked(task)),
        TaskState::Running => Err(Refusal::Running(task)),
        state => Err(Refusal::AlreadyEnded { task, state }),
    }
}

/// Whether a task can be made a dead letter.
///
/// # Errors
/// Why not.
pub fn kill(task: TaskId, state: TaskState) -> Result<(), Refusal> {
    match state {
        TaskState::Scheduled | TaskState::Waiting | TaskState::Blocked => Ok(()),
        TaskState::Running => Err(Refusal::Running(task)),
        state => Err(Refusal::AlreadyEnded { task, state }),
    }
}

/// Whether a task can be removed.
///
/// # Errors
/// Why not.
pub fn delete(task: TaskId, state: TaskState) -> Result<(), Refusal> {
    if state == TaskState::Running { Err(Refusal::Running(task)) } else { Ok(()) }
}
