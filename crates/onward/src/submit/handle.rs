//! A handle that awaits the result of a typed task.

use std::fmt;
use std::marker::PhantomData;

use bytes::Bytes;
use onward_store::{Refusal, Submitted, TaskId, TaskRecord, TaskState};
use serde::de::DeserializeOwned;

use super::recent_ends::FeedPosition;
use super::typed::decode_output;
use super::wait::{EndNotice, Wait, Waiting};
use crate::engine::Engine;
use crate::error::Error;
use crate::orchestration::replay::store_guard;

/// A submitted task whose result has the type `O`.
pub struct Handle<O> {
    engine: Engine,
    submitted: Submitted,
    /// True if the engine remembers the end of the task for this handle.
    is_remembered: bool,
    output: PhantomData<fn() -> O>,
}

impl<O> Handle<O> {
    /// Returns a handle of a task that was submitted after `position`.
    pub(crate) fn new(engine: Engine, submitted: Submitted, position: Option<FeedPosition>) -> Self {
        // If an existing task has the key, it may have ended before `position`.
        let position =
            position.filter(|_| matches!(submitted, Submitted::Inserted { .. } | Submitted::Superseded { .. }));
        let is_remembered = position.is_some_and(|position| engine.inner.waiters.add_handle(submitted.id(), position));
        Self { engine, submitted, is_remembered, output: PhantomData }
    }

    /// Returns the id of the task that stands for the submit: the new task, or the one that has its
    /// key.
    #[must_use]
    pub fn id(&self) -> TaskId {
        self.submitted.id()
    }

    /// Returns the result of the submit.
    #[must_use]
    pub fn submitted(&self) -> Submitted {
        self.submitted
    }
}

impl<O: DeserializeOwned> Handle<O> {
    /// Waits until the task has ended, wherever it runs, and returns its result. Cancel-safe: the
    /// task continues without the wait.
    ///
    /// # Errors
    /// The end of the task if it did not complete; [`TaskError::Result`] if its result is not an
    /// `O`; [`TaskError::Engine`] if the store could not be read.
    pub async fn wait(&self) -> Result<O, TaskError> {
        store_guard::check().map_err(Error::from)?;
        let task = self.id();
        let mut is_remembered = self.is_remembered;
        loop {
            let notification = match self.begin(std::mem::take(&mut is_remembered)) {
                Wait::Over(notification) => notification,
                Wait::Begun(waiting) => waiting.notification().await,
                Wait::Unverified(waiting) => {
                    let record = self.engine.record(task).await?;
                    if record.state.is_ended() {
                        return ended(&record);
                    }
                    waiting.notification().await
                }
            };
            if let EndNotice::Completed(result) = notification {
                return decode(task, result.as_ref());
            }
        }
    }

    fn begin(&self, is_remembered: bool) -> Wait<'_> {
        let (inner, task) = (&self.engine.inner, self.submitted.id());
        if is_remembered { Waiting::with_handle(inner, task) } else { Wait::Unverified(Waiting::new(inner, task)) }
    }
}

impl<O> Drop for Handle<O> {
    fn drop(&mut self) {
        if self.is_remembered {
            self.engine.inner.waiters.remove_handle(self.submitted.id());
        }
    }
}

impl<O> fmt::Debug for Handle<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle").field("submitted", &self.submitted).finish_non_exhaustive()
    }
}

fn ended<O: DeserializeOwned>(record: &TaskRecord) -> Result<O, TaskError> {
    let task = record.id;
    let error = || record.errors.last().map_or_else(|| "no error was kept".to_owned(), |error| error.message.clone());
    match record.state {
        TaskState::Completed => decode(task, record.result.bytes()),
        TaskState::Failed => Err(TaskError::Failed { task, error: error() }),
        TaskState::Dead => Err(TaskError::Dead { task, error: error() }),
        TaskState::Cancelled => Err(TaskError::Cancelled { task }),
        TaskState::Expired => Err(TaskError::Expired { task }),
        state @ (TaskState::Blocked | TaskState::Scheduled | TaskState::Waiting | TaskState::Running) => {
            Err(TaskError::Engine(Refusal::NotEnded { task, state }.into()))
        }
    }
}

fn decode<O: DeserializeOwned>(task: TaskId, result: Option<&Bytes>) -> Result<O, TaskError> {
    decode_output(result).map_err(|error| TaskError::Result { task, error: error.to_string() })
}

/// The reason why there is no result.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum TaskError {
    /// The task failed permanently.
    Failed {
        /// The task.
        task: TaskId,
        /// Its last error.
        error: String,
    },
    /// The task became a dead letter.
    Dead {
        /// The task.
        task: TaskId,
        /// Its last error.
        error: String,
    },
    /// The task was cancelled.
    Cancelled {
        /// The task.
        task: TaskId,
    },
    /// The task did not start in time.
    Expired {
        /// The task.
        task: TaskId,
    },
    /// The task completed with a result of another type.
    Result {
        /// The task.
        task: TaskId,
        /// The error of reading the result.
        error: String,
    },
    /// The store could not be read, or no longer knows the task.
    Engine(Error),
}

impl From<Error> for TaskError {
    fn from(error: Error) -> Self {
        Self::Engine(error)
    }
}

impl fmt::Display for TaskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed { task, error } => write!(f, "task {task} failed: {error}"),
            Self::Dead { task, error } => {
                write!(f, "task {task} went to the dead letters after its last attempt: {error}")
            }
            Self::Cancelled { task } => write!(f, "task {task} was cancelled"),
            Self::Expired { task } => write!(f, "task {task} expired before it started"),
            Self::Result { task, error } => write!(f, "the result of task {task} is not of the expected type: {error}"),
            Self::Engine(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for TaskError {}
