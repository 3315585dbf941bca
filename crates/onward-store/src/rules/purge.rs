//! The states that a purge accepts.

use crate::api::name::Name;
use crate::api::outcome::Refusal;
use crate::api::task::TaskState;

/// Checks the states of a purge.
///
/// # Errors
/// [`Refusal::Invalid`] for an empty list, or for [`TaskState::Running`].
pub fn check(queue: &Name, states: &[TaskState]) -> Result<(), Refusal> {
    if states.is_empty() {
        return Err(Refusal::Invalid(format!(
            "a purge of the queue `{queue}` names no state; name those to be removed"
        )));
    }
    if states.contains(&TaskState::Running) {
        return Err(Refusal::Invalid(format!(
            "a purge of the queue `{queue}` names running tasks; cancel them, and purge them when they have ended"
        )));
    }
    Ok(())
}
