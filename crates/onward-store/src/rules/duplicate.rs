//! The effect of a submit whose key is taken.

use crate::api::task::{OnDuplicate, Priority, TaskId};

/// The task that has the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyHolder {
    /// The number.
    pub id: TaskId,
    /// The priority.
    pub priority: Priority,
    /// True if a session holds it.
    pub running: bool,
    /// True if it has ended and only retains its key.
    pub ended: bool,
    /// True if it is an orchestration that was never started, and only keeps signals for the task
    /// that is submitted.
    pub unstarted: bool,
}

/// The effect of a submit with a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// Insert the task.
    Insert,
    /// Leave everything unchanged.
    Keep(TaskId),
    /// Raise the priority of the existing task.
    Raise(TaskId),
    /// Insert the task when the existing one ends. It replaces another task that was to follow.
    Follow(TaskId),
    /// Cancel the existing task and insert the new one.
    Supersede(TaskId),
    /// Reject the submit.
    Reject(TaskId),
    /// Insert the task in place of one that has ended, whose key is no longer kept.
    TakeOver(TaskId),
    /// Insert the task in place of an orchestration that was never started, with the messages of
    /// that one.
    Start(TaskId),
    /// Reject the submit: the key that it takes over from the first task belongs to the second.
    Refuse(TaskId, TaskId),
}

/// Decides the effect of a submit with a key.
#[must_use]
pub fn decide(holder: Option<KeyHolder>, on_duplicate: OnDuplicate, priority: Priority) -> Decision {
    let Some(holder) = holder else { return Decision::Insert };
    if holder.unstarted {
        return Decision::Start(holder.id);
    }
    match on_duplicate {
        OnDuplicate::TakeOver(from) if holder.ended && holder.id == from => Decision::TakeOver(from),
        OnDuplicate::TakeOver(from) => Decision::Refuse(from, holder.id),
        // Before the arm for ended holders, because a retained key is also reported as a rejection.
        OnDuplicate::Reject => Decision::Reject(holder.id),
        _ if holder.ended => Decision::Keep(holder.id),
        OnDuplicate::Supersede => Decision::Supersede(holder.id),
        OnDuplicate::Requeue if holder.running => Decision::Follow(holder.id),
        OnDuplicate::Skip if !holder.running && priority > holder.priority => Decision::Raise(holder.id),
        OnDuplicate::Skip | OnDuplicate::Requeue => Decision::Keep(holder.id),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WAITING: KeyHolder =
        KeyHolder { id: TaskId(7), priority: Priority::NORMAL, running: false, ended: false, unstarted: false };

    #[test]
    fn a_free_key_inserts() {
        assert_eq!(decide(None, OnDuplicate::Reject, Priority::NORMAL), Decision::Insert);
    }

    #[test]
    fn a_more_urgent_duplicate_raises_what_waits() {
        assert_eq!(decide(Some(WAITING), OnDuplicate::Skip, Priority::HIGH), Decision::Raise(TaskId(7)));
    }

    #[test]
    fn a_less_urgent_duplicate_changes_nothing() {
        assert_eq!(decide(Some(WAITING), OnDuplicate::Skip, Priority::LOW), Decision::Keep(TaskId(7)));
    }

    #[test]
    fn requeue_follows_a_running_task() {
        let running = KeyHolder { running: true, ..WAITING };
        assert_eq!(decide(Some(running), OnDuplicate::Requeue, Priority::NORMAL), Decision::Follow(TaskId(7)));
    }

    #[test]
    fn a_key_kept_after_the_end_supersedes_nothing() {
        let ended = KeyHolder { ended: true, ..WAITING };
        assert_eq!(decide(Some(ended), OnDuplicate::Supersede, Priority::NORMAL), Decision::Keep(TaskId(7)));
    }

    #[test]
    fn what_keeps_a_key_for_a_start_gives_it_to_whatever_is_started() {
        let unstarted = KeyHolder { unstarted: true, ..WAITING };
        for on_duplicate in [OnDuplicate::Skip, OnDuplicate::Reject, OnDuplicate::Requeue, OnDuplicate::Supersede] {
            assert_eq!(decide(Some(unstarted), on_duplicate, Priority::NORMAL), Decision::Start(TaskId(7)));
        }
    }

    #[test]
    fn a_key_is_taken_over_from_the_one_that_is_named_and_has_ended() {
        let ended = KeyHolder { ended: true, ..WAITING };
        let from = |holder, task| decide(Some(holder), OnDuplicate::TakeOver(TaskId(task)), Priority::NORMAL);
        assert_eq!(from(ended, 7), Decision::TakeOver(TaskId(7)));
        assert_eq!(from(ended, 6), Decision::Refuse(TaskId(6), TaskId(7)));
        assert_eq!(from(WAITING, 7), Decision::Refuse(TaskId(7), TaskId(7)));
    }
}
