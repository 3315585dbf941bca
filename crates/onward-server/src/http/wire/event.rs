//! Events of tasks.

use onward_store::{Change, Event, Timestamp};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

/// An event: one transition of one task.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct EventBody {
    /// The cursor behind the event.
    cursor: String,
    /// The time of the transition.
    #[schema(value_type = String, format = DateTime)]
    at: Timestamp,
    /// The id of the task.
    task: String,
    /// The kind of the task.
    kind: String,
    /// The queue of the task.
    queue: String,
    /// The transition, such as `submitted`, `started` or `completed`.
    change: String,
    /// The number of the attempt that started or failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    attempt: Option<u32>,
    /// The position of a published event in the history of its run. `GET
    /// /v1/runs/{id}/published/{position}` returns the event.
    #[serde(skip_serializing_if = "Option::is_none")]
    position: Option<u64>,
}

/// A page of events.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct EventPageBody {
    /// The events, the oldest first.
    pub(crate) events: Vec<EventBody>,
    /// The cursor for the next request.
    pub(crate) next: String,
    /// The cursor up to which events were pruned before they were read, if some were.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) gap: Option<String>,
}

impl EventBody {
    /// Returns the name of the transition.
    pub(crate) fn change(&self) -> &str {
        &self.change
    }
}

impl From<&Event> for EventBody {
    fn from(event: &Event) -> Self {
        let attempt = match event.change {
            Change::Started { attempt } | Change::Retrying { attempt, .. } => Some(attempt),
            _ => None,
        };
        let position = match event.change {
            Change::Published { position } => Some(position),
            _ => None,
        };
        Self {
            position,
            cursor: event.cursor.to_string(),
            at: event.at,
            task: event.task.to_string(),
            kind: event.kind.to_string(),
            queue: event.queue.to_string(),
            change: change_name(&event.change),
            attempt,
        }
    }
}

/// Returns the name under which the engine writes a transition.
fn change_name(change: &Change) -> String {
    let written = serde_json::to_value(change).unwrap_or_default();
    written.get("change").and_then(Value::as_str).unwrap_or_default().to_owned()
}
