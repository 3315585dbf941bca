//! The options that describe a task on the command line: one to submit, or those of a schedule.

use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;
use clap::{Args, ValueEnum};
use onward_store::rules::retry::{Backoff, RetryPolicy};
use onward_store::{
    Aggregate, Dependencies, Name, NewTask, OnDependencyFailure, OnDuplicate, Priority, TaskId, Ttl, TtlFrom,
    UniqueKey, When,
};

use super::io_options::IoOptions;
use super::payload::read_payload;
use crate::values::{
    Tag, parse_backoff, parse_duration, parse_kind, parse_positive_duration, parse_priority, parse_queue, tags_of,
};

/// The flag that names a file with the payload.
pub(super) const PAYLOAD_FILE: &str = "--payload-file";

/// The description of a task. With `--lines` the payload comes from the lines.
#[derive(Debug, Args)]
pub(crate) struct TaskOptions {
    /// The kind, which selects a handler
    #[arg(long, value_parser = parse_kind)]
    kind: Name,
    /// The queue of the task
    #[arg(long, default_value = "default", value_parser = parse_queue)]
    queue: Name,
    /// The group with whose tasks it shares limits: a tenant, an endpoint (see onward limit)
    #[arg(long)]
    group: Option<Name>,
    /// The affinity key: the task prefers the worker that last ran a task with this key (see onward
    /// queue set --affinity-wait)
    #[arg(long, value_name = "AFFINITY-KEY")]
    affinity: Option<Name>,
    /// The priority: low (32), normal (128), high (192), urgent (255), or 0 to 255; higher first
    #[arg(long, value_parser = parse_priority, default_value = "normal")]
    priority: Priority,
    /// A key that only one active task of this kind can have at a time
    #[arg(long)]
    key: Option<String>,
    /// A tag for finding it; may be given several times
    #[arg(long = "tag", value_name = "KEY=VALUE")]
    tags: Vec<Tag>,
    /// Action if another task has the key
    #[arg(long, value_name = "ACTION", default_value = "skip", requires = "key")]
    on_duplicate: DuplicateAction,
    /// Time for which the key stays reserved after the task has ended
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, default_value = "0", requires = "key")]
    keep_key: Duration,
    /// The parent task: if it ends without completing, this task is cancelled
    #[arg(long, value_name = "TASK")]
    parent: Option<TaskId>,
    /// Start only when this task has ended; may be given several times
    #[arg(long, value_name = "TASK")]
    depends_on: Vec<TaskId>,
    /// Action if a task that it depends on does not complete
    #[arg(long, value_name = "ACTION", default_value = "cancel", requires = "depends_on")]
    on_dependency_failure: DependencyAction,
    /// Due after this long
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    after: Option<Duration>,
    /// Expire if it has not started after this long
    #[arg(long, value_name = "DURATION", value_parser = parse_positive_duration)]
    ttl: Option<Duration>,
    /// The moment from which --ttl counts
    #[arg(long, value_name = "MOMENT", default_value = "submission", requires = "ttl")]
    ttl_from: TtlMoment,
    /// Longest time for one attempt, counted from its start (--wait-timeout of onward submit bounds
    /// the wait)
    #[arg(long, value_name = "DURATION", value_parser = parse_positive_duration)]
    timeout: Option<Duration>,
    /// Longest time that an attempt may run without a heartbeat: a report of the command or the
    /// handler
    #[arg(long, value_name = "DURATION", value_parser = parse_positive_duration)]
    heartbeat_timeout: Option<Duration>,
    /// Time for which the ended task is kept, regardless of the retention set for workers and
    /// prunes
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    retention: Option<Duration>,
    /// Further attempts after a failed one; default: the worker's setting
    #[arg(long, value_name = "COUNT")]
    retries: Option<u32>,
    /// Time between attempts: 5s, linear:1s:1s:1m, exp:1s:1m or jitter:1s:1m
    #[arg(long, value_name = "BACKOFF", value_parser = parse_backoff)]
    backoff: Option<Backoff>,
    /// Batch it with other tasks of its queue, kind and group, and deliver the batch at this many
    /// tasks (1 to 1000)
    #[arg(long, value_name = "COUNT", requires = "aggregate_delay")]
    aggregate_size: Option<u32>,
    /// Deliver the batch at the latest this long after its first task
    #[arg(long, value_name = "DURATION", value_parser = parse_positive_duration, requires = "aggregate_size")]
    aggregate_delay: Option<Duration>,
    /// Deliver the batch if no task was added for this long; default: the value of
    /// --aggregate-delay
    #[arg(long, value_name = "DURATION", value_parser = parse_positive_duration, requires = "aggregate_size")]
    aggregate_grace: Option<Duration>,
    #[command(flatten)]
    io: IoOptions,
    /// Read the payload from a file
    #[arg(long, value_name = "FILE", conflicts_with = "payload")]
    pub(super) payload_file: Option<PathBuf>,
    /// The payload; - for stdin; default: empty
    #[arg(value_name = "PAYLOAD")]
    pub(super) payload: Option<String>,
}

