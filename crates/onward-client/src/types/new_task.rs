//! Tasks, as they are submitted.

use std::collections::BTreeMap;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{DurationText, RetryPolicy};
use crate::error::{Error, Result};

/// A task to submit. The server checks each value, and refuses the task with the field at fault.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct NewTask {
    kind: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    payload: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    payload_base64: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    queue: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    priority: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    after: Option<DurationText>,
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    on_duplicate: Option<OnDuplicate>,
    #[serde(skip_serializing_if = "Option::is_none")]
    keep_key_for: Option<DurationText>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ttl: Option<DurationText>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timeout: Option<DurationText>,
    #[serde(skip_serializing_if = "Option::is_none")]
    heartbeat_timeout: Option<DurationText>,
    #[serde(skip_serializing_if = "Option::is_none")]
    deadline: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retention: Option<DurationText>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry: Option<RetryPolicy>,
    #[serde(skip_serializing_if = "Option::is_none")]
    group: Option<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    tags: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    depends_on: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    affinity: Option<String>,
    #[serde(skip)]
    pub(crate) idempotency_key: Option<String>,
}

/// The effect of a submit whose key another task has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum OnDuplicate {
    /// Keeps the other task.
    Skip,
    /// Cancels the other task.
    Supersede,
    /// Keeps the other task and reports it.
    Reject,
    /// Inserts the task when the other one ends, if that one runs.
    Requeue,
}

impl NewTask {
    /// Creates a task of a kind, which selects the handler.
    #[must_use]
    pub fn new(kind: impl Into<String>) -> Self {
        Self { kind: kind.into(), ..Self::default() }
    }

    /// Sets the payload, as JSON. Default: empty.
    ///
    /// # Errors
    /// Returns an error if the value has no form in JSON.
    pub fn json<T: Serialize + ?Sized>(self, payload: &T) -> Result<Self> {
        let payload = serde_json::to_value(payload)
            .map_err(|error| Error::invalid(format!("the payload cannot be written as JSON: {error}")))?;
        Ok(Self { payload: Some(payload), payload_base64: None, ..self })
    }

    /// Sets the payload, as bytes.
    #[must_use]
    pub fn bytes(self, payload: &[u8]) -> Self {
        Self { payload: None, payload_base64: Some(STANDARD.encode(payload)), ..self }
    }

    /// Sets the queue. Default: `default`.
    #[must_use]
    pub fn queue(self, queue: impl Into<String>) -> Self {
        Self { queue: Some(queue.into()), ..self }
    }

    /// Sets the urgency, 0 to 255. Default: 128.
    #[must_use]
    pub fn priority(self, priority: u8) -> Self {
        Self { priority: Some(priority), ..self }
    }

    /// Sets the delay until the task is due. Default: none.
    #[must_use]
    pub fn after(self, delay: Duration) -> Self {
        Self { after: Some(delay.into()), ..self }
    }

    /// Sets the time at which the task is due, in RFC 3339, instead of a delay.
    #[must_use]
    pub fn at(self, at: impl Into<String>) -> Self {
        Self { at: Some(at.into()), ..self }
    }

    /// Sets a key that makes the task unique among the active tasks of its kind, 1 to 512 bytes.
    #[must_use]
    pub fn key(self, key: impl Into<String>) -> Self {
        Self { key: Some(key.into()), ..self }
    }

    /// Sets the effect if another task has the key. Default: `Skip`.
    #[must_use]
    pub fn on_duplicate(self, effect: OnDuplicate) -> Self {
        Self { on_duplicate: Some(effect), ..self }
    }

    /// Sets the time for which the key stays taken after the end of the task. Default: none.
    #[must_use]
    pub fn keep_key_for(self, time: Duration) -> Self {
        Self { keep_key_for: Some(time.into()), ..self }
    }

    /// Sets the time within which the task must start. Default: no limit.
    #[must_use]
    pub fn ttl(self, ttl: Duration) -> Self {
        Self { ttl: Some(ttl.into()), ..self }
    }

    /// Sets the longest time of one attempt. Default: set by the worker.
    #[must_use]
    pub fn timeout(self, timeout: Duration) -> Self {
        Self { timeout: Some(timeout.into()), ..self }
    }

    /// Sets the longest time of an attempt without a heartbeat. Default: set by the worker.
    #[must_use]
    pub fn heartbeat_timeout(self, timeout: Duration) -> Self {
        Self { heartbeat_timeout: Some(timeout.into()), ..self }
    }

    /// Sets the time after which no attempt runs, in RFC 3339. Default: none.
    #[must_use]
    pub fn deadline(self, at: impl Into<String>) -> Self {
        Self { deadline: Some(at.into()), ..self }
    }

    /// Sets the time for which the ended task is kept. Default: set by the store's retention.
    #[must_use]
    pub fn retention(self, time: Duration) -> Self {
        Self { retention: Some(time.into()), ..self }
    }

    /// Sets the retry policy. Default: set by the worker.
    #[must_use]
    pub fn retry(self, policy: RetryPolicy) -> Self {
        Self { retry: Some(policy), ..self }
    }

    /// Sets the group, whose tasks share limits. Default: none.
    #[must_use]
    pub fn group(self, group: impl Into<String>) -> Self {
        Self { group: Some(group.into()), ..self }
    }

    /// Adds a tag; a task has at most 32.
    #[must_use]
    pub fn tag(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.tags.insert(key.into(), value.into());
        self
    }

    /// Adds a task that must end before this one starts.
    #[must_use]
    pub fn depends_on(mut self, task: impl Into<String>) -> Self {
        self.depends_on.push(task.into());
        self
    }

    /// Sets the parent. Default: none.
    #[must_use]
    pub fn parent(self, task: impl Into<String>) -> Self {
        Self { parent: Some(task.into()), ..self }
    }

    /// Sets the affinity key: the task prefers the worker that last ran a task with it.
    #[must_use]
    pub fn affinity(self, key: impl Into<String>) -> Self {
        Self { affinity: Some(key.into()), ..self }
    }

    /// Sets the idempotency key of a submit that a program repeats after its own restart. It holds
    /// for a day. Default: a random one for each call.
    #[must_use]
    pub fn idempotency_key(self, key: impl Into<String>) -> Self {
        Self { idempotency_key: Some(key.into()), ..self }
    }
}

/// The outcome of a submit or a start.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Deserialize)]
#[non_exhaustive]
pub struct Submitted {
    /// The id of the new task, or of the task that has the key.
    pub id: String,
    /// The outcome: `inserted`, `duplicate`, `priority_raised`, `requeued`, `superseded` or
    /// `rejected`.
    #[serde(default = "inserted")]
    pub outcome: String,
}

/// Returns the outcome for a body without one, which is that of an ended task.
fn inserted() -> String {
    "inserted".to_owned()
}
