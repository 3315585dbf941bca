//! Removes tasks permanently.

use crate::api::event::Change;
use crate::api::name::Name;
use crate::api::notification::TaskNotification;
use crate::api::outcome::{Outcome, Refusal};
use crate::api::task::{TaskId, TaskState};
use crate::api::timestamp::Timestamp;
use crate::api::write::Prune;
use crate::model::state::State;
use crate::rules;
use crate::rules::prune::EndedTask;

impl State {
    /// Removes ended tasks of a queue in the given states, at most `limit` of them.
    pub(in crate::model) fn purge(
        &mut self,
        queue: &Name,
        states: &[TaskState],
        limit: usize,
    ) -> Result<Outcome, Refusal> {
        rules::purge::check(queue, states)?;
        self.check_queue_exists(queue)?;
        let mut tasks: Vec<TaskId> = self.tasks.queue_tasks(queue, states).take(limit.saturating_add(1)).collect();
        let more = tasks.len() > limit;
        tasks.truncate(limit);
        for id in &tasks {
            self.remove_without_trace(*id);
        }
        Ok(Outcome::Removed { tasks: tasks.len() as u64, more })
    }

    /// Removes a task with its key, its dependencies and its output. For the parent, the removal of
    /// a live task counts as a cancellation.
    pub(in crate::model) fn remove_without_trace(&mut self, id: TaskId) {
        self.log(id, Change::Purged);
        if self.tasks.get(id).is_some_and(|task| !task.state.is_ended()) {
            self.report_end(id, TaskState::Cancelled);
        }
        let task = self.tasks.remove(id);
        if let Some(task) = &task {
            self.keys.free(id, &task.new);
            if !task.state.is_ended() {
                self.propagate_end(id, None);
            }
        }
        self.hint_transition();
        self.notifications.push(TaskNotification::Ended { task: id });
        if let Some(batch_item) = task.filter(|task| task.new.aggregate.is_some()) {
            self.leave_batch(id, &batch_item.new, true);
        }
    }

    /// Removes ended tasks: first those whose own retention is over, then those that the prune does
    /// not keep by age or number.
    pub(in crate::model) fn prune(&mut self, prune: &Prune) -> Result<Outcome, Refusal> {
        self.keys.forget_expired(self.now.wall);
        let mut tasks = self.past_own_retention(prune.limit);
        if tasks.len() <= prune.limit {
            tasks.extend(self.prunable(prune, prune.limit - tasks.len()));
        }
        let more = tasks.len() > prune.limit;
        tasks.truncate(prune.limit);
        let mut last = None;
        for id in &tasks {
            last = last.max(self.tasks.remove(*id).and_then(|task| task.end).map(|end| end.entry));
            self.batches.forget(*id);
        }
        if let Some(last) = last {
            let left = self.tasks.ended().next().map_or(i64::MAX, |(end, _)| end.entry);
            self.forget_before = self.forget_before.max(left.min(last + 1));
        }
        Ok(Outcome::Removed { tasks: tasks.len() as u64, more })
    }

    /// Returns the tasks whose own retention is over, the earliest first: up to `limit`, and one
    /// more if there is one.
    fn past_own_retention(&self, limit: usize) -> Vec<TaskId> {
        let is_over = |(until, _): &(Timestamp, TaskId)| rules::prune::is_over(*until, self.now.wall);
        let over = self.tasks.retained().take_while(is_over).map(|(_, id)| id);
        over.take(limit.saturating_add(1)).collect()
    }

    /// Returns the tasks without their own retention that a prune removes, the oldest end first: up
    /// to `limit`, and one more if there is one.
    fn prunable(&self, prune: &Prune, limit: usize) -> Vec<TaskId> {
        let ended = self.tasks.ended();
        // A partly loaded store counts ended tasks only if the prune keeps a number of them.
        let count = if prune.keep.is_some() { self.tasks.ended_count() } else { u64::MAX };
        let newer = (0..count).rev();
        let is_over = |(id, newer): &(TaskId, u64)| {
            let finished_at = self.tasks.get(*id).and_then(|task| task.finished_at);
            finished_at.is_some_and(|finished_at| {
                rules::prune::is_forgotten(prune, EndedTask { finished_at, newer: *newer }, self.now.wall)
            })
        };
        let over = ended.map(|(_, id)| id).zip(newer).take_while(is_over).map(|(id, _)| id);
        // The search stops there, because the rest may be most of a long history.
        over.take(limit.saturating_add(1)).collect()
    }
}
