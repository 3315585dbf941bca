//! Attempts that another gateway has claimed, and that a worker brings along.

use bytes::Bytes;
use onward::{CompletionToken, Engine, Store, StoreReads as _, TaskId, TaskState};
use onward_protocol::TaskFence;
use onward_protocol::worker::{End, Outcome};

use crate::gateway::session::Fate;

/// Ends such an attempt. Only a result can be kept without the lease; every other end is stale, and
/// the task runs again when its lease has passed on.
pub(super) async fn end(engine: &Engine, end: &End, payloads: &[Bytes]) -> Fate {
    if end.outcome != Outcome::Ok || end.spawn.as_ref().is_some_and(|spawn| !spawn.is_empty()) {
        return Fate::Stale;
    }
    let TaskFence { task, fence } = end.attempt;
    let result = end.payload.and_then(|index| payloads.get(index)).cloned().unwrap_or_default();
    match engine.complete(CompletionToken { task: TaskId(task.0), claim: Some(fence.0) }, result).await {
        Ok(()) => Fate::Durable,
        Err(error) if error.refusal().is_some() || error.is_invalid() => Fate::Stale,
        // The worker sends it again after it has connected again.
        Err(_) => Fate::Unknown,
    }
}

/// Returns those of the attempts whose task does not run. If the store cannot be read, none is
/// returned: their ends meet their fate anyway.
pub(super) async fn lost(store: &dyn Store, attempts: Vec<TaskFence>) -> Vec<TaskFence> {
    let mut lost = Vec::new();
    for attempt in attempts {
        match store.task(TaskId(attempt.task.0)).await {
            Ok(Some(record)) if record.state == TaskState::Running => {}
            Ok(_) => lost.push(attempt),
            Err(_) => {}
        }
    }
    lost
}
