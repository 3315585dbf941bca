//! How far an attempt has come, for the next one.

use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use onward_store::Write;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::context::Context;
use super::failure::Failure;
use crate::error::{Error, Result};
use crate::json::encode;

/// What a handler has kept in this attempt: a next one that this process starts by itself does not
/// read it from the store.
#[derive(Debug, Default)]
pub(crate) struct Checkpoint(Mutex<Option<Bytes>>);

impl Checkpoint {
    fn set(&self, memo: Bytes) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(memo);
    }

    pub(crate) fn get(&self) -> Option<Bytes> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Long work that goes on where its last attempt was.
impl Context {
    /// Keeps how far this attempt has come, as JSON, for the [next one](Self::last_checkpoint):
    /// durable when answered, whatever becomes of this process. A later one replaces an earlier
    /// one. It is as large as a payload may be at the most, costs a commit, and is forgotten with
    /// the end of the task.
    ///
    /// It is kept where [`memo`](Self::memo) is: a task that also [waits for
    /// children](Failure::await_children) leaves its last one, or its memo, whichever was later.
    ///
    /// # Errors
    /// [`is_invalid`](Error::is_invalid) if it cannot be written as JSON or is too large; a
    /// [refusal](Error::refusal) if the lease is lost, and another attempt may run; what the store
    /// reports if it could not keep it.
    pub async fn checkpoint<T: Serialize + Sync>(&self, details: &T) -> Result<()> {
        self.heartbeat();
        let memo = encode(details)
            .map_err(|error| Error::invalid(format!("a checkpoint cannot be written as JSON: {error}")))?;
        self.engine().done(Write::KeepMemo { lease: self.attempt.task.lease, memo: memo.clone() }).await?;
        self.attempt.checkpoint.set(memo);
        self.heartbeat();
        Ok(())
    }

    /// What an earlier attempt of this task kept last by [`checkpoint`](Self::checkpoint); `None`
    /// in one that is the first, or after none did.
    ///
    /// # Errors
    /// A permanent failure if what was kept is no `T`.
    pub fn last_checkpoint<T: DeserializeOwned>(&self) -> Result<Option<T>, Failure> {
        let read = |memo: &Bytes| {
            serde_json::from_slice(memo).map_err(|error| {
                Failure::permanent(format!("the last checkpoint is not what the handler expects: {error}"))
            })
        };
        self.memo().map(read).transpose()
    }
}
