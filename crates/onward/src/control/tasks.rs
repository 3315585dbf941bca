//! Cancels, retries, hurries, kills and deletes single tasks.

use onward_store::{Outcome, TaskId, Write};

use crate::engine::Engine;
use crate::error::{Error, Result};

/// The result of a cancellation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cancellation {
    /// The task had not started and has ended.
    Ended,
    /// The task runs; its handler is asked to stop.
    Requested,
}

/// Operations on single tasks.
impl Engine {
    /// Cancels a task, wherever it is. A task that has not started ends. The handler of a running
    /// one is asked to stop: at once in this process, and otherwise when its process is notified.
    ///
    /// # Errors
    /// [`is_not_found`](Error::is_not_found), [`is_already_ended`](Error::is_already_ended).
    pub async fn cancel(&self, task: TaskId) -> Result<Cancellation> {
        match self.apply(Write::Cancel { task }).await? {
            Outcome::Cancelled => Ok(Cancellation::Ended),
            Outcome::CancelRequested => {
                self.ask_to_stop(&[task]);
                Ok(Cancellation::Requested)
            }
            _ => Err(Error::unexpected("a cancellation")),
        }
    }

    /// Asks the handlers of tasks that run in this process to stop at once.
    pub(crate) fn ask_to_stop(&self, tasks: &[TaskId]) {
        if let Some(run) = self.inner.run() {
            tasks.iter().for_each(|task| run.state.cancel(*task));
        }
    }

    /// Makes an ended task wait again under its old id, with its attempts counted from zero.
    ///
    /// # Errors
    /// [`is_not_found`](Error::is_not_found), and a [refusal](Error::refusal) if the task has not
    /// ended or its key is taken.
    pub async fn retry(&self, task: TaskId) -> Result<()> {
        self.done(Write::Retry { task }).await
    }

    /// Makes a scheduled task due now: a delayed task, or one that waits for its next attempt. A
    /// task that is already due is left as it is.
    ///
    /// # Errors
    /// [`is_not_found`](crate::Error::is_not_found),
    /// [`is_already_ended`](crate::Error::is_already_ended), and a [refusal](crate::Error::refusal)
    /// for a task that runs, or waits for others.
    pub async fn run_now(&self, task: TaskId) -> Result<()> {
        self.done(Write::RunNow { task }).await
    }

    /// Ends a task that does not run as a dead letter. It will not run, and is kept for inspection
    /// and possibly a [retry](Self::retry). Other systems call this archiving.
    ///
    /// # Errors
    /// [`is_not_found`](crate::Error::is_not_found),
    /// [`is_already_ended`](crate::Error::is_already_ended), and a [refusal](crate::Error::refusal)
    /// for a task that runs.
    pub async fn kill(&self, task: TaskId) -> Result<()> {
        self.done(Write::Kill { task }).await
    }

    /// Removes a task that does not run, live or ended, without a trace.
    ///
    /// # Errors
    /// [`is_not_found`](crate::Error::is_not_found), and a [refusal](crate::Error::refusal) for a
    /// task that runs.
    pub async fn delete(&self, task: TaskId) -> Result<()> {
        self.done(Write::Delete { task }).await
    }
}
