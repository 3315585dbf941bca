//! The ends of attempts.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::beat::Progress;
use super::submit::NewTask;
use crate::bounds;
use crate::error::{Code, Error, Result};
use crate::header::{at_most, entries, index, name, text, within};
use crate::task_fence::TaskFence;

/// Ends of attempts, each committed by itself.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Ends {
    /// The ends.
    pub ends: Vec<End>,
}

/// The way in which an attempt ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The task is completed.
    Ok,
    /// The attempt failed.
    Fail,
    /// The task is released, and the attempt does not count.
    Release,
    /// The task waits for external completion.
    Later,
    /// The task waits for its children.
    Children,
    /// The task continues in another queue.
    Move,
    /// The handler stopped as it was asked to.
    Cancelled,
    /// The turn of an orchestration has run. The payload is a
    /// [`TurnReply`](crate::turn::TurnReply).
    Turn,
}

/// The reason of a release.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReleaseReason {
    /// The worker has no handler of the kind.
    UnknownKind,
    /// The worker stops.
    Draining,
    /// The worker does not have the code of an orchestration whose new events it got.
    History,
    /// Any other reason that is no fault.
    #[default]
    GivenUp,
}

/// The effect of a child that does not complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnFailure {
    /// The parent sees it when it continues.
    #[default]
    Ignore,
    /// The parent fails.
    Fail,
}

/// The end of one attempt. Which fields have a meaning depends on the outcome.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct End {
    /// The attempt.
    #[serde(flatten)]
    pub attempt: TaskFence,
    /// The way in which it ended.
    pub outcome: Outcome,
    /// The payload index of the result, or of the decisions of a turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload: Option<usize>,
    /// The class of the error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
    /// The text of the error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Data of the error, for programs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
    /// False if a retry cannot help; default: true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry: Option<bool>,
    /// The time until the next attempt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    /// False if the attempt does not count; default: true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counts: Option<bool>,
    /// The reason of a release.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<ReleaseReason>,
    /// The time limit of the external completion.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub within_ms: Option<u64>,
    /// The payload index of the checkpoint for the resumed attempt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<usize>,
    /// The effect of a child that does not complete.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_failure: Option<OnFailure>,
    /// The queue in which the task continues.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
    /// The last progress.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress: Option<Progress>,
    /// The children that are submitted with this end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spawn: Option<Vec<NewTask>>,
}

impl Ends {
    pub(crate) fn check(&self, payloads: usize) -> Result<()> {
        entries("ends", self.ends.len())?;
        self.ends.iter().try_for_each(|end| end.check(payloads))
    }
}

impl End {
    /// Returns the end of an attempt without further fields.
    #[must_use]
    pub fn new(attempt: TaskFence, outcome: Outcome) -> Self {
        Self {
            attempt,
            outcome,
            payload: None,
            class: None,
            message: None,
            details: None,
            retry: None,
            retry_after_ms: None,
            counts: None,
            why: None,
            within_ms: None,
            checkpoint: None,
            on_failure: None,
            queue: None,
            progress: None,
            spawn: None,
        }
    }

    fn check(&self, payloads: usize) -> Result<()> {
        index("payload", self.payload, payloads)?;
        index("checkpoint", self.checkpoint, payloads)?;
        text("class", self.class.as_deref(), 0, bounds::NAME_BYTES)?;
        text("message", self.message.as_deref(), 0, bounds::FAILURE_BYTES)?;
        let details = self.details.as_ref().map_or(0, |details| details.to_string().len());
        if details > bounds::DETAILS_BYTES {
            let most = bounds::DETAILS_BYTES;
            return Err(Error::new(
                Code::BadField,
                format!("`details` has {details} bytes as JSON; it may have {most}"),
            ));
        }
        within("retry_after_ms", self.retry_after_ms, 0, bounds::INTEGER)?;
        within("within_ms", self.within_ms, 1, bounds::INTEGER)?;
        name("queue", self.queue.as_deref())?;
        self.check_outcome()?;
        self.progress.as_ref().map_or(Ok(()), Progress::check)?;
        let spawn = self.spawn.as_deref().unwrap_or_default();
        at_most("spawn", spawn.len(), bounds::ENTRIES)?;
        spawn.iter().try_for_each(|task| task.check(payloads))
    }

    /// Checks the fields that an outcome requires.
    fn check_outcome(&self) -> Result<()> {
        match self.outcome {
            Outcome::Move if self.queue.is_none() => Err(Error::field("`queue` is missing; `move` names the queue")),
            Outcome::Fail if self.counts == Some(false) && self.retry_after_ms.is_none() => {
                Err(Error::field("`retry_after_ms` is missing; a failure that does not count sets the time"))
            }
            Outcome::Turn if self.payload.is_none() => {
                Err(Error::field("`payload` is missing; `turn` has the decisions there"))
            }
            _ => Ok(()),
        }
    }
}
