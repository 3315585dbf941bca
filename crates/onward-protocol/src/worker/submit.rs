//! New tasks.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::hello::check_retry;
use crate::bounds;
use crate::error::Result;
use crate::header::{at_most, entries, index, name, text, within};
use crate::retry::RetryPolicy;
use crate::task_fence::TaskFence;

/// Tasks that are submitted in one commit, all or none.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Submit {
    /// The number of the request.
    pub request: u64,
    /// The tasks.
    pub tasks: Vec<NewTask>,
    /// The running task whose children they become.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<TaskFence>,
}

/// The effect of a key that an active task has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnDuplicate {
    /// The submit returns the active task.
    #[default]
    Skip,
    /// The new task replaces the active one.
    Supersede,
    /// The submit is rejected.
    Reject,
    /// The active task runs again after its attempt.
    Requeue,
}

/// A task to submit.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct NewTask {
    /// The kind.
    pub kind: String,
    /// The payload index.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload: Option<usize>,
    /// The queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
    /// The priority; higher is sooner.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<u8>,
    /// The key that makes the task unique.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The time for which the key stays taken after the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keep_key_ms: Option<u64>,
    /// The effect of a key that is taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_duplicate: Option<OnDuplicate>,
    /// The time until the task may start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_ms: Option<u64>,
    /// The time within which the task must start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ttl_ms: Option<u64>,
    /// The longest attempt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// The longest silence of an attempt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub heartbeat_ms: Option<u64>,
    /// The retry policy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry: Option<RetryPolicy>,
    /// The group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// The affinity key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub affinity: Option<String>,
    /// The tags.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tags: Option<BTreeMap<String, String>>,
}

impl Submit {
    pub(crate) fn check(&self, payloads: usize) -> Result<()> {
        within("request", Some(self.request), 0, bounds::INTEGER)?;
        entries("tasks", self.tasks.len())?;
        self.tasks.iter().try_for_each(|task| task.check(payloads))
    }
}

impl NewTask {
    pub(crate) fn check(&self, payloads: usize) -> Result<()> {
        name("kind", Some(&self.kind))?;
        index("payload", self.payload, payloads)?;
        for (field, value) in [("queue", &self.queue), ("group", &self.group), ("affinity", &self.affinity)] {
            name(field, value.as_deref())?;
        }
        text("key", self.key.as_deref(), 1, bounds::UNIQUE_KEY_BYTES)?;
        for (field, value, least) in [
            ("keep_key_ms", self.keep_key_ms, 0),
            ("delay_ms", self.delay_ms, 0),
            ("ttl_ms", self.ttl_ms, 1),
            ("timeout_ms", self.timeout_ms, 1),
            ("heartbeat_ms", self.heartbeat_ms, 1),
        ] {
            within(field, value, least, bounds::INTEGER)?;
        }
        at_most("tags", self.tags.as_ref().map_or(0, BTreeMap::len), bounds::TAGS)?;
        self.retry.as_ref().map_or(Ok(()), check_retry)
    }
}
