//! The events of a history, as they are returned.

use onward::orchestration::{HistoryEvent, StepEnd, TaskEnd};
use onward_store::{TaskState, Timestamp};
use serde::Serialize;
use utoipa::ToSchema;

use crate::http::wire::Content;

/// An event of a history. Each sort of event has its own fields.
#[derive(Debug, Default, Serialize, ToSchema)]
pub(super) struct HistoryEventBody {
    /// The number of the event, counted from 0.
    number: u64,
    /// The sort of event, such as `task_submitted` or `signal_received`.
    event: &'static str,
    /// The time, for events that record one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    at: Option<Timestamp>,
    /// The number of the operation of the code that the event is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    operation: Option<u64>,
    /// The kind of a task.
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<String>,
    /// The name of a signal, a step, a patch or a tag.
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    /// The moment for which a timer waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    until: Option<Timestamp>,
    /// The state of a task that ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<&'static str>,
    /// The error of a task or a step.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    /// The version of the code that began.
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<u32>,
    /// The number of signals or replies.
    #[serde(skip_serializing_if = "Option::is_none")]
    count: Option<u64>,
    /// The id of another task: that of the original of a fork, or that which has the key.
    #[serde(skip_serializing_if = "Option::is_none")]
    other: Option<String>,
    /// The value of a tag that was set.
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<String>,
    /// The earlier value of a tag.
    #[serde(skip_serializing_if = "Option::is_none")]
    before: Option<String>,
    /// The payload of a signal, or the result of a task or a step, for those who may read payloads.
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<Content>,
}

impl HistoryEventBody {
    /// Returns an event without its content unless it is to be shown.
    pub(super) fn new(number: u64, event: &HistoryEvent, with_content: bool) -> Self {
        let body = Self { number, operation: operation(event), ..of_sort(event) };
        Self { content: body.content.filter(|_| with_content), ..body }
    }

    /// Returns about how many bytes an event takes in a page.
    pub(super) fn size(event: &HistoryEvent) -> usize {
        128 + match event {
            HistoryEvent::SignalReceived { payload, .. } | HistoryEvent::SignalCarried { payload, .. } => payload.len(),
            HistoryEvent::TaskEnded { end: TaskEnd::Completed { result: Some(result) }, .. }
            | HistoryEvent::StepEnded { end: StepEnd::Done { result }, .. } => result.len(),
            _ => 0,
        }
    }
}

fn operation(event: &HistoryEvent) -> Option<u64> {
    match event {
        HistoryEvent::TaskSubmitted { operation, .. }
        | HistoryEvent::TaskEnded { operation, .. }
        | HistoryEvent::TimerStarted { operation, .. }
        | HistoryEvent::TimerFired { operation }
        | HistoryEvent::StepEnded { operation, .. }
        | HistoryEvent::OperationCancelled { operation } => Some(*operation),
        _ => None,
    }
}

fn of_sort(event: &HistoryEvent) -> HistoryEventBody {
    use HistoryEvent as E;
    let plain = |event| HistoryEventBody { event, ..HistoryEventBody::default() };
    let time = |at: &i64| Some(Timestamp::from_microseconds(*at));
    let text = |text: &String| Some(text.clone());
    match event {
        E::Started { at, version, .. } => {
            HistoryEventBody { at: time(at), version: Some(version.unwrap_or(0)), ..plain("started") }
        }
        E::TurnBegan { at } => HistoryEventBody { at: time(at), ..plain("turn_began") },
        E::TaskSubmitted { kind, .. } => HistoryEventBody { kind: text(kind), ..plain("task_submitted") },
        E::TaskDetached { kind } => HistoryEventBody { kind: text(kind), ..plain("task_detached") },
        E::TaskEnded { end, .. } => end_of(end, plain("task_ended")),
        E::TimerStarted { until, .. } => HistoryEventBody { until: time(until), ..plain("timer_started") },
        E::TimerFired { .. } => plain("timer_fired"),
        E::SignalReceived { name, payload } => signal(name, payload, plain("signal_received")),
        E::SignalCarried { name, payload } => signal(name, payload, plain("signal_carried")),
        E::SignalsUnread { name, count } => {
            HistoryEventBody { name: text(name), count: Some(*count), ..plain("signals_unread") }
        }
        E::StepEnded { name, end, at, .. } => {
            step(end, HistoryEventBody { name: text(name), at: at.as_ref().and_then(time), ..plain("step_ended") })
        }
        E::OperationCancelled { .. } => plain("operation_cancelled"),
        E::CancelRequested => plain("cancel_requested"),
        E::CancelCarried => plain("cancel_carried"),
        E::Forked { from } => HistoryEventBody { other: Some(from.to_string()), ..plain("forked") },
        E::RepliesCarried { replies } => HistoryEventBody { count: Some(*replies), ..plain("replies_carried") },
        E::TagSet { key, value, before } => {
            HistoryEventBody { name: text(key), value: text(value), before: before.clone(), ..plain("tag_set") }
        }
        E::TagRemoved { key, before } => {
            HistoryEventBody { name: text(key), before: before.clone(), ..plain("tag_removed") }
        }
        E::Patched { patch } => HistoryEventBody { name: text(patch), ..plain("patched") },
        // A later version of the engine may add sorts.
        _ => plain("other"),
    }
}

fn signal(name: &str, payload: &[u8], body: HistoryEventBody) -> HistoryEventBody {
    HistoryEventBody { name: Some(name.to_owned()), content: Some(content(payload)), ..body }
}

fn end_of(end: &TaskEnd, body: HistoryEventBody) -> HistoryEventBody {
    match end {
        TaskEnd::Completed { result } => HistoryEventBody {
            state: Some(TaskState::Completed.as_str()),
            content: result.as_ref().map(|result| content(result)),
            ..body
        },
        TaskEnd::Failed { state, error } => {
            let state = TaskState::from_code(*state).unwrap_or(TaskState::Failed);
            HistoryEventBody { state: Some(state.as_str()), error: error.clone(), ..body }
        }
        TaskEnd::NotStarted { existing } => HistoryEventBody { other: Some(existing.to_string()), ..body },
    }
}

fn step(end: &StepEnd, body: HistoryEventBody) -> HistoryEventBody {
    match end {
        StepEnd::Done { result } => HistoryEventBody { content: Some(content(result)), ..body },
        StepEnd::Failed { error } => HistoryEventBody { error: Some(error.clone()), ..body },
    }
}

fn content(bytes: &[u8]) -> Content {
    Content::new(&bytes::Bytes::copy_from_slice(bytes))
}
