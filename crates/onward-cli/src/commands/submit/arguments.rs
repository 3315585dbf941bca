//! The arguments of `onward submit`.

use std::time::Duration;

use bytes::Bytes;
use clap::Args;
use onward_store::{NewTask, Timestamp, When};

use super::task_options::TaskOptions;
use crate::values::{parse_coming_time, parse_positive_duration};

/// Arguments of `onward submit`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(super) task: TaskOptions,
    /// Due at this time: '2026-11-27 12:00', 'tomorrow 9:00', 12:00 (the next),
    /// 2026-11-27T12:00:00Z
    #[arg(long, value_name = "TIME", value_parser = parse_coming_time, conflicts_with = "after")]
    at: Option<Timestamp>,
    /// No attempt runs past this time (written as for --at)
    #[arg(long, value_name = "TIME", value_parser = parse_coming_time)]
    deadline: Option<Timestamp>,
    /// Submit one task per line of the payload (default: stdin), in batches; empty lines are
    /// skipped
    #[arg(long, conflicts_with = "key")]
    pub(super) lines: bool,
    /// Wait for the end and print the result; exit with 1 if it did not complete
    #[arg(long)]
    pub(super) wait: bool,
    /// Give up waiting after this long, with exit code 1; the task continues. Default: wait for
    /// ever. (--timeout bounds each attempt instead)
    #[arg(long, value_name = "DURATION", value_parser = parse_positive_duration, requires = "wait")]
    pub(super) wait_timeout: Option<Duration>,
}

impl Arguments {
    /// Returns the task with a given payload.
    ///
    /// # Errors
    /// Returns the errors of [`TaskOptions::task`].
    pub(super) fn task(&self, payload: Bytes) -> anyhow::Result<NewTask> {
        Ok(self.with_moments(self.task.task(payload)?))
    }

    /// Returns the task with the payload that the user specified.
    ///
    /// # Errors
    /// Returns the errors of [`TaskOptions::task_with_payload`].
    pub(super) fn task_with_payload(&self) -> anyhow::Result<NewTask> {
        Ok(self.with_moments(self.task.task_with_payload()?))
    }

    fn with_moments(&self, task: NewTask) -> NewTask {
        NewTask { when: self.at.map_or(task.when, When::At), deadline: self.deadline, ..task }
    }
}
