//! Which ended tasks are forgotten.

use crate::timestamp::Timestamp;
use crate::write::Prune;

/// An ended task as [`is_forgotten`] sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EndedTask {
    /// When it ended.
    pub finished_at: Timestamp,
    /// How many tasks ended after it: none for the newest.
    pub newer: u64,
}

/// Whether a task is one of those that `prune` forgets, its limit apart. Either condition is enough.
#[must_use]
pub fn is_forgotten(prune: &Prune, task: EndedTask, now: Timestamp) -> bool {
    let too_old = prune.older_than.is_some_and(|older_than| now - task.finished_at > older_than);
    let too_many = prune.keep.is_some_and(|keep| task.newer >= keep);
    too_old || too_many
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const NOW: Timestamp = Timestamp::MAX;

    #[test]
    fn a_task_exactly_as_old_as_allowed_stays() {
        let prune = Prune { older_than: Some(Duration::from_secs(1)), ..Prune::default() };
        let task = EndedTask { finished_at: NOW.minus(Duration::from_secs(1)), newer: 9 };
        assert!(!is_forgotten(&prune, task, NOW));
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
