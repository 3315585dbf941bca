//! The latest ends that were told: a task may end before whoever submitted it has its handle.

use std::collections::VecDeque;

use onward_store::{TaskId, TaskNews};
use rustc_hash::FxHashMap;

use crate::limits;
use crate::wait::News;

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

/// The ends told last, at most [`limits::RECENT_ENDS`] of them.
#[derive(Debug, Default)]
pub(crate) struct RecentEnds {
    ends: FxHashMap<TaskId, (u64, News)>,
    order: VecDeque<(u64, TaskId)>,
    told: u64,
    /// Ends up to this one may be missing.
    forgotten: u64,
}

impl RecentEnds {
    pub(crate) fn now(&self) -> Moment {
        Moment(self.told)
    }

    pub(crate) fn hear(&mut self, news: &TaskNews) {
        match news {
            TaskNews::Completed { task, result } => self.add(*task, News::completed(result.as_ref())),
            TaskNews::Retried { task } => drop(self.ends.remove(task)),
            TaskNews::Ended { task } => self.add(*task, News::Look),
            // News of a sort that is not known yet.
            _ => self.forget(),
        }
    }

    fn add(&mut self, task: TaskId, news: News) {
        self.told += 1;
        self.ends.insert(task, (self.told, news));
        self.order.push_back((self.told, task));
        if self.order.len() > limits::RECENT_ENDS {
            self.forget_oldest();
        }
    }

    fn forget_oldest(&mut self) {
        let Some((number, task)) = self.order.pop_front() else { return };
        self.forgotten = number;
        if self.ends.get(&task).is_some_and(|(newest, _)| *newest == number) {
            self.ends.remove(&task);
        }
    }

    /// Something may have happened that was not told.
    pub(crate) fn forget(&mut self) {
        self.told += 1;
        self.forgotten = self.told;
        self.ends.clear();
        self.order.clear();
    }

    pub(crate) fn since(&self, task: TaskId, moment: Moment) -> Since {
        if moment.0 < self.forgotten {
            return Since::Unknown;
        }
        match self.ends.get(&task) {
            Some((number, news)) if *number > moment.0 => Since::Ended(news.clone()),
            _ => Since::Untold,
        }
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
        (0..=limits::RECENT_ENDS as i64).for_each(|task| recent.hear(&ended(task)));
        assert!(matches!(recent.since(TaskId(0), moment), Since::Unknown));
    }

    #[test]
    fn a_second_end_outlives_the_first_ones_place() {
        let mut recent = RecentEnds::default();
        recent.hear(&ended(1));
        recent.hear(&ended(1));
        let moment = Moment(1);
        (2..=limits::RECENT_ENDS as i64).for_each(|task| recent.hear(&ended(task)));
        assert!(matches!(recent.since(TaskId(1), moment), Since::Ended(_)));
    }
}
