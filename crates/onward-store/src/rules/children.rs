//! The relation of parents and children.

use std::collections::HashSet;

use crate::api::dependency::OnDependencyFailure;
use crate::api::outcome::Refusal;
use crate::api::task::{TaskId, TaskState};
use crate::bounds;
use crate::rules::dependencies::{Ended, end_of_dependent};

/// Returns whether the children of an ended task are cancelled. They are, unless the task
/// completed.
#[must_use]
pub fn are_cancelled(parent: Ended) -> bool {
    parent != Some(TaskState::Completed)
}

/// Returns whether an ended task cancels its children. A dead orchestration does not, because it
/// continues with them when it is retried.
#[must_use]
pub fn follow(parent: Ended, is_orchestration: bool) -> bool {
    are_cancelled(parent) && !(is_orchestration && parent == Some(TaskState::Dead))
}

/// Returns whether a new child is cancelled at once. `parent` is the state of its parent; `None` if
/// the parent is no longer known.
#[must_use]
pub fn is_cancelled_at_once(parent: Option<TaskState>) -> bool {
    parent.is_some_and(|state| state.is_ended() && state != TaskState::Completed)
}

/// Returns the error of a task that was cancelled with its parent.
#[must_use]
pub fn error(parent: TaskId, ended: Ended) -> String {
    match ended {
        Some(state) => format!("task {parent}, its parent, ended as {state}"),
        None => format!("task {parent}, its parent, was removed"),
    }
}

/// Returns the error of a task that ended because of a child.
#[must_use]
pub fn child_error(child: TaskId, ended: TaskState) -> String {
    format!("task {child}, its child, ended as {ended}")
}

/// Returns the state in which a task ends instead of waiting for its children; `None` if it waits.
/// `failed` is a child of this attempt that did not complete.
#[must_use]
pub fn end_of_parent(failed: Option<(TaskId, TaskState)>, on_failure: OnDependencyFailure) -> Option<TaskState> {
    failed.and_then(|(_, state)| end_of_dependent(Some(state), on_failure))
}

/// Checks the number of children for which a task would wait.
///
/// # Errors
/// [`Refusal::Invalid`] for more than [`bounds::AWAITED_CHILDREN`].
pub fn check_count(children: usize) -> Result<(), Refusal> {
    if children <= bounds::AWAITED_CHILDREN {
        return Ok(());
    }
    Err(Refusal::Invalid(format!(
        "a task would wait for more than {} live children; have some of them spawn the others",
        bounds::AWAITED_CHILDREN
    )))
}

/// Checks that no task for which `parent` would wait also waits for `parent`, directly or through
/// other tasks. `open_of` returns the tasks for which a task waits.
///
/// # Errors
/// [`Refusal::Invalid`] if one does, or if the check would have to examine more than
/// [`bounds::AWAITED_CHILDREN`] tasks.
pub fn check_cycle<E: From<Refusal>>(
    parent: TaskId,
    tasks: &[TaskId],
    mut open_of: impl FnMut(TaskId) -> Result<Vec<TaskId>, E>,
) -> Result<(), E> {
    let mut seen: HashSet<TaskId> = tasks.iter().copied().collect();
    let mut ahead: Vec<TaskId> = tasks.to_vec();
    while let Some(task) = ahead.pop() {
        if task == parent {
            return Err(cyclic_wait(parent).into());
        }
        if seen.len() > bounds::AWAITED_CHILDREN {
            return Err(too_far(parent).into());
        }
        // Each task is visited once, so a cycle among other tasks ends the walk.
        ahead.extend(open_of(task)?.into_iter().filter(|next| seen.insert(*next)));
    }
    Ok(())
}

/// Returns the refusal of a wait that would never end: the child waits for its parent.
fn cyclic_wait(parent: TaskId) -> Refusal {
    Refusal::Invalid(format!(
        "task {parent} would wait for a child that waits for task {parent}, so that neither could ever go on; \
         a child must not depend on its parent, nor on what does"
    ))
}

/// Returns the refusal of a wait that is too deep to be checked for a cycle.
fn too_far(parent: TaskId) -> Refusal {
    Refusal::Invalid(format!(
        "task {parent} would wait for children that wait for more than {} tasks, so that it cannot be known whether one of these \
         waits for task {parent}; let the children depend on fewer",
        bounds::AWAITED_CHILDREN
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cycle_of(edges: &[(i64, i64)], children: &[i64]) -> Result<(), Refusal> {
        let open_of = |task: TaskId| {
            let of_task = edges.iter().filter(|(from, _)| *from == task.0);
            Ok(of_task.map(|(_, to)| TaskId(*to)).collect())
        };
        let children: Vec<TaskId> = children.iter().map(|child| TaskId(*child)).collect();
        check_cycle(TaskId(1), &children, open_of)
    }

    #[test]
    fn children_that_wait_for_each_other_are_waited_for() {
        assert_eq!(cycle_of(&[(3, 2), (4, 2), (4, 3)], &[2, 3, 4]), Ok(()));
    }

    #[test]
    fn a_child_that_waits_for_its_parent_over_others_is_not_waited_for() {
        assert!(cycle_of(&[(2, 5), (5, 6), (6, 1)], &[2]).is_err());
    }

    #[test]
    fn a_circle_elsewhere_is_no_reason_to_look_for_ever() {
        assert_eq!(cycle_of(&[(2, 3), (3, 2)], &[2]), Ok(()));
    }

    #[test]
    fn a_parent_that_fails_fast_ends_with_its_first_failed_child() {
        let failed = Some((TaskId(2), TaskState::Dead));
        assert_eq!(end_of_parent(failed, OnDependencyFailure::Fail), Some(TaskState::Failed));
        assert_eq!(end_of_parent(failed, OnDependencyFailure::Ignore), None);
    }
}
