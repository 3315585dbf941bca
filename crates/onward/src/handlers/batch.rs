//! Batches: tasks that are collected and run as one.

use std::future::Future;
use std::sync::Arc;

use onward_store::{TaskFilter, TaskRecord};

use super::context::Context;
use super::failure::Failure;
use super::handler::{Handler, HandlerOptions};
use crate::error::Result;
use crate::submit::{Task, typed};

/// Batch items.
impl Context {
    /// Returns the number of items of this [batch](crate::task::Aggregate), or 0 for any other
    /// task. Items that were cancelled or removed before the batch ran are counted.
    #[must_use]
    pub fn item_count(&self) -> u32 {
        self.attempt.task.items
    }

    /// Returns the items of this batch, with their payloads, the oldest first, or none for any
    /// other task. A batch has at most [`bounds::BATCH_ITEMS`](onward_store::bounds::BATCH_ITEMS)
    /// items, with at most 16 MiB of payloads unless it has only one item.
    ///
    /// The batch's own [`payload`](Self::payload) is empty. Items that were cancelled or had
    /// expired before this attempt began are not included. An item that is cancelled during the
    /// attempt is included, and left out of a further attempt.
    ///
    /// # Errors
    /// The store's error if it cannot be read.
    pub async fn items(&self) -> Result<Vec<TaskRecord>> {
        if self.item_count() == 0 {
            return Ok(Vec::new());
        }
        let filter = TaskFilter { batch: Some(self.id()), with_payload: true, ..TaskFilter::default() };
        self.all_tasks(filter).await
    }

    /// Returns the payloads of [`items`](Self::items) as values. For a task that is not a batch
    /// it returns the task's own payload as the only one.
    ///
    /// # Errors
    /// The store's error if it cannot be read; a permanent failure that names the item whose
    /// payload does not match the type.
    pub async fn items_as<T: Task>(&self) -> std::result::Result<Vec<T>, Failure> {
        if self.item_count() == 0 {
            return Ok(vec![typed::decode_payload(self)?]);
        }
        let items = self.items().await?;
        items.iter().map(decode).collect()
    }
}

fn decode<T: Task>(item: &TaskRecord) -> std::result::Result<T, Failure> {
    serde_json::from_slice(item.payload.as_deref().unwrap_or_default()).map_err(|error| {
        let (item, kind) = (item.id, T::KIND);
        Failure::permanent(format!("the payload of batch item {item} does not match the kind `{kind}`: {error}"))
    })
}

/// Returns the untyped form of a typed handler of batches.
pub(crate) fn handler<T, F, Fut>(options: HandlerOptions, function: F) -> Handler
where
    T: Task,
    F: Fn(Vec<T>, Context) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = std::result::Result<T::Output, Failure>> + Send + 'static,
{
    let function = Arc::new(function);
    Handler::new(options, move |context: Context| {
        let function = Arc::clone(&function);
        async move {
            let items = context.items_as().await?;
            let output = function(items, context).await?;
            typed::encode_output(&output)
        }
    })
}
