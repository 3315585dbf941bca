//! What `onward submit` takes.

use bytes::Bytes;
use clap::Args;
use onward_store::{NewTask, Timestamp, When};

use super::task_options::TaskOptions;

/// Arguments of `onward submit`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(super) task: TaskOptions,
    /// Due at this time (RFC 3339, such as 2026-05-04T10:00:00Z)
    #[arg(long, value_name = "TIME", conflicts_with = "after")]
    at: Option<Timestamp>,
    /// No attempt runs past this time (RFC 3339)
    #[arg(long, value_name = "TIME")]
    deadline: Option<Timestamp>,
    /// One task per line of the payload (default: stdin), in batches; empty lines are left out
    #[arg(long, conflicts_with = "key")]
    pub(super) lines: bool,
    /// Wait for the end and print the result; exit with 1 if it did not complete
    #[arg(long)]
    pub(super) wait: bool,
}

impl Arguments {
    /// The task with one payload.
    ///
    /// # Errors
    /// As [`TaskOptions::task`].
    pub(super) fn task(&self, payload: Bytes) -> anyhow::Result<NewTask> {
        Ok(self.with_moments(self.task.task(payload)?))
    }

    /// The task with the payload that was named.
    ///
    /// # Errors
    /// As [`TaskOptions::task_with_payload`].
    pub(super) fn task_with_payload(&self) -> anyhow::Result<NewTask> {
        Ok(self.with_moments(self.task.task_with_payload()?))
    }

    fn with_moments(&self, task: NewTask) -> NewTask {
        NewTask { when: self.at.map_or(task.when, When::At), deadline: self.deadline, ..task }
    }
}
