//! The rarer options of a task, as JSON in one column that is NULL for most tasks.

use std::num::NonZeroU32;
use std::time::Duration;

use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ToSql, ToSqlOutput, ValueRef};
use serde::{Deserialize, Serialize};

use crate::api::aggregate::Aggregate;
use crate::api::dependency::OnDependencyFailure;
use crate::api::io::Io;
use crate::api::name::Name;
use crate::api::tag::Tags;
use crate::api::task::{NewTask, TaskId, Ttl};
use crate::api::timestamp::Timestamp;
use crate::rules::retry::RetryPolicy;

/// The options of a task beyond the columns of its row. Field names are part of the file format.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(in crate::sqlite) struct TaskOptions {
    /// The time after which the task expires unless it has started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::sqlite) ttl: Option<Ttl>,
    /// The longest time of an attempt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::sqlite) timeout: Option<Duration>,
    /// The longest time between two heartbeats.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::sqlite) heartbeat_timeout: Option<Duration>,
    /// The time by which the task must have ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::sqlite) deadline: Option<Timestamp>,
    /// The time for which the task is kept after its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::sqlite) retention: Option<Duration>,
    /// The retry policy, if it is not the default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::sqlite) retry: Option<RetryPolicy>,
    /// The time for which a schedule submitted the task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::sqlite) scheduled_at: Option<Timestamp>,
    /// The time for which the unique key stays taken after the end.
    #[serde(skip_serializing_if = "Duration::is_zero")]
    pub(in crate::sqlite) keep_key_for: Duration,
    /// The tags. The tables that serve searches may not have them yet.
    #[serde(skip_serializing_if = "Tags::is_empty")]
    pub(in crate::sqlite) tags: Tags,
    /// The parent task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::sqlite) parent: Option<TaskId>,
    /// The reaction to a failed dependency.
    #[serde(skip_serializing_if = "OnDependencyFailure::is_default")]
    pub(in crate::sqlite) on_dependency_failure: OnDependencyFailure,
    /// The expected I/O in bytes.
    #[serde(skip_serializing_if = "Io::is_none")]
    pub(in crate::sqlite) expected_io: Io,
    /// The recorded I/O in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::sqlite) io: Option<Io>,
    /// The options for joining a batch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::sqlite) aggregate: Option<Aggregate>,
    /// The number of items of a batch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::sqlite) items: Option<NonZeroU32>,
    /// The affinity key.
    pub(in crate::sqlite) affinity: Option<Name>,
    /// True for an orchestration.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(in crate::sqlite) orchestration: bool,
    /// The reference under which the end of the task is reported to its orchestration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::sqlite) report: Option<u64>,
}

impl TaskOptions {
    /// Returns the options of a submission.
    pub(in crate::sqlite) fn of(task: &NewTask) -> Self {
        Self {
            ttl: task.ttl,
            timeout: task.timeout,
            heartbeat_timeout: task.heartbeat_timeout,
            deadline: task.deadline,
            retention: task.retention,
            retry: task.retry,
            scheduled_at: task.scheduled_at,
            keep_key_for: task.unique.as_ref().map_or(Duration::ZERO, |unique| unique.keep_for),
            tags: task.tags.clone(),
            parent: task.parent,
            on_dependency_failure: task.depends_on.on_failure,
            expected_io: task.io,
            io: None,
            aggregate: task.aggregate,
            items: None,
            affinity: task.affinity.clone(),
            orchestration: task.orchestration,
            report: task.report,
        }
    }
}

impl TaskOptions {
    /// Returns the number of items of a batch; 0 for any other task.
    pub(in crate::sqlite) fn item_count(&self) -> u32 {
        self.items.map_or(0, NonZeroU32::get)
    }
}

impl ToSql for TaskOptions {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        if *self == Self::default() {
            return Ok(ToSqlOutput::from(rusqlite::types::Null));
        }
        let text =
            serde_json::to_string(self).map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))?;
        Ok(ToSqlOutput::from(text))
    }
}

impl FromSql for TaskOptions {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        match value {
            ValueRef::Null => Ok(Self::default()),
            ValueRef::Text(text) => serde_json::from_slice(text).map_err(|error| FromSqlError::Other(error.into())),
            _ => Err(FromSqlError::InvalidType),
        }
    }
}
