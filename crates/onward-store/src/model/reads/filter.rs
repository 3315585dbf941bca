//! The filter of a listing.

use crate::api::store::TaskFilter;
use crate::api::timestamp::Timestamp;
use crate::model::batches::index::Batches;
use crate::model::tasks::task::Task;

/// Returns whether a filter selects a task. `batches` has the batch of an item.
pub(in crate::model) fn shows(filter: &TaskFilter, task: &Task, batches: &Batches) -> bool {
    let within = |at: Option<Timestamp>, from: Option<Timestamp>, before: Option<Timestamp>| {
        from.is_none_or(|from| at.is_some_and(|at| at >= from))
            && before.is_none_or(|before| at.is_some_and(|at| at < before))
    };
    filter.kind.as_ref().is_none_or(|kind| *kind == task.new.kind)
        && filter.queue.as_ref().is_none_or(|queue| *queue == task.new.queue)
        && filter.group.as_ref().is_none_or(|group| task.new.group.as_ref() == Some(group))
        && filter.key.as_ref().is_none_or(|key| task.new.unique.as_ref().is_some_and(|unique| unique.key == *key))
        && filter.parent.is_none_or(|parent| task.new.parent == Some(parent))
        && (filter.states.is_empty() || filter.states.contains(&task.state))
        && within(Some(task.submitted_at), filter.submitted_from, filter.submitted_before)
        && within(task.finished_at, filter.finished_from, filter.finished_before)
        && task.new.tags.contains(&filter.tags)
        && filter
            .key_prefix
            .as_ref()
            .is_none_or(|prefix| task.new.unique.as_ref().is_some_and(|unique| unique.key.starts_with(prefix)))
        && filter.priority_from.is_none_or(|from| task.new.priority >= from)
        && filter.priority_to.is_none_or(|to| task.new.priority <= to)
        && filter.batch.is_none_or(|batch| batches.batch_of(task.id) == Some(batch))
        && filter.orchestration.is_none_or(|is_one| task.new.orchestration == is_one)
        && filter.cancel_requested.is_none_or(|requested| task.cancel_requested == requested)
        && filter
            .tag_key_prefix
            .as_ref()
            .is_none_or(|prefix| task.new.tags.iter().any(|(key, _)| key.starts_with(prefix)))
}
