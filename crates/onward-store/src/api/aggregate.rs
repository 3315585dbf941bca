//! Aggregation: tasks that are collected into batches.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::api::error::{Error, Result};
use crate::api::name::Name;
use crate::api::task::{NewTask, TtlFrom, When};
use crate::api::timestamp::Timestamp;
use crate::bounds;

/// The terms under which a task is collected with others into a batch.
///
/// Tasks of one queue, kind and group are collected together; so are those of one queue and kind
/// without a group. A **batch** is a task of that queue, kind and group
/// with an empty payload. The collected tasks are its **items**.
///
/// A pending batch is ready for workers as soon as one of these conditions holds:
///
/// * it has `size` items;
/// * `delay` has passed since its first item arrived;
/// * `grace` has passed since its newest item arrived;
/// * the payloads of its items have [`bounds::BATCH_BYTES`] bytes.
///
/// If items have different terms, the size and the grace of the newest item and the shortest delay
/// apply.
///
/// An item is [`Blocked`](crate::TaskState::Blocked) until its batch has ended, and ends with it.
/// It is completed (with the result of the batch), failed or dead like the batch, and otherwise
/// cancelled. Each item has its own priority, key, tags and parent. The batch has the priority of
/// its most urgent item, and the timeouts and the retry policy of its oldest one.
///
/// An item cannot have a due time, dependencies, an affinity key, a deadline, or a time to live
/// from its first attempt.
///
/// ```
/// use std::time::Duration;
/// use onward_store::{Aggregate, NewTask};
///
/// let mut mail = NewTask::new("digest")?;
/// let (delay, grace) = (Duration::from_secs(600), Duration::from_secs(30));
/// mail.aggregate = Some(Aggregate { size: 100, delay, grace });
/// # Ok::<(), onward_store::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Aggregate {
    /// The number of items that makes the batch ready: 1 to [`bounds::BATCH_ITEMS`].
    pub size: u32,
    /// The longest time since the first item: more than zero, at most [`bounds::BATCH_DELAY`].
    pub delay: Duration,
    /// The longest time since the newest item: more than zero, at most `delay`.
    pub grace: Duration,
}

impl Aggregate {
    /// Checks a task that is to be collected under these terms.
    pub(crate) fn check(&self, task: &NewTask) -> Result<()> {
        match self.wrong().or_else(|| wrong_with(task)) {
            None => Ok(()),
            Some((what, remedy)) => Err(Error::invalid(format!(
                "a task of kind `{}` is to be collected in a batch and has {what}; {remedy}",
                task.kind
            ))),
        }
    }

    /// Returns the value that is out of its range, and the remedy; `None` if all are in range.
    fn wrong(&self) -> Option<(String, &'static str)> {
        let Self { size, delay, grace } = *self;
        if size == 0 || size > bounds::BATCH_ITEMS {
            return Some((format!("a size of {size}"), "a batch has 1 to 1000 items"));
        }
        if delay.is_zero() || delay > bounds::BATCH_DELAY {
            return Some((format!("a delay of {delay:?}"), "give it more than nothing and at most 30 days"));
        }
        if grace.is_zero() || grace > delay {
            return Some((format!("a grace of {grace:?}"), "give it more than nothing and at most the delay"));
        }
        None
    }
}

/// A pending batch: the tasks of one queue, kind and group that are being collected. See
/// [`Aggregate`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingBatch {
    /// The queue of the items.
    pub queue: Name,
    /// The kind of the items.
    pub kind: Name,
    /// The group of the items; `None` for items without one.
    pub group: Option<Name>,
    /// The number of items.
    pub items: u32,
    /// The number of items that makes the batch ready, as its newest item states.
    pub size: u32,
    /// The size of the payloads of all items, in bytes.
    pub payload_bytes: u64,
    /// The time at which the first item arrived.
    pub began_at: Timestamp,
    /// The time at which the batch is ready if no more items arrive.
    pub ready_at: Timestamp,
}

/// The pending batches that a listing returns, ordered by the time at which they are ready.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PendingBatchSelection {
    /// The queue of the batches; `None`, the default, for all queues.
    pub queue: Option<Name>,
    /// The largest number of batches, clamped to 1 to [`bounds::PAGE`]. Default: 50.
    pub limit: usize,
}

impl Default for PendingBatchSelection {
    fn default() -> Self {
        Self { queue: None, limit: 50 }
    }
}

/// Returns an option of the task that a batch item cannot have, and the remedy.
fn wrong_with(task: &NewTask) -> Option<(String, &'static str)> {
    let is_now = matches!(task.when, When::Now | When::After(Duration::ZERO));
    let wrong = |what: &str, remedy| Some((what.to_owned(), remedy));
    if !is_now {
        return wrong("a time at which it is due", "it is collected at once; submit it when it is time");
    }
    if !task.depends_on.is_empty() {
        return wrong("dependencies", "it is collected at once; have one of those tasks submit it");
    }
    if task.affinity.is_some() {
        return wrong("an affinity", "a batch goes to any worker; leave one of the two out");
    }
    if task.deadline.is_some() {
        return wrong("a deadline", "a batch has none; give it a timeout or a time to live");
    }
    if task.ttl.is_some_and(|ttl| ttl.from == TtlFrom::FirstAttempt) {
        return wrong("a time to live from its first attempt", "it has none of its own; count from the submission");
    }
    None
}
