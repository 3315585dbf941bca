//! The latest ends that were told: a task may end before whoever submitted it has its handle.

use std::collections::VecDeque;

use onward_store::{TaskId, TaskNews};

use super::wait::News;
use crate::bounds;

/// A moment among the news: what is told later is new since then.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Moment(u64);

/// What is known of a task since a moment.
#[derive(Debug)]
pub(crate) enum Since {
    /// It has ended.
    Ended(News),
    /// It has not ended, or that is still to be told.
    Untold,
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
    news: VecDeque<(TaskId, Option<News>)>,
    /// How many were told, those forgotten included.
    told: u64,
    /// The highest number of a task that ended.
    highest: Option<TaskId>,
}

impl RecentEnds {
    pub(crate) fn now(&self) -> Moment {
        Moment(self.told)
    }

    pub(crate) fn hear(&mut self, news: &TaskNews) {
        match news {
            TaskNews::Completed { task, result } => self.add(*task, Some(News::completed(result.as_ref()))),
            TaskNews::Retried { task } => self.add(*task, None),
            TaskNews::Ended { task } => self.add(*task, Some(News::Look)),
            // News of a sort that is not known yet.
            _ => self.forget(),
        }
    }

    fn add(&mut self, task: TaskId, news: Option<News>) {
        self.told += 1;
        self.highest = self.highest.max(Some(task));
        if self.news.len() == bounds::RECENT_ENDS {
            self.news.pop_front();
        }
        self.news.push_back((task, news));
    }

    /// Something may have happened that was not told.
    pub(crate) fn forget(&mut self) {
        self.told += 1;
        self.news.clear();
    }

    pub(crate) fn since(&self, task: TaskId, moment: Moment) -> Since {
        let told_since = self.told.saturating_sub(moment.0);
        match usize::try_from(told_since) {
            Ok(told_since) if told_since <= self.news.len() => self.among_last(told_since, task),
            _ => Since::Unknown,
        }
    }

    fn among_last(&self, count: usize, task: TaskId) -> Since {
        if self.highest < Some(task) {
            return Since::Untold;
        }
        let newest = self.news.iter().rev().take(count).find(|(told, _)| *told == task);
        newest.and_then(|(_, news)| news.clone()).map_or(Since::Untold, Since::Ended)
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
        recent.hear(&ended(1));
        let moment = recent.now();
        assert!(matches!(recent.since(TaskId(1), moment), Since::Untold));
    }

    #[test]
    fn an_end_after_the_moment_is_known() {
        let mut recent = RecentEnds::default();
        let moment = recent.now();
        recent.hear(&ended(1));
        assert!(matches!(recent.since(TaskId(1), moment), Since::Ended(News::Look)));
    }

    #[test]
    fn a_task_that_has_not_ended_is_untold_although_a_later_one_has() {
        let mut recent = RecentEnds::default();
        let moment = recent.now();
        recent.hear(&ended(2));
        assert!(matches!(recent.since(TaskId(1), moment), Since::Untold));
    }

    #[test]
    fn an_end_that_was_undone_is_none() {
        let mut recent = RecentEnds::default();
        let moment = recent.now();
        recent.hear(&ended(1));
        recent.hear(&TaskNews::Retried { task: TaskId(1) });
        assert!(matches!(recent.since(TaskId(1), moment), Since::Untold));
    }

    #[test]
    fn a_moment_before_something_missed_knows_nothing() {
        let mut recent = RecentEnds::default();
        let moment = recent.now();
        recent.forget();
        assert!(matches!(recent.since(TaskId(1), moment), Since::Unknown));
    }

    #[test]
    fn a_moment_after_something_missed_knows_what_came_since() {
        let mut recent = RecentEnds::default();
        recent.forget();
        let moment = recent.now();
        assert!(matches!(recent.since(TaskId(1), moment), Since::Untold));
    }

    #[test]
    fn a_moment_before_more_ends_than_are_kept_knows_nothing() {
        let mut recent = RecentEnds::default();
        let moment = recent.now();
        (0..=bounds::RECENT_ENDS as i64).for_each(|task| recent.hear(&ended(task)));
        assert!(matches!(recent.since(TaskId(0), moment), Since::Unknown));
    }

    #[test]
    fn a_second_end_outlives_the_first_ones_place() {
        let mut recent = RecentEnds::default();
        recent.hear(&ended(1));
        recent.hear(&ended(1));
        let moment = Moment(1);
        (2..=bounds::RECENT_ENDS as i64).for_each(|task| recent.hear(&ended(task)));
        assert!(matches!(recent.since(TaskId(1), moment), Since::Ended(_)));
    }
}
