//! Tasks, as they are returned.

use std::collections::BTreeMap;

use onward_store::{AttemptError, Progress, TaskRecord, Timestamp};
use serde::Serialize;
use utoipa::ToSchema;

use super::content::Content;
use super::duration::DurationText;
use super::retry::RetryBody;

/// A task.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TaskBody {
    /// The number, as a decimal string.
    pub(crate) id: String,
    /// The name that selects a handler.
    kind: String,
    /// The queue.
    queue: String,
    /// The group.
    #[serde(skip_serializing_if = "Option::is_none")]
    group: Option<String>,
    /// The state: `blocked`, `scheduled`, `waiting`, `running`, `completed`, `failed`, `dead`,
    /// `cancelled` or `expired`.
    state: &'static str,
    /// The urgency, 0 to 255.
    priority: u8,
    /// The unique key.
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    /// The time of the submission.
    #[schema(value_type = String, format = DateTime)]
    submitted_at: Timestamp,
    /// The time at which the task is or was due.
    #[schema(value_type = String, format = DateTime)]
    due_at: Timestamp,
    /// The time at which the task expires if no attempt starts before it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    expires_at: Option<Timestamp>,
    /// The number of attempts used up, including a running one.
    attempts: u32,
    /// The time of the latest claim.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    started_at: Option<Timestamp>,
    /// The time of the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    finished_at: Option<Timestamp>,
    /// True if the worker was asked to stop.
    cancel_requested: bool,
    /// The last error.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    /// The last progress report.
    #[serde(skip_serializing_if = "Option::is_none")]
    progress: Option<ProgressBody>,
    /// The tags.
    tags: BTreeMap<String, String>,
    /// The tasks for which the task waits.
    blocked_by: Vec<String>,
    /// The parent.
    #[serde(skip_serializing_if = "Option::is_none")]
    parent: Option<String>,
    /// True if the task is an orchestration or a run.
    orchestration: bool,
    /// The longest time of one attempt.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<DurationText>)]
    timeout: Option<DurationText>,
    /// The time after which no attempt runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    deadline: Option<Timestamp>,
    /// The task's own retry policy.
    #[serde(skip_serializing_if = "Option::is_none")]
    retry: Option<RetryBody>,
    /// The payload, if it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    payload: Option<Content>,
    /// The result, if it was asked for and the task has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<Content>,
}

/// A report of progress.
#[derive(Debug, Serialize, ToSchema)]
struct ProgressBody {
    /// The fraction done, 0.0 to 1.0.
    #[serde(skip_serializing_if = "Option::is_none")]
    fraction: Option<f32>,
    /// The current step.
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    /// The time of the report.
    #[schema(value_type = String, format = DateTime)]
    at: Timestamp,
}

/// An error of an attempt.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AttemptBody {
    /// The number of the attempt, counted from 1; 0 if none was running.
    attempt: u32,
    /// The time of the error.
    #[schema(value_type = String, format = DateTime)]
    at: Timestamp,
    /// The message.
    message: String,
}

impl TaskBody {
    /// Returns the body of a task, with payload and result only if they are to be shown.
    pub(crate) fn new(task: TaskRecord, with_payload: bool) -> Self {
        let content = |bytes: &bytes::Bytes| Content::new(bytes);
        Self {
            id: task.id.to_string(),
            kind: task.kind.to_string(),
            queue: task.queue.to_string(),
            group: task.group.map(|group| group.to_string()),
            state: task.state.as_str(),
            priority: task.priority.0,
            key: task.key,
            submitted_at: task.submitted_at,
            due_at: task.run_at,
            expires_at: task.expires_at,
            attempts: task.attempts,
            started_at: task.started_at,
            finished_at: task.finished_at,
            cancel_requested: task.cancel_requested,
            error: task.errors.last().map(|error| error.message.clone()),
            progress: task.progress.map(progress),
            tags: task.tags.iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect(),
            blocked_by: task.blocked_by.iter().map(ToString::to_string).collect(),
            parent: task.parent.map(|parent| parent.to_string()),
            orchestration: task.orchestration,
            timeout: task.timeout.map(DurationText),
            deadline: task.deadline,
            retry: task.retry.map(Into::into),
            payload: task.payload.as_ref().filter(|_| with_payload).map(content),
            result: task.result.bytes().filter(|_| with_payload).map(content),
        }
    }
}

fn progress(progress: Progress) -> ProgressBody {
    ProgressBody { fraction: progress.fraction, message: progress.message, at: progress.at }
}

impl From<AttemptError> for AttemptBody {
    fn from(error: AttemptError) -> Self {
        Self { attempt: error.attempt, at: error.at, message: error.message }
    }
}
