//! The ended tasks that a prune removes.

use std::time::Duration;

use crate::api::timestamp::Timestamp;
use crate::api::write::Prune;

/// Returns the last moment at which a task with its own retention is kept. The conditions of prunes
/// do not apply to it.
#[must_use]
pub fn retained_until(finished_at: Timestamp, retention: Duration) -> Timestamp {
    finished_at.plus(retention)
}

/// Returns whether any prune removes a task that is kept until `retained_until`.
#[must_use]
pub fn is_over(retained_until: Timestamp, now: Timestamp) -> bool {
    retained_until < now
}

/// The facts about an ended task without its own retention that [`is_forgotten`] needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EndedTask {
    /// The time at which it ended.
    pub finished_at: Timestamp,
    /// The number of such tasks that ended after it; 0 for the newest.
    pub newer: u64,
}

/// Returns whether `prune` removes a task, apart from its limit. Either condition is enough.
#[must_use]
pub fn is_forgotten(prune: &Prune, task: EndedTask, now: Timestamp) -> bool {
    let too_old = prune.older_than.is_some_and(|older_than| now - task.finished_at > older_than);
    let too_many = prune.keep.is_some_and(|keep| task.newer >= keep);
    too_old || too_many
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::MAX;

    #[test]
    fn a_task_exactly_as_old_as_allowed_stays() {
        let prune = Prune { older_than: Some(Duration::from_secs(1)), ..Prune::default() };
        let task = EndedTask { finished_at: NOW.minus(Duration::from_secs(1)), newer: 9 };
        assert!(!is_forgotten(&prune, task, NOW));
    }

    #[test]
    fn a_task_of_its_own_retention_stays_to_the_last_moment_of_it() {
        let until = retained_until(NOW.minus(Duration::from_secs(2)), Duration::from_secs(1));
        assert!(!is_over(until, until));
        assert!(is_over(until, NOW));
    }

    #[test]
    fn a_retention_beyond_all_time_is_never_over() {
        assert!(!is_over(retained_until(Timestamp::MIN.plus(Duration::MAX), Duration::MAX), Timestamp::MAX));
    }

    #[test]
    fn keeping_one_forgets_the_second_newest() {
        let prune = Prune { keep: Some(1), ..Prune::default() };
        assert!(is_forgotten(&prune, EndedTask { finished_at: NOW, newer: 1 }, NOW));
        assert!(!is_forgotten(&prune, EndedTask { finished_at: NOW, newer: 0 }, NOW));
    }

    #[test]
    fn without_a_condition_nothing_is_forgotten() {
        assert!(!is_forgotten(&Prune::default(), EndedTask { finished_at: Timestamp::MIN, newer: u64::MAX }, NOW));
    }
}
