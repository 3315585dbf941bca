//! Submitting tasks, waiting for them, and reading them.

use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, sleep};

use crate::bounds;
use crate::client::{Client, Pages};
use crate::error::{Error, Result};
use crate::http::{Request, encoded};
use crate::types::{Attempt, NewTask, Submitted, Task, TaskOutcome, Why};

#[derive(Serialize)]
struct Batch<'t> {
    tasks: &'t [NewTask],
}

#[derive(Deserialize)]
struct BatchSubmitted {
    tasks: Vec<Submitted>,
}

impl Client {
    /// Submits a task, which is durable when the call returns.
    ///
    /// # Errors
    /// Returns the errors of [`send`](Self::send).
    pub async fn submit(&self, task: &NewTask) -> Result<Submitted> {
        self.create("/v1/tasks".to_owned(), task, task.idempotency_key.as_deref(), None).await?.json()
    }

    /// Submits up to 10 000 tasks in one commit, all or none. Returns their outcomes in order.
    ///
    /// # Errors
    /// Returns the errors of [`send`](Self::send). It is invalid if a task has an idempotency key:
    /// the batch has one.
    pub async fn submit_many(&self, tasks: &[NewTask]) -> Result<Vec<Submitted>> {
        if tasks.iter().any(|task| task.idempotency_key.is_some()) {
            return Err(Error::invalid("a task of a batch has an idempotency key; submit it alone"));
        }
        let reply = self.create("/v1/tasks:batch".to_owned(), &Batch { tasks }, None, None).await?;
        Ok(reply.json::<BatchSubmitted>()?.tasks)
    }

    /// Submits a task and waits for its end, in one request if the task ends soon.
    ///
    /// # Errors
    /// Returns the errors of [`wait`](Self::wait).
    pub async fn submit_and_wait(&self, task: &NewTask, within: Option<Duration>) -> Result<TaskOutcome> {
        let deadline = Deadline::new(within);
        let wait = Some(deadline.left());
        let reply = self.create("/v1/tasks".to_owned(), task, task.idempotency_key.as_deref(), wait).await?;
        let record: Task = reply.json()?;
        if record.is_ended() { self.outcome(record).await } else { self.wait_until(&record.id, deadline).await }
    }

    /// Waits for the end of a task, run or orchestration, without polling. The end may be a
    /// failure.
    ///
    /// # Errors
    /// Returns the errors of [`send`](Self::send), and one that [is a
    /// timeout](Error::is_wait_timeout).
    pub async fn wait(&self, task: &str, within: Option<Duration>) -> Result<TaskOutcome> {
        self.wait_until(task, Deadline::new(within)).await
    }

    async fn wait_until(&self, task: &str, deadline: Deadline) -> Result<TaskOutcome> {
        let path = task_path(task);
        let mut pause = bounds::FIRST_PAUSE;
        loop {
            let (asked, wait) = (Instant::now(), deadline.left());
            let request = Request::get(path.clone());
            let request = if wait.is_zero() { request } else { request.wait(wait) };
            let record: Task = self.send(request).await?.json()?;
            if record.is_ended() {
                return self.outcome(record).await;
            }
            if let Some(within) = deadline.passed() {
                return Err(Error::wait_timeout(task, within));
            }
            // A server that stops, or one behind a proxy, may respond before the time.
            if asked.elapsed() < wait / 2 {
                sleep(pause.min(deadline.left())).await;
                pause = (pause * 2).min(bounds::LONGEST_PAUSE);
            }
        }
    }

    /// Returns the state of a task now, and its result if it is completed.
    ///
    /// # Errors
    /// Returns the errors of [`send`](Self::send).
    pub async fn result(&self, task: &str) -> Result<TaskOutcome> {
        self.outcome(self.task(task).await?).await
    }

    async fn outcome(&self, record: Task) -> Result<TaskOutcome> {
        let result = match record.state.as_str() {
            // The task has the result as JSON, in which long numbers lose digits. This is as it is.
            "completed" => {
                Some(self.send(Request::get(format!("{}/result", task_path(&record.id)))).await?.body().clone())
            }
            _ => None,
        };
        Ok(TaskOutcome { task: record.id, state: record.state, result, error: record.error })
    }

    /// Returns a task, without payload and result.
    ///
    /// # Errors
    /// Returns the errors of [`send`](Self::send).
    pub async fn task(&self, task: &str) -> Result<Task> {
        self.get(task_path(task)).await
    }

    /// Returns the payload of a task, as it is.
    ///
    /// # Errors
    /// Returns the errors of [`send`](Self::send).
    pub async fn payload(&self, task: &str) -> Result<Bytes> {
        Ok(self.send(Request::get(format!("{}/payload", task_path(task)))).await?.body().clone())
    }

    /// Returns the failed attempts of a task, the oldest first.
    #[must_use]
    pub fn attempts(&self, task: &str) -> Pages<Attempt> {
        self.pages(format!("{}/attempts", task_path(task)))
    }

    /// Returns why a task does not run.
    ///
    /// # Errors
    /// Returns the errors of [`send`](Self::send).
    pub async fn why(&self, task: &str) -> Result<Why> {
        self.get(format!("{}/why", task_path(task))).await
    }

    /// Lists tasks, the newest first. `query` is that of `GET /v1/tasks`, such as
    /// `kind=resize&state=dead`; empty for all.
    #[must_use]
    pub fn tasks(&self, query: &str) -> Pages<Task> {
        self.pages(with_query("/v1/tasks", query))
    }
}

/// Returns the path of a task.
pub(super) fn task_path(task: &str) -> String {
    format!("/v1/tasks/{}", encoded(task))
}

/// Returns a path with a query, if it is not empty.
pub(super) fn with_query(path: &str, query: &str) -> String {
    if query.is_empty() { path.to_owned() } else { format!("{path}?{query}") }
}

/// The time until which a call waits; `None` for ever.
#[derive(Debug, Clone, Copy)]
struct Deadline(Option<(Instant, Duration)>);

impl Deadline {
    fn new(within: Option<Duration>) -> Self {
        Self(within.map(|within| (Instant::now(), within)))
    }

    /// Returns the time that one request may wait.
    fn left(self) -> Duration {
        let left = self.0.map(|(began, within)| within.saturating_sub(began.elapsed()));
        left.unwrap_or(bounds::WAIT).min(bounds::WAIT)
    }

    /// Returns the whole time, if it is over.
    fn passed(self) -> Option<Duration> {
        self.0.filter(|(began, within)| began.elapsed() >= *within).map(|(_, within)| within)
    }
}
