//! Tasks, as they are submitted.

use std::collections::BTreeMap;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use onward_store::{
    Dependencies, Dependency, Name, NewTask, OnDependencyFailure, OnDuplicate, Priority, TaskId, Timestamp, Ttl,
    TtlFrom, UniqueKey, When,
};
use serde::Deserialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::duration::DurationText;
use super::retry::RetryBody;
use crate::http::problem::Problem;

/// A task to submit.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewTaskBody {
    /// The name that selects a handler.
    pub(crate) kind: String,
    /// The payload, as JSON. Default: empty. Whole numbers beyond 64 bits lose digits; send such a
    /// payload in base64, or raw.
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<Value>)]
    payload: Option<Value>,
    /// The payload, in base64, instead of `payload`.
    payload_base64: Option<String>,
    /// The queue. Default: `default`.
    queue: Option<String>,
    /// The urgency, 0 to 255. Default: 128.
    priority: Option<u8>,
    /// The delay until the task is due. Default: none.
    after: Option<DurationText>,
    /// The time at which the task is due, instead of `after`.
    #[schema(value_type = Option<String>, format = DateTime)]
    at: Option<Timestamp>,
    /// A key that makes the task unique among the active tasks of its kind, 1 to 512 bytes.
    pub(crate) key: Option<String>,
    /// The effect if another task has the key. Default: `skip`.
    on_duplicate: Option<OnDuplicateBody>,
    /// The time for which the key stays taken after the end of the task. Default: none.
    keep_key_for: Option<DurationText>,
    /// The time within which the task must start. Default: no limit.
    ttl: Option<DurationText>,
    /// The longest time of one attempt. Default: set by the worker.
    timeout: Option<DurationText>,
    /// The longest time of an attempt without a heartbeat. Default: set by the worker.
    heartbeat_timeout: Option<DurationText>,
    /// The time after which no attempt runs. Default: none.
    #[schema(value_type = Option<String>, format = DateTime)]
    deadline: Option<Timestamp>,
    /// The time for which the ended task is kept. Default: set by the store's retention.
    retention: Option<DurationText>,
    /// The retry policy. Default: set by the worker.
    retry: Option<RetryBody>,
    /// The group, whose tasks share limits. Default: none.
    group: Option<String>,
    /// Tags, at most 32. Default: none.
    #[serde(default)]
    tags: BTreeMap<String, String>,
    /// The ids of the tasks that must end before this one starts. Default: none.
    #[serde(default)]
    depends_on: Vec<String>,
    /// The effect if one of these does not complete. Default: `cancel`.
    on_dependency_failure: Option<OnDependencyFailureBody>,
    /// The id of the parent. Default: none.
    parent: Option<String>,
    /// The affinity key: the task prefers the worker that last ran a task with it. Default: none.
    affinity: Option<String>,
}

/// The effect of a submit whose key another task has.
#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum OnDuplicateBody {
    /// Keeps the other task.
    Skip,
    /// Cancels the other task.
    Supersede,
    /// Keeps the other task and reports it.
    Reject,
    /// Inserts the task when the other one ends, if that one runs.
    Requeue,
}

/// The effect of a dependency that does not complete.
#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum OnDependencyFailureBody {
    /// Cancels the task.
    Cancel,
    /// Fails the task.
    Fail,
    /// Runs the task anyway.
    Ignore,
}

/// Reads a value that may be null, and is different from one that is missing.
fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

impl NewTaskBody {
    /// Returns a task whose payload is a body of another content type.
    pub(crate) fn of_query(
        kind: String,
        queue: Option<String>,
        group: Option<String>,
        key: Option<String>,
        priority: Option<u8>,
    ) -> Self {
        Self { kind, queue, group, key, priority, ..Self::default() }
    }

