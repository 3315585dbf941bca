//! Records of tasks, queues and pauses.

use std::collections::BTreeMap;

use crate::api::name::Name;
use crate::api::store::{EndedCounts, Page, PauseRecord, QueueRecord, TaskFilter, TaskPage, pause_holds};
use crate::api::task::{TaskId, TaskRecord, TaskState};
use crate::api::timestamp::Timestamp;
use crate::api::write::Scope;
use crate::bounds;
use crate::model::reads::filter::shows;
use crate::model::state::State;
use crate::model::tasks::task::Task;

impl State {
    /// Returns a task as a reader receives it, with payload and result.
    pub(crate) fn record(&self, id: TaskId) -> Option<TaskRecord> {
        self.tasks.get(id).map(|task| self.record_of(task, true))
    }

    /// Returns the record of a task. A completed item without a result has the result of its batch.
    pub(crate) fn record_of(&self, task: &Task, with_payload: bool) -> TaskRecord {
        let batch = self.batches.batch_of(task.id);
        let mut record =
            TaskRecord { blocked_by: self.dependencies.open_of(task.id), batch, ..task.record(with_payload) };
        if with_payload && record.state == TaskState::Completed {
            let batch = batch.and_then(|batch| self.tasks.get(batch));
            let own = record.result.into_bytes();
            record.result = own.or_else(|| batch.and_then(|batch| batch.result.clone())).into();
        }
        record
    }

    /// Returns a page of a listing, newest first.
    pub(crate) fn page(&self, filter: &TaskFilter, page: Page) -> TaskPage {
        let limit = page.limit.clamp(1, bounds::PAGE);
        let before = page.before.unwrap_or(TaskId(i64::MAX));
        let mut shown =
            self.tasks.between(TaskId(i64::MIN), before).rev().filter(|task| shows(filter, task, &self.batches));
        let tasks: Vec<TaskRecord> =
            shown.by_ref().take(limit).map(|task| self.record_of(task, filter.with_payload)).collect();
        let next = shown.next().and_then(|_| tasks.last()).map(|task| task.id);
        TaskPage { tasks, next }
    }

    /// Returns every queue with its counts by state. It counts all tasks, where the other stores
    /// have counters.
    pub(crate) fn queue_records(&self, now: Timestamp) -> Vec<QueueRecord> {
        let mut records: BTreeMap<&Name, QueueRecord> =
            self.queues.iter().map(|queue| (queue, self.empty_queue(queue, now))).collect();
        for task in self.tasks.iter() {
            if let Some(record) = records.get_mut(&task.new.queue) {
                count(record, task);
            }
        }
        for task in self.first_of_each_queue() {
            records.entry(&task.new.queue).and_modify(|record| record.oldest_waiting = Some(task.run_at));
        }
        records.into_values().collect()
    }

    /// Returns the first waiting task of each queue.
    fn first_of_each_queue(&self) -> impl Iterator<Item = &Task> {
        let mut first: BTreeMap<&Name, &Task> = BTreeMap::new();
        for task in self.tasks.iter().filter(|task| task.state == TaskState::Waiting) {
            let found = first.entry(&task.new.queue).or_insert(task);
            if task.sort_key() < found.sort_key() {
                *found = task;
            }
        }
        first.into_values()
    }

    /// Returns the record of a queue before its tasks are counted.
    pub(crate) fn empty_queue(&self, queue: &Name, now: Timestamp) -> QueueRecord {
        let pause = self.pauses.get(&Scope::Queue(queue.clone()));
        let settings = self.settings_of(queue);
        QueueRecord {
            name: queue.clone(),
            blocked: 0,
            scheduled: 0,
            waiting: 0,
            running: 0,
            ended: EndedCounts::default(),
            oldest_waiting: None,
            paused: pause.is_some_and(|until| pause_holds(*until, now)),
            weight: settings.weight,
            concurrency: settings.concurrency,
            affinity_wait: settings.affinity_wait,
        }
    }

    /// Returns the pauses that hold at `now`.
    pub(crate) fn pause_records(&self, now: Timestamp) -> Vec<PauseRecord> {
        let records = self.pauses.iter().map(|(scope, until)| PauseRecord { scope: scope.clone(), until: *until });
        records.filter(|pause| pause.holds_at(now)).collect()
    }
}

/// Counts a task in the record of its queue.
fn count(record: &mut QueueRecord, task: &Task) {
    match task.state {
        TaskState::Blocked => record.blocked += 1,
        TaskState::Scheduled => record.scheduled += 1,
        TaskState::Waiting => record.waiting += 1,
        TaskState::Running => record.running += 1,
        ended => record.ended.of(ended).into_iter().for_each(|count| *count += 1),
    }
}
