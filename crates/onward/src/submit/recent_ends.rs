//! The latest ends of tasks: a task may end before its submitter has a handle.

use std::collections::VecDeque;

use onward_store::{TaskId, TaskNotification};

use super::wait::EndNotice;
use crate::bounds;

/// A position in the feed of notifications: later ones are new since then.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FeedPosition(u64);

/// The known state of a task since a position.
#[derive(Debug)]
pub(crate) enum Since {
    /// The task has ended.
    Ended(EndNotice),
    /// The task has not ended, or its end is still to be notified.
    NotNotified,
    /// Too much has been forgotten to know.
    Unknown,
}

/// The latest notifications, at most [`bounds::RECENT_ENDS`], oldest first.
///
/// Adding one is cheap, because that happens for every task that ends. A lookup compares each
/// notification since the position. Most lookups compare none: a task with a higher id than any
/// that ended has not ended.
#[derive(Debug, Default)]
pub(crate) struct RecentEnds {
    /// `None` for a task that was retried.
    notifications: VecDeque<(TaskId, Option<EndNotice>)>,
    /// The number of notifications so far, including forgotten ones.
    notified: u64,
    /// The highest id of a task that ended.
    highest: Option<TaskId>,
}

impl RecentEnds {
    pub(crate) fn position(&self) -> FeedPosition {
        FeedPosition(self.notified)
    }

    pub(crate) fn record(&mut self, notification: &TaskNotification) {
        match notification {
            TaskNotification::Completed { task, result } => {
                self.add(*task, Some(EndNotice::completed(result.as_ref())))
            }
            TaskNotification::Retried { task } => self.add(*task, None),
            TaskNotification::Ended { task } => self.add(*task, Some(EndNotice::ReadTask)),
            // A variant that this version does not know.
            _ => self.forget(),
        }
    }

    fn add(&mut self, task: TaskId, notification: Option<EndNotice>) {
        self.notified += 1;
        self.highest = self.highest.max(Some(task));
        if self.notifications.len() == bounds::RECENT_ENDS {
            self.notifications.pop_front();
        }
        self.notifications.push_back((task, notification));
    }

    /// Forgets everything, because a notification may have been missed.
    pub(crate) fn forget(&mut self) {
        self.notified += 1;
        self.notifications.clear();
    }

    pub(crate) fn since(&self, task: TaskId, position: FeedPosition) -> Since {
        let notified_since = self.notified.saturating_sub(position.0);
        match usize::try_from(notified_since) {
            Ok(notified_since) if notified_since <= self.notifications.len() => self.among_last(notified_since, task),
            _ => Since::Unknown,
        }
    }

    fn among_last(&self, count: usize, task: TaskId) -> Since {
        if self.highest < Some(task) {
            return Since::NotNotified;
        }
        let newest = self.notifications.iter().rev().take(count).find(|(notified, _)| *notified == task);
        newest.and_then(|(_, notification)| notification.clone()).map_or(Since::NotNotified, Since::Ended)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(task: i64) -> TaskNotification {
        TaskNotification::Ended { task: TaskId(task) }
    }

    #[test]
    fn an_end_before_the_moment_is_not_new() {
        let mut recent = RecentEnds::default();
        recent.record(&ended(1));
        let position = recent.position();
        assert!(matches!(recent.since(TaskId(1), position), Since::NotNotified));
    }

    #[test]
    fn an_end_after_the_moment_is_known() {
        let mut recent = RecentEnds::default();
        let position = recent.position();
        recent.record(&ended(1));
        assert!(matches!(recent.since(TaskId(1), position), Since::Ended(EndNotice::ReadTask)));
    }

    #[test]
    fn a_task_that_has_not_ended_is_not_notified_although_a_later_one_has() {
        let mut recent = RecentEnds::default();
        let position = recent.position();
        recent.record(&ended(2));
        assert!(matches!(recent.since(TaskId(1), position), Since::NotNotified));
    }

    #[test]
    fn an_end_that_was_undone_is_none() {
        let mut recent = RecentEnds::default();
        let position = recent.position();
        recent.record(&ended(1));
        recent.record(&TaskNotification::Retried { task: TaskId(1) });
        assert!(matches!(recent.since(TaskId(1), position), Since::NotNotified));
    }

    #[test]
    fn a_moment_before_something_missed_knows_nothing() {
        let mut recent = RecentEnds::default();
        let position = recent.position();
        recent.forget();
        assert!(matches!(recent.since(TaskId(1), position), Since::Unknown));
    }

    #[test]
    fn a_moment_after_something_missed_knows_what_came_since() {
        let mut recent = RecentEnds::default();
        recent.forget();
        let position = recent.position();
        assert!(matches!(recent.since(TaskId(1), position), Since::NotNotified));
    }

    #[test]
    fn a_moment_before_more_ends_than_are_kept_knows_nothing() {
        let mut recent = RecentEnds::default();
        let position = recent.position();
        (0..=bounds::RECENT_ENDS as i64).for_each(|task| recent.record(&ended(task)));
        assert!(matches!(recent.since(TaskId(0), position), Since::Unknown));
    }

    #[test]
    fn a_second_end_outlives_the_first_ones_place() {
        let mut recent = RecentEnds::default();
        recent.record(&ended(1));
        recent.record(&ended(1));
        let position = FeedPosition(1);
        (2..=bounds::RECENT_ENDS as i64).for_each(|task| recent.record(&ended(task)));
        assert!(matches!(recent.since(TaskId(1), position), Since::Ended(_)));
    }
}
