//! The end of a task. Every end of a task goes through this file.

use crate::api::event::Change;
use crate::api::io::IoStatistics;
use crate::api::limit::LimitScope;
use crate::api::notification::TaskNotification;
use crate::api::store::{EndedCounts, KindStatistics};
use crate::api::task::{TaskId, TaskState};
use crate::model::limits::limit::scopes;
use crate::model::state::State;
use crate::model::tasks::task::{End, Task};

impl State {
    /// Ends a live task: counts it, frees or retains its key, and inserts its follower.
    pub(in crate::model) fn end(&mut self, id: TaskId, state: TaskState) {
        let now = self.now.wall;
        self.hint_freed_capacity(id);
        self.ends += 1;
        let end = End { number: self.ends, entry: self.entry };
        let mut follower = None;
        let mut result = None;
        self.tasks.change(id, |task| {
            task.state = state;
            task.session = None;
            task.awaited = None;
            task.move_to = None;
            task.finished_at = Some(now);
            task.end = Some(end);
            follower = task.follower.take();
            result = task.result.clone();
        });
        if let Some(task) = self.tasks.get(id) {
            self.keys.keep_or_free(id, &task.new, now);
            count(self.statistics.entry(task.new.kind.clone()).or_insert_with(|| nothing_of(task)), task);
        }
        if let Some(task) = self.tasks.get(id) {
            self.daily_counts.count(&task.new.queue, state, now);
        }
        self.propagate_end(id, Some(state));
        self.log(id, change_of(state));
        self.hint_transition();
        self.report_end(id, state);
        let batch_item = self.tasks.get(id).map(|task| &task.new).filter(|new| new.aggregate.is_some()).cloned();
        self.notifications.push(match state {
            TaskState::Completed if batch_item.is_none() => TaskNotification::Completed { task: id, result },
            _ => TaskNotification::Ended { task: id },
        });
        if let Some(new) = batch_item {
            self.leave_batch(id, &new, false);
        }
        if let Some(new) = follower {
            self.groups.extend(new.group.clone());
            self.register_names(Some(&new.queue), Some(&new.kind));
            self.insert(*new);
        }
    }
}

impl State {
    /// Hints at work if the end of a running task makes room in a limit that was reached.
    fn hint_freed_capacity(&mut self, id: TaskId) {
        let Some(task) = self.tasks.get(id).filter(|task| task.state == TaskState::Running) else { return };
        if self.has_limits() && scopes(task).any(|scope| self.is_just_full(&scope)) {
            self.hint_work();
        }
    }

    /// Returns whether a scope's concurrency is exactly reached, so that one end makes room. A
    /// partly loaded store without counts returns `true` instead of loading them.
    fn is_just_full(&self, scope: &LimitScope) -> bool {
        let is_reached = |most| self.tasks.running_if_counted(scope).is_none_or(|running| running == u64::from(most));
        self.limit_for(scope).concurrency.is_some_and(is_reached)
    }
}

/// Returns the logged change for an end in a state.
fn change_of(state: TaskState) -> Change {
    match state {
        TaskState::Failed => Change::Failed,
        TaskState::Dead => Change::Dead,
        TaskState::Cancelled => Change::Cancelled,
        TaskState::Expired => Change::Expired,
        TaskState::Completed | TaskState::Blocked | TaskState::Scheduled | TaskState::Waiting | TaskState::Running => {
            Change::Completed
        }
    }
}

/// Returns the statistics of a kind before its first end.
fn nothing_of(task: &Task) -> KindStatistics {
    KindStatistics {
        kind: task.new.kind.clone(),
        ended: EndedCounts::default(),
        attempts: 0,
        wait: std::time::Duration::ZERO,
        run: std::time::Duration::ZERO,
        run_maximum: std::time::Duration::ZERO,
        io: IoStatistics::default(),
    }
}

/// Counts an end in the statistics of its kind. Only completed tasks count in the times.
fn count(statistics: &mut KindStatistics, task: &Task) {
    if let Some(count) = statistics.ended.of(task.state) {
        *count += 1;
    }
    if let (TaskState::Completed, Some(finished_at)) = (task.state, task.finished_at) {
        let (wait, run) = task.times(finished_at);
        statistics.attempts += u64::from(task.attempts);
        statistics.wait = statistics.wait.saturating_add(wait);
        statistics.run = statistics.run.saturating_add(run);
        statistics.run_maximum = statistics.run_maximum.max(run);
        // The expected I/O of items was recorded for their batch.
        if task.new.aggregate.is_none() {
            statistics.io.count(task.new.io, task.io);
        }
    }
}
