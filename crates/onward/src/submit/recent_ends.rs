//! The latest ends that were told: a task may end before whoever submitted it has its handle.

use std::collections::VecDeque;

use onward_store::{TaskId, TaskNews};

use super::wait::Notification;
use crate::bounds;

/// A moment among the news: what is told later is new since then.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FeedPosition(u64);

/// What is known of a task since a moment.
#[derive(Debug)]
pub(crate) enum Since {
    /// It has ended.
    Ended(Notification),
    /// It has not ended, or that is still to be told.
    NotNotified,
    /// Too much has been forgotten to tell.
    Unknown,
}

/// The news told last, at most [`bounds::RECENT_ENDS`] of them, oldest first.
///
/// To keep them costs next to nothing, for that is done for every task that ends. To ask costs a
/// comparison for each told since the moment, and mostly nothing: a task whose number is higher
/// than that of any that ended has not ended.
#[derive(Debug, Default)]
pub(crate) struct RecentEnds {
    /// Of a task that was tried again, none.
    notifications: VecDeque<(TaskId, Option<Notification>)>,
    /// How many were told, those forgotten included.
    notified: u64,
    /// The highest number of a task that ended.
    highest: Option<TaskId>,
}

impl RecentEnds {
    pub(crate) fn position(&self) -> FeedPosition {
        FeedPosition(self.notified)
    }

    pub(crate) fn record(&mut self, notification: &TaskNews) {
        match notification {
            TaskNews::Completed { task, result } => self.add(*task, Some(Notification::completed(result.as_ref()))),
            TaskNews::Retried { task } => self.add(*task, None),
            TaskNews::Ended { task } => self.add(*task, Some(Notification::ReadTask)),
            // News of a sort that is not known yet.
            _ => self.forget(),
        }
    }

    fn add(&mut self, task: TaskId, notification: Option<Notification>) {
        self.notified += 1;
        self.highest = self.highest.max(Some(task));
        if self.notifications.len() == bounds::RECENT_ENDS {
            self.notifications.pop_front();
        }
        self.notifications.push_back((task, notification));
    }

    /// Something may have happened that was not told.
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

    fn ended(task: i64) -> TaskNews {
        TaskNews::Ended { task: TaskId(task) }
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
        assert!(matches!(recent.since(TaskId(1), position), Since::Ended(Notification::ReadTask)));
    }

    #[test]
    fn a_task_that_has_not_ended_is_untold_although_a_later_one_has() {
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
        recent.record(&TaskNews::Retried { task: TaskId(1) });
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
