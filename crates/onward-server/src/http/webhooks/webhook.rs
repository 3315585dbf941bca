//! A webhook, as it is stored and as it is returned.

use onward_store::{Event, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

/// The names of the events that a webhook may select.
pub(crate) const EVENTS: &[&str] = &[
    "submitted",
    "started",
    "completed",
    "retrying",
    "failed",
    "dead",
    "cancel_requested",
    "cancelled",
    "expired",
    "released",
    "lease_lost",
    "retried",
    "priority_raised",
    "purged",
    "unblocked",
    "blocked",
    "moved",
    "batched",
];

/// The document of a webhook.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct StoredWebhook {
    pub(crate) url: String,
    /// The names of events; an empty list selects all.
    pub(crate) events: Vec<String>,
    /// The kinds of tasks; an empty list selects all.
    pub(crate) kinds: Vec<String>,
    /// The queue of tasks; `None` selects all.
    pub(crate) queue: Option<String>,
    /// The secret. A signature needs it, so it is stored as it is.
    pub(crate) secret: String,
    pub(crate) created_at: Timestamp,
}

/// A webhook without its secret.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct WebhookBody {
    /// The id.
    pub(crate) id: String,
    /// The address to which events are sent.
    url: String,
    /// The names of the events; an empty list selects all.
    events: Vec<String>,
    /// The kinds of the tasks; an empty list selects all.
    kinds: Vec<String>,
    /// The queue of the tasks; null selects all.
    queue: Option<String>,
    /// The time of creation. Earlier events are not sent.
    #[schema(value_type = String, format = DateTime)]
    pub(crate) created_at: Timestamp,
}

impl StoredWebhook {
    pub(crate) fn body(&self, id: String) -> WebhookBody {
        let Self { url, events, kinds, queue, created_at, .. } = self.clone();
        WebhookBody { id, url, events, kinds, queue, created_at }
    }

    /// Returns true if an event is to be sent.
    pub(crate) fn selects(&self, event: &Event) -> bool {
        event.at >= self.created_at
            && (self.events.is_empty() || self.events.iter().any(|name| *name == event_name(event)))
            && (self.kinds.is_empty() || self.kinds.iter().any(|kind| *kind == event.kind.as_str()))
            && self.queue.as_deref().is_none_or(|queue| queue == event.queue.as_str())
    }
}

/// Returns the name of the transition of an event.
pub(super) fn event_name(event: &Event) -> String {
    let written = serde_json::to_value(event.change).unwrap_or_default();
    written.get("change").and_then(Value::as_str).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use onward_store::{Change, EventCursor, Name, TaskId};

    use super::*;

    #[test]
    fn every_name_of_an_event_can_be_selected() {
        let changes = [
            Change::Submitted,
            Change::Started { attempt: 1 },
            Change::Completed,
            Change::Retrying { attempt: 1, after: Duration::ZERO },
            Change::Failed,
            Change::Dead,
            Change::CancelRequested,
            Change::Cancelled,
            Change::Expired,
            Change::Released,
            Change::LeaseLost,
            Change::Retried,
            Change::PriorityRaised,
            Change::Purged,
            Change::Unblocked,
            Change::Blocked,
            Change::Moved,
            Change::Batched { batch: TaskId(1) },
        ];
        let name = |change| {
            let (kind, queue) = (Name::new("k").unwrap(), Name::new("q").unwrap());
            event_name(&Event { cursor: EventCursor::START, at: Timestamp::MIN, task: TaskId(1), kind, queue, change })
        };
        assert_eq!(changes.map(name), *EVENTS);
    }
}