    /// Returns the task.
    pub(crate) fn into_new_task(self, raw: Option<Bytes>) -> Result<NewTask, Problem> {
        let payload = match raw {
            Some(raw) => raw,
            None => self.payload()?,
        };
        self.key.as_deref().map_or(Ok(()), |key| check_text("key", key))?;
        self.tags.values().try_for_each(|value| check_text("tags", value))?;
        let unique = self.unique()?;
        let when = self.when()?;
        let depends_on = self.dependencies()?;
        let kind = name("kind", &self.kind)?;
        kind.check_own("kind").map_err(|error| Problem::from(error).field("kind"))?;
        let new = NewTask::of(kind);
        Ok(NewTask {
            payload,
            unique,
            when,
            depends_on,
            queue: optional_name("queue", self.queue.as_deref())?.unwrap_or(new.queue),
            priority: self.priority.map_or(new.priority, Priority),
            ttl: self.ttl.map(|ttl| Ttl { duration: ttl.0, from: TtlFrom::Submission }),
            timeout: self.timeout.map(|timeout| timeout.0),
            heartbeat_timeout: self.heartbeat_timeout.map(|timeout| timeout.0),
            deadline: self.deadline,
            retention: self.retention.map(|retention| retention.0),
            retry: self.retry.map(Into::into),
            group: optional_name("group", self.group.as_deref())?,
            tags: self.tags.into_iter().collect(),
            parent: self.parent.as_deref().map(|parent| task_id("parent", parent)).transpose()?,
            affinity: optional_name("affinity", self.affinity.as_deref())?,
            ..new
        })
    }

    fn payload(&self) -> Result<Bytes, Problem> {
        match (&self.payload, &self.payload_base64) {
            (None, None) => Ok(Bytes::new()),
            (Some(json), None) => Ok(json.to_string().into()),
            (None, Some(text)) => STANDARD.decode(text).map(Bytes::from).map_err(|error| {
                Problem::invalid("payload_base64", format!("it is not base64: {error}"), "use the standard alphabet")
            }),
            (Some(_), Some(_)) => Err(both("payload", "payload_base64")),
        }
    }

    fn when(&self) -> Result<When, Problem> {
        match (self.after, self.at) {
            (None, None) => Ok(When::Now),
            (Some(after), None) => Ok(When::After(after.0)),
            (None, Some(at)) => Ok(When::At(at)),
            (Some(_), Some(_)) => Err(both("after", "at")),
        }
    }

    fn unique(&self) -> Result<Option<UniqueKey>, Problem> {
        let Some(key) = &self.key else {
            let needs_key = self.on_duplicate.is_some() || self.keep_key_for.is_some();
            let detail = "`on_duplicate` and `keep_key_for` have no effect without a key";
            return if needs_key { Err(Problem::invalid("key", detail, "add `key`")) } else { Ok(None) };
        };
        let on_duplicate = match self.on_duplicate {
            None | Some(OnDuplicateBody::Skip) => OnDuplicate::Skip,
            Some(OnDuplicateBody::Supersede) => OnDuplicate::Supersede,
            Some(OnDuplicateBody::Reject) => OnDuplicate::Reject,
            Some(OnDuplicateBody::Requeue) => OnDuplicate::Requeue,
        };
        let keep_for = self.keep_key_for.map_or(Duration::ZERO, |time| time.0);
        Ok(Some(UniqueKey { key: key.clone(), on_duplicate, keep_for }))
    }

    fn dependencies(&self) -> Result<Dependencies, Problem> {
        let tasks = self.depends_on.iter().map(|id| task_id("depends_on", id).map(Dependency::Task));
        let on_failure = match self.on_dependency_failure {
            None | Some(OnDependencyFailureBody::Cancel) => OnDependencyFailure::Cancel,
            Some(OnDependencyFailureBody::Fail) => OnDependencyFailure::Fail,
            Some(OnDependencyFailureBody::Ignore) => OnDependencyFailure::Ignore,
        };
        Ok(Dependencies { tasks: tasks.collect::<Result<_, _>>()?, on_failure })
    }
}

#[cold]
fn both(one: &str, other: &str) -> Problem {
    Problem::invalid(other, format!("`{one}` and `{other}` are both set"), "leave one of them out")
}

/// Reads a name in a field.
pub(crate) fn name(field: &str, text: &str) -> Result<Name, Problem> {
    Name::new(text).map_err(|error: onward_store::Error| Problem::from(error).field(field))
}

fn optional_name(field: &str, text: Option<&str>) -> Result<Option<Name>, Problem> {
    text.map(|text| name(field, text)).transpose()
}

/// Checks that a text can be kept by every store: PostgreSQL keeps no NUL character.
pub(crate) fn check_text(field: &str, text: &str) -> Result<(), Problem> {
    if text.contains('\0') {
        return Err(Problem::invalid(field, "the text has a NUL character", "leave it out"));
    }
    Ok(())
}

/// Reads the number of a task in a field.
pub(crate) fn task_id(field: &str, text: &str) -> Result<TaskId, Problem> {
    text.parse().map_err(|error: onward_store::Error| Problem::from(error).field(field))
}
