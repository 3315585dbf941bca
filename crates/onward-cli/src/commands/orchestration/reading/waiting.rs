//! The events that a parked orchestration waits for.

use onward_store::bounds::AWAITED_CANCELLATION;
use onward_store::rules::orchestration::is_run;
use onward_store::{
    Hold, InstanceRecord, Name, Page, Store, StoreReads, TaskFilter, TaskId, TaskRecord, TaskState, Timestamp,
};
use serde_json::{Value, json};

use crate::output::counted;

/// The largest number of awaited tasks that are named. The others are only counted.
const NAMED_TASKS: usize = 10;

/// The tasks, events and timer that a parked orchestration waits for, as far as the store contains
/// them.
#[derive(Debug)]
pub(crate) struct Waiting {
    orchestration: TaskId,
    /// True for a run of a workflow.
    is_run: bool,
    /// The newest of its live activities, and of the live orchestrations that it started.
    tasks: Vec<TaskRecord>,
    /// The number of other such tasks.
    more: u64,
    /// The events that its code awaits, with [`AWAITED_CANCELLATION`] for a request to cancel.
    events: Vec<Name>,
    /// The time at which its next timer fires.
    timer: Option<Timestamp>,
}

impl Waiting {
    /// Reads what an orchestration waits for. Returns `None` for a task that is not an
    /// orchestration, and for an orchestration that has not begun, has ended, is running, or is
    /// paused with a pending turn.
    pub(crate) async fn read(store: &dyn Store, task: &TaskRecord) -> anyhow::Result<Option<Self>> {
        if !task.orchestration || !matches!(task.state, TaskState::Blocked | TaskState::Scheduled) {
            return Ok(None);
        }
        let is_parked = |instance: &InstanceRecord| {
            instance.length > 0 && instance.waiting == 0 && instance.hold != Hold::PausedDue
        };
        let Some(instance) = store.instance(task.id).await?.filter(is_parked) else { return Ok(None) };
        let live = TaskState::ALL.into_iter().filter(|state| !state.is_ended()).collect();
        let filter = TaskFilter { parent: Some(task.id), states: live, ..TaskFilter::default() };
        let tasks = store.tasks(filter.clone(), Page { before: None, limit: NAMED_TASKS }).await?.tasks;
        let all = store.count(filter).await?;
        Ok(Some(Self {
            orchestration: task.id,
            is_run: is_run(&task.kind),
            more: all.saturating_sub(tasks.len() as u64),
            tasks,
            events: instance.awaits,
            timer: (task.state == TaskState::Scheduled).then_some(task.run_at),
        }))
    }

    /// Describes each awaited item in words.
    pub(crate) fn texts(&self) -> Vec<String> {
        let task = |task: &TaskRecord| {
            let what = if task.orchestration { "orchestration" } else { "task" };
            format!("the end of {what} {} ({}), which is {}", task.id, task.kind, task.state)
        };
        let mut texts: Vec<String> = self.tasks.iter().map(task).collect();
        texts.extend((self.more > 0).then(|| format!("the end of {}", counted(self.more, "further task"))));
        texts.extend(self.timer.map(|at| format!("its next timer, at {at}")));
        texts.extend(self.events().map(|event| self.event_text(event)));
        let cancel = format!("a request to cancel; `onward orchestration cancel {}` sends one", self.orchestration);
        texts.extend(self.awaits_cancellation().then_some(cancel));
        if texts.is_empty() {
            texts.push(format!("a signal; `onward orchestration signal {} NAME` sends one", self.orchestration));
        }
        texts
    }

    /// Returns the awaited events, without the request to cancel.
    fn events(&self) -> impl Iterator<Item = &Name> {
        self.events.iter().filter(|event| event.as_str() != AWAITED_CANCELLATION)
    }

    fn awaits_cancellation(&self) -> bool {
        self.events.iter().any(|event| event.as_str() == AWAITED_CANCELLATION)
    }

    /// Describes an awaited event. An update is an event that gets a reply.
    fn event_text(&self, event: &Name) -> String {
        let (what, verb, name) = match event.strip_prefix("update.") {
            Some(update) => ("update", "update", update),
            None => ("event", "signal", event.as_str()),
        };
        let noun = if self.is_run { "workflow" } else { "orchestration" };
        format!("the {what} `{name}`; `onward {noun} {verb} {} {name}` sends one", self.orchestration)
    }

    /// Returns the awaited items as JSON.
    pub(crate) fn json(&self) -> Value {
        let tasks: Vec<TaskId> = self.tasks.iter().map(|task| task.id).collect();
        let (events, cancellation): (Vec<&Name>, _) = (self.events().collect(), self.awaits_cancellation());
        json!({
            "tasks": tasks, "more_tasks": self.more, "events": events, "timer": self.timer, "cancellation": cancellation,
        })
    }
}
