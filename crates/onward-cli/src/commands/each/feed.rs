//! Submission of lines as tasks.

use std::sync::Arc;

use anyhow::Context;
use onward_store::{Outcome, Store, StoreReads, Submitted, TaskId, TaskState, Timestamp, Write};
use tokio::sync::mpsc;

use super::arguments::Arguments;
use super::identity::Identity;
use super::open_run::OpenedRun;
use crate::apply::{apply_one, unexpected};
use crate::input::Line;

/// The remedy when the store fails while lines remain.
pub(super) const RESUME_REMEDY: &str =
    "not every line is done; finished lines are kept, and the same command resumes where it stopped";

/// A line with its task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SubmittedLine {
    /// The position of the line among the lines processed, counted from 0.
    pub(super) position: u64,
    /// The number of the line in the input.
    pub(super) line: u64,
    /// The task.
    pub(super) task: TaskId,
    /// True if the task had ended before this process began with the run.
    pub(super) earlier: bool,
}

/// A feed that submits lines as tasks.
#[derive(Debug)]
pub(super) struct Feed {
    store: Arc<dyn Store>,
    arguments: Arc<Arguments>,
    identity: Identity,
    batches: mpsc::Receiver<anyhow::Result<Vec<Line>>>,
    submitted: u64,
    ended: bool,
    /// The time at which this process began. A task that it takes over from a killed process may
    /// end before its line has been read.
    began: Timestamp,
}

impl Feed {
    /// Creates the feed of a run.
    pub(super) fn new(store: Arc<dyn Store>, arguments: Arc<Arguments>, opened: OpenedRun) -> Self {
        let OpenedRun { identity, batches, .. } = opened;
        let began = store.clock().now();
        Self { store, arguments, identity, batches, submitted: 0, ended: false, began }
    }

    /// Returns true if the input has ended.
    pub(super) fn has_ended(&self) -> bool {
        self.ended
    }

    /// Returns the number of lines that have their task.
    pub(super) fn submitted(&self) -> u64 {
        self.submitted
    }

    /// Returns the next lines, or none if the input has ended. Cancel-safe.
    pub(super) async fn next(&mut self) -> anyhow::Result<Vec<Line>> {
        match self.batches.recv().await {
            Some(batch) => batch,
            None => {
                self.ended = true;
                Ok(Vec::new())
            }
        }
    }

    /// Submits lines in one commit, and reads the tasks of lines that already have one.
    pub(super) async fn submit(&mut self, lines: Vec<Line>) -> anyhow::Result<Vec<SubmittedLine>> {
        let numbers: Vec<u64> = lines.iter().map(|line| line.number).collect();
        let task = |(position, line)| {
            let task = self.identity.task(line, position == 0);
            task.map(|task| Write::Submit(Box::new(task)))
        };
        let writes = (self.submitted..).zip(lines).map(task).collect::<anyhow::Result<Vec<_>>>()?;
        // A line that has a task keeps it, and the outcome names that task. So this write is also
        // the read by which a continued run finds its lines.
        let outcomes = self.store.apply(writes).await.context(RESUME_REMEDY)?;
        let mut submitted_lines = Vec::with_capacity(outcomes.len());
        for (line, outcome) in numbers.into_iter().zip(outcomes) {
            let submitted = match outcome {
                Outcome::Submitted(submitted) => submitted,
                Outcome::Refused(refusal) => return Err(refusal.into()),
                other => return Err(unexpected(other)),
            };
            let earlier = !submitted.is_new() && self.ended_earlier(submitted).await?;
            submitted_lines.push(SubmittedLine { position: self.submitted, line, task: submitted.id(), earlier });
            self.submitted += 1;
        }
        Ok(submitted_lines)
    }

    /// Returns true if the existing task of a line had ended before this process began. With
    /// `--retry-failed`, retries a failed task and returns false for it.
    async fn ended_earlier(&self, submitted: Submitted) -> anyhow::Result<bool> {
        let task = submitted.id();
        // The task was pruned from history, so it had ended. Its key is kept longer.
        let Some(record) = self.store.task(task).await? else { return Ok(true) };
        match record.state {
            state if !state.is_ended() => Ok(false),
            _ if record.finished_at.is_some_and(|at| at >= self.began) => Ok(false),
            TaskState::Completed => Ok(true),
            _ if self.arguments.retry_failed => {
                apply_one(&*self.store, Write::Retry { task }).await?;
                Ok(false)
            }
            _ => Ok(true),
        }
    }
}
