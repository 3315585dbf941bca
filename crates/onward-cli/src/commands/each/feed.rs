//! From lines to tasks.

use std::sync::Arc;

use anyhow::Context;
use onward_store::{Outcome, Store, Submitted, TaskId, TaskState, Timestamp, Write};
use tokio::sync::mpsc;

use super::arguments::Arguments;
use super::identity::Identity;
use super::opening::Opening;
use crate::apply::{apply_one, unexpected};
use crate::input::Line;

/// What is to be done when the store takes no more.
pub(super) const GO_ON: &str = "not every line was done; what finished is kept, and the same command run again goes on";

/// A line that has its task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fed {
    /// Which one it is of those that are worked on, counted from 0.
    pub(super) position: u64,
    /// The number of the line in the input.
    pub(super) line: u64,
    /// The task.
    pub(super) task: TaskId,
    /// Whether the task had ended before this process began with the run.
    pub(super) earlier: bool,
}

/// Makes tasks of lines.
#[derive(Debug)]
pub(super) struct Feed {
    store: Arc<dyn Store>,
    arguments: Arc<Arguments>,
    identity: Identity,
    batches: mpsc::Receiver<anyhow::Result<Vec<Line>>>,
    fed: u64,
    ended: bool,
    /// When this process began. What it takes over from one that was killed may end before its line
    /// has been read.
    began: Timestamp,
}

impl Feed {
    /// Tasks for the lines of a run.
    pub(super) fn new(store: Arc<dyn Store>, arguments: Arc<Arguments>, opening: Opening) -> Self {
        let Opening { identity, batches, .. } = opening;
        let began = store.clock().now();
        Self { store, arguments, identity, batches, fed: 0, ended: false, began }
    }

    /// Whether the input has ended.
    pub(super) fn has_ended(&self) -> bool {
        self.ended
    }

    /// How many lines have their task.
    pub(super) fn fed(&self) -> u64 {
        self.fed
    }

    /// The next lines; none when the input has ended. Cancel-safe.
    pub(super) async fn next(&mut self) -> anyhow::Result<Vec<Line>> {
        match self.batches.recv().await {
            Some(batch) => batch,
            None => {
                self.ended = true;
                Ok(Vec::new())
            }
        }
    }

    /// Submits lines in one commit, and looks at those that have a task already.
    pub(super) async fn submit(&mut self, lines: Vec<Line>) -> anyhow::Result<Vec<Fed>> {
        let numbers: Vec<u64> = lines.iter().map(|line| line.number).collect();
        let task = |(position, line)| {
            let task = self.identity.task(line, position == 0, &self.arguments);
            task.map(|task| Write::Submit(Box::new(task)))
        };
        let writes = (self.fed..).zip(lines).map(task).collect::<anyhow::Result<Vec<_>>>()?;
        let outcomes = self.store.apply(writes).await.context(GO_ON)?;
        let mut fed = Vec::with_capacity(outcomes.len());
        for (line, outcome) in numbers.into_iter().zip(outcomes) {
            let submitted = match outcome {
                Outcome::Submitted(submitted) => submitted,
                Outcome::Refused(refusal) => return Err(refusal.into()),
                other => return Err(unexpected(other)),
            };
            let earlier = !submitted.is_new() && self.ended_earlier(submitted).await?;
            fed.push(Fed { position: self.fed, line, task: submitted.id(), earlier });
            self.fed += 1;
        }
        Ok(fed)
    }

    /// Whether the task that a line has already was over when this process began; with
    /// `--retry-failed` one that failed is not, for it waits again.
    async fn ended_earlier(&self, submitted: Submitted) -> anyhow::Result<bool> {
        let task = submitted.id();
        // Pruned from history, so it had ended; its key is kept longer.
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
