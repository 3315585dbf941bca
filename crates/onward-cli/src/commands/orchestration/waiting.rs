//! What a parked orchestration waits for.

use onward_store::{Page, Store, TaskFilter, TaskId, TaskRecord, TaskState, Timestamp};
use serde_json::{Value, json};

/// How many of the tasks that it waits for are named; of more it is said how many there are.
const NAMED_TASKS: usize = 10;

/// What a parked orchestration waits for, as far as one can see from outside: which signals its code awaits, its history does not say.
#[derive(Debug)]
pub(crate) struct Waiting {
    orchestration: TaskId,
    /// The newest of its live activities, and of the orchestrations that it started.
    tasks: Vec<TaskRecord>,
    /// How many more of them there are.
    more: u64,
    /// When its next timer fires.
    timer: Option<Timestamp>,
}

impl Waiting {
    /// Reads it; `None` for what is no orchestration, has not begun, has ended or is at work.
    pub(crate) async fn read(store: &dyn Store, task: &TaskRecord) -> anyhow::Result<Option<Self>> {
        if !task.orchestration || !matches!(task.state, TaskState::Blocked | TaskState::Scheduled) {
            return Ok(None);
        }
        if store.instance(task.id).await?.is_none_or(|instance| instance.length == 0) {
            return Ok(None);
        }
        let live = TaskState::ALL.into_iter().filter(|state| !state.is_ended()).collect();
        let filter = TaskFilter { parent: Some(task.id), states: live, ..TaskFilter::default() };
        let tasks = store.tasks(filter.clone(), Page { before: None, limit: NAMED_TASKS }).await?.tasks;
        let all = store.count(filter).await?;
        Ok(Some(Self {
            orchestration: task.id,
            more: all.saturating_sub(tasks.len() as u64),
            tasks,
            timer: (task.state == TaskState::Scheduled).then_some(task.run_at),
        }))
    }

    /// In words, one for each thing.
    pub(crate) fn texts(&self) -> Vec<String> {
        let task = |task: &TaskRecord| {
            let what = if task.orchestration { "orchestration" } else { "task" };
            format!("the end of {what} {} ({}), which is {}", task.id, task.kind, task.state)
        };
        let mut texts: Vec<String> = self.tasks.iter().map(task).collect();
        texts.extend((self.more > 0).then(|| format!("the end of {} more tasks", self.more)));
        texts.extend(self.timer.map(|at| format!("its next timer, at {at}")));
        let only = if texts.is_empty() { "a signal" } else { "a signal, perhaps" };
        texts.push(format!("{only}; `onward orchestration signal {} NAME` sends one", self.orchestration));
        texts
    }

    /// For programs.
    pub(crate) fn json(&self) -> Value {
        let tasks: Vec<TaskId> = self.tasks.iter().map(|task| task.id).collect();
        json!({ "tasks": tasks, "more_tasks": self.more, "timer": self.timer })
    }
}
