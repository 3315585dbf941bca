//! The properties that hold at every moment of a run, and at its end.

use std::collections::BTreeMap;
use std::sync::Mutex;

use onward::{TaskFilter, TaskId, TaskState};
use onward_store::{Notification, Page, Store, StoreReads as _, TaskNotification, TaskRecord};
use serde_json::Value;

use super::network::at_once;
use super::work::{Acknowledged, LIMITED};

/// The properties that hold after every commit.
#[derive(Debug, Default)]
pub(super) struct Checks {
    /// The number of ends of each task.
    ends: Mutex<BTreeMap<TaskId, u32>>,
}

impl Checks {
    /// Counts the ends of tasks. A task ends once.
    pub(super) fn ended(&self, notification: &Notification) {
        let Notification::Tasks(tasks) = notification else { panic!("the checks missed commits") };
        for task in &**tasks {
            let (TaskNotification::Completed { task, .. } | TaskNotification::Ended { task }) = task else { continue };
            let mut ends = self.ends.lock().unwrap();
            let ends = ends.entry(*task).or_default();
            *ends += 1;
            assert_eq!(*ends, 1, "task {task} ended twice");
        }
    }

    /// Checks that no more tasks run than limits allow.
    pub(super) fn limits(&self, store: &dyn Store) {
        let running = TaskFilter {
            group: Some(LIMITED.0.parse().unwrap()),
            states: vec![TaskState::Running],
            ..TaskFilter::default()
        };
        let running = at_once(store.count(running)).unwrap();
        assert!(running <= u64::from(LIMITED.1), "{running} tasks of a group run, whose limit is {}", LIMITED.1);
    }
}

/// Returns the tasks that have not ended.
pub(super) fn live(store: &dyn Store) -> Vec<TaskRecord> {
    tasks(store).into_iter().filter(|task| !task.state.is_ended()).collect()
}

fn tasks(store: &dyn Store) -> Vec<TaskRecord> {
    let filter = TaskFilter { with_payload: true, ..TaskFilter::default() };
    at_once(store.tasks(filter, Page { before: None, limit: 1000 })).unwrap().tasks
}

/// Checks that each acknowledged order has its own result, that each result is that of the last
/// attempt, and that nothing else was submitted.
pub(super) fn results(store: &dyn Store, acknowledged: &Acknowledged, expected_tasks: u64) {
    let tasks = tasks(store);
    for task in &tasks {
        assert_eq!(task.state, TaskState::Completed, "task {} of kind {}: {:?}", task.id, task.kind, task.errors);
        let Some(result) = result(task) else { continue };
        if let Some(attempt) = result["attempt"].as_u64() {
            assert_eq!(attempt, u64::from(task.attempts), "task {} has the result of another attempt", task.id);
        }
    }
    for (id, expected) in &*acknowledged.lock().unwrap() {
        let task = tasks.iter().find(|task| task.id == *id);
        let task = task.unwrap_or_else(|| panic!("the acknowledged task {id} is lost"));
        let result = result(task).unwrap();
        assert_eq!(result.get("value").unwrap_or(&result), expected, "task {id} of kind {}", task.kind);
    }
    assert_eq!(tasks.len() as u64, expected_tasks, "the number of tasks");
}

fn result(task: &TaskRecord) -> Option<Value> {
    serde_json::from_slice(task.result.bytes()?).ok()
}
