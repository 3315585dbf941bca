//! Reads of tags, and of tasks by their tags.

use std::collections::{BTreeMap, BTreeSet};

use crate::api::store::{Page, TaskFilter, TaskIdPage};
use crate::api::tag::{TagKeyPage, TagPage, TagValue, TagValuePage};
use crate::api::task::TaskId;
use crate::bounds;
use crate::model::reads::filter::shows;
use crate::model::state::State;
use crate::model::tasks::task::Task;

impl State {
    /// Returns a page of the numbers of selected tasks, newest first.
    pub(crate) fn task_ids(&self, filter: &TaskFilter, page: Page) -> TaskIdPage {
        let limit = page.limit.clamp(1, bounds::ID_PAGE);
        let before = page.before.unwrap_or(TaskId(i64::MAX));
        let shown =
            self.tasks.between(TaskId(i64::MIN), before).rev().filter(|task| shows(filter, task, &self.batches));
        TaskIdPage::of(shown.take(limit + 1).map(|task| task.id).collect(), limit)
    }

    /// Returns the number of selected tasks.
    pub(crate) fn count(&self, filter: &TaskFilter) -> u64 {
        self.shown(filter).count() as u64
    }

    /// Returns a page of the values of a tag key among selected tasks, each with its number of
    /// tasks.
    pub(crate) fn tag_values(&self, key: &str, filter: &TaskFilter, page: &TagPage) -> TagValuePage {
        let limit = page.limit.clamp(1, bounds::PAGE);
        let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
        for value in self.shown(filter).filter_map(|task| task.new.tags.get(key)) {
            *counts.entry(value).or_default() += 1;
        }
        let behind = counts.into_iter().filter(|(value, _)| is_behind(value, page));
        let values = behind.take(limit + 1).map(|(value, tasks)| TagValue { value: value.to_owned(), tasks });
        TagValuePage::of(values.collect(), limit)
    }

    /// Returns a page of the tag keys that begin with a prefix.
    pub(crate) fn tag_keys(&self, prefix: &str, page: &TagPage) -> TagKeyPage {
        let limit = page.limit.clamp(1, bounds::PAGE);
        let keys: BTreeSet<&str> =
            self.tasks.iter().flat_map(|task| task.new.tags.iter()).map(|(key, _)| key).collect();
        let wanted = keys.into_iter().filter(|key| key.starts_with(prefix) && is_behind(key, page));
        TagKeyPage::of(wanted.take(limit + 1).map(str::to_owned).collect(), limit)
    }

    /// Returns the tasks that a filter selects.
    fn shown(&self, filter: &TaskFilter) -> impl Iterator<Item = &Task> {
        self.tasks.iter().filter(|task| shows(filter, task, &self.batches))
    }
}

/// Returns whether a text comes after those of the previous page.
fn is_behind(text: &str, page: &TagPage) -> bool {
    page.after.as_deref().is_none_or(|after| text > after)
}
