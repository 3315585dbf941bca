//! Heartbeats, progress and checkpoints.

use serde::{Deserialize, Serialize};

use crate::bounds;
use crate::error::{Error, Result};
use crate::header::{at_most, index, text, within};
use crate::task_fence::TaskFence;

/// A heartbeat of a worker.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Beat {
    /// The number of the beat.
    pub n: u64,
    /// The tasks with a heartbeat of their own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tasks: Option<Vec<BeatTask>>,
}

/// The heartbeat of one attempt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BeatTask {
    /// The attempt.
    #[serde(flatten)]
    pub attempt: TaskFence,
    /// The progress.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress: Option<Progress>,
    /// The payload index of a checkpoint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<usize>,
}

/// The progress of an attempt.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Progress {
    /// The completed fraction, from 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fraction: Option<f32>,
    /// A text for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The bytes done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub done: Option<u64>,
    /// The bytes in all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
}

impl Beat {
    pub(crate) fn check(&self, payloads: usize) -> Result<()> {
        within("n", Some(self.n), 0, bounds::INTEGER)?;
        let tasks = self.tasks.as_deref().unwrap_or_default();
        at_most("tasks", tasks.len(), bounds::ENTRIES)?;
        tasks.iter().try_for_each(|task| {
            index("checkpoint", task.checkpoint, payloads)?;
            task.progress.as_ref().map_or(Ok(()), Progress::check)
        })
    }
}

impl Progress {
    pub(crate) fn check(&self) -> Result<()> {
        if let Some(fraction) = self.fraction.filter(|fraction| !(0.0..=1.0).contains(fraction)) {
            return Err(Error::field(format!("`fraction` is {fraction}; it must be from 0 to 1")));
        }
        text("message", self.message.as_deref(), 0, bounds::PROGRESS_BYTES)?;
        within("done", self.done, 0, bounds::INTEGER)?;
        within("total", self.total, 0, bounds::INTEGER)
    }
}
