//! Checkpoints: the state that an attempt keeps for the next one.

use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use onward_store::Write;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::context::Context;
use super::failure::Failure;
use crate::error::{Error, Result};
use crate::json::encode;

/// The checkpoint that a handler has kept in this attempt. If this process starts the next attempt
/// without a new claim, it takes the checkpoint from here instead of the store.
#[derive(Debug, Default)]
pub(crate) struct Checkpoint(Mutex<Option<Bytes>>);

impl Checkpoint {
    fn set(&self, checkpoint: Bytes) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(checkpoint);
    }

    pub(crate) fn get(&self) -> Option<Bytes> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Long work that continues where its last attempt was.
impl Context {
    /// Keeps a checkpoint of this attempt, as JSON, for the [next one](Self::last_checkpoint). It
    /// is durable when the call returns, even if the process crashes. A later checkpoint replaces
    /// an earlier one. It has the size limit of a payload, costs a commit, and is forgotten with
    /// the end of the task.
    ///
    /// It is kept in the same place as [`checkpoint`](Self::checkpoint_bytes): a task that also
    /// [waits for children](Failure::await_children) keeps the later of the two.
    ///
    /// # Errors
    /// [`is_invalid`](Error::is_invalid) if the checkpoint cannot be written as JSON or is too
    /// large; a [refusal](Error::refusal) if the lease is lost, and another attempt may run; the
    /// store's error if it could not keep the checkpoint.
    pub async fn checkpoint<T: Serialize + Sync>(&self, details: &T) -> Result<()> {
        let checkpoint = encode(details)
            .map_err(|error| Error::invalid(format!("a checkpoint cannot be written as JSON: {error}")))?;
        self.keep_checkpoint(checkpoint).await
    }

    /// Keeps a checkpoint as [`checkpoint`](Self::checkpoint) does, in any encoding. The next
    /// attempt finds it in [`checkpoint_bytes`](Self::checkpoint_bytes).
    ///
    /// # Errors
    /// As [`checkpoint`](Self::checkpoint).
    pub async fn keep_checkpoint(&self, checkpoint: Bytes) -> Result<()> {
        self.heartbeat();
        self.engine()
            .done(Write::SaveCheckpoint { lease: self.attempt.task.lease, checkpoint: checkpoint.clone() })
            .await?;
        self.attempt.checkpoint.set(checkpoint);
        // The commit may have taken long, which is not the handler's silence.
        self.heartbeat();
        Ok(())
    }

    /// Returns the last [`checkpoint`](Self::checkpoint) of an earlier attempt of this task, or
    /// `None` if there is none.
    ///
    /// # Errors
    /// A permanent failure if the checkpoint is not a `T`.
    pub fn last_checkpoint<T: DeserializeOwned>(&self) -> Result<Option<T>, Failure> {
        let read = |checkpoint: &Bytes| {
            serde_json::from_slice(checkpoint).map_err(|error| {
                Failure::permanent(format!(
                    "the last checkpoint does not match the type that the handler reads: {error}"
                ))
            })
        };
        self.checkpoint_bytes().map(read).transpose()
    }
}
