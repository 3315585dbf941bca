//! Applying one write, and waiting for the end of a task, on any store.

use onward_store::{Outcome, Refusal, Store, TaskId, TaskRecord, Write};

/// Applies one write and answers its outcome; a refusal becomes an error.
pub(crate) async fn apply_one(store: &dyn Store, write: Write) -> anyhow::Result<Outcome> {
    let outcomes = store.apply(vec![write]).await?;
    match outcomes.into_iter().next() {
        Some(Outcome::Refused(refusal)) => Err(refusal.into()),
        Some(outcome) => Ok(outcome),
        None => Err(unexpected("none")),
    }
}

/// A store answered what the seam does not allow.
pub(crate) fn unexpected(outcome: impl std::fmt::Debug) -> anyhow::Error {
    anyhow::anyhow!("the store answered what it should not ({outcome:?}); please report this as a fault of Onward")
}

/// Waits until a task has ended, whoever runs it, and answers all that is known of it.
///
/// Dropping the future stops the waiting and nothing else.
pub(crate) async fn wait_for_end(store: &dyn Store, task: TaskId) -> anyhow::Result<TaskRecord> {
    let mut changes = store.changes();
    loop {
        let record = store.task(task).await?.ok_or(Refusal::TaskNotFound(task))?;
        if record.state.is_ended() {
            return Ok(record);
        }
        changes.changed().await.ok_or_else(onward_store::Error::closed)?;
    }
}