/// The action if another task has the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DuplicateAction {
    /// Keep the existing task; if it waits, it gets the higher priority of the two
    Skip,
    /// Cancel the existing task and submit the new one
    Supersede,
    /// Keep the existing task and exit with 1
    Reject,
    /// If the existing task runs, submit the new one when it ends; otherwise keep the existing task
    Requeue,
}

/// The action if a task that another depends on does not complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DependencyAction {
    /// Cancel the dependent task
    Cancel,
    /// Fail the dependent task
    Fail,
    /// Run the dependent task anyway
    Ignore,
}

/// The moment from which a time to live counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TtlMoment {
    /// Submission; the time ends when the task has started
    Submission,
    /// Start of its first attempt; no further attempt starts after it
    FirstAttempt,
}

impl From<TtlMoment> for TtlFrom {
    fn from(moment: TtlMoment) -> Self {
        match moment {
            TtlMoment::Submission => Self::Submission,
            TtlMoment::FirstAttempt => Self::FirstAttempt,
        }
    }
}

impl From<DependencyAction> for OnDependencyFailure {
    fn from(action: DependencyAction) -> Self {
        match action {
            DependencyAction::Cancel => Self::Cancel,
            DependencyAction::Fail => Self::Fail,
            DependencyAction::Ignore => Self::Ignore,
        }
    }
}

impl From<DuplicateAction> for OnDuplicate {
    fn from(action: DuplicateAction) -> Self {
        match action {
            DuplicateAction::Skip => Self::Skip,
            DuplicateAction::Supersede => Self::Supersede,
            DuplicateAction::Reject => Self::Reject,
            DuplicateAction::Requeue => Self::Requeue,
        }
    }
}

impl TaskOptions {
    /// Returns the task with the payload that was typed, or read from a file or stdin.
    ///
    /// # Errors
    /// Returns the errors of [`task`](Self::task), and if the payload cannot be read.
    pub(crate) fn task_with_payload(&self) -> anyhow::Result<NewTask> {
        self.task(read_payload(PAYLOAD_FILE, self.payload_file.as_deref(), self.payload.as_deref())?)
    }

    /// Returns the task with a given payload.
    ///
    /// # Errors
    /// Returns a usage error if the tags contradict each other.
    pub(super) fn task(&self, payload: Bytes) -> anyhow::Result<NewTask> {
        Ok(NewTask {
            queue: self.queue.clone(),
            group: self.group.clone(),
            payload,
            priority: self.priority,
            when: self.after.map_or(When::Now, When::After),
            unique: self.unique(),
            parent: self.parent,
            depends_on: self.depends_on(),
            ttl: self.ttl.map(|duration| Ttl { duration, from: self.ttl_from.into() }),
            timeout: self.timeout,
            heartbeat_timeout: self.heartbeat_timeout,
            retention: self.retention,
            retry: retry_policy(self.retries, self.backoff),
            tags: tags_of(&self.tags)?,
            io: self.io.io(),
            affinity: self.affinity.clone(),
            aggregate: self.aggregate(),
            ..NewTask::of(self.kind.clone())
        })
    }

    fn aggregate(&self) -> Option<Aggregate> {
        let (size, delay) = self.aggregate_size.zip(self.aggregate_delay)?;
        Some(Aggregate { size, delay, grace: self.aggregate_grace.unwrap_or(delay) })
    }

    fn depends_on(&self) -> Dependencies {
        let on_failure = self.on_dependency_failure.into();
        Dependencies { on_failure, ..Dependencies::on(self.depends_on.iter().copied()) }
    }

    fn unique(&self) -> Option<UniqueKey> {
        let key = self.key.clone()?;
        Some(UniqueKey { key, on_duplicate: self.on_duplicate.into(), keep_for: self.keep_key })
    }
}

/// Returns the policy with this number of further attempts. A missing value has its default; if
/// both are missing, returns `None`.
pub(crate) fn retry_policy(retries: Option<u32>, backoff: Option<Backoff>) -> Option<RetryPolicy> {
    if retries.is_none() && backoff.is_none() {
        return None;
    }
    let default = RetryPolicy::default();
    Some(RetryPolicy {
        attempts: retries.map_or(default.attempts, |retries| retries.saturating_add(1)),
        backoff: backoff.unwrap_or(default.backoff),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_retries_is_one_attempt() {
        assert_eq!(retry_policy(Some(0), None).unwrap().attempts, 1);
    }

    #[test]
    fn without_either_flag_the_worker_decides() {
        assert_eq!(retry_policy(None, None), None);
    }
}
