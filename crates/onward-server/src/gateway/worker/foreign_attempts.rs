//! Attempts that another gateway has claimed, and that a worker brings along.
//!
//! A worker proves that it held them by the name of its earlier session, which only its gateway and
//! it know. The store has a digest of the name in the name of the engine's session.

use bytes::Bytes;
use onward::store::SessionId;
use onward::task::CompletionToken;
use onward::{Engine, Store, StoreReads as _, TaskId, TaskRecord, TaskState};
use onward_protocol::TaskFence;
use onward_protocol::worker::{End, Outcome};
use sha2::{Digest as _, Sha256};

use super::outcome;
use crate::gateway::session::EndOutcome;

/// The number of bytes of the digest of a session's name.
const DIGEST_BYTES: usize = 8;

/// Returns the end of the name of a session's engine in the store.
pub(super) fn suffix(session: &str) -> String {
    let digest = Sha256::digest(session.as_bytes());
    let digits: String = digest.iter().take(DIGEST_BYTES).map(|byte| format!("{byte:02x}")).collect();
    format!(" #{digits}")
}

/// Ends an attempt of another gateway. Only a result can be kept without the lease. Every other end
/// is stale, and the task runs again when its lease has passed. An end that was committed before is
/// durable.
pub(super) async fn end(engine: &Engine, session: &str, end: &End, payloads: &[Bytes]) -> EndOutcome {
    match try_end(engine, session, end, payloads).await {
        Ok(outcome) => outcome,
        // The worker sends the end again after it has reconnected.
        Err(_) => EndOutcome::Unknown,
    }
}

async fn try_end(engine: &Engine, session: &str, end: &End, payloads: &[Bytes]) -> Result<EndOutcome, onward::Error> {
    let TaskFence { task, fence } = end.attempt;
    let result = end.payload.and_then(|index| payloads.get(index)).cloned().unwrap_or_default();
    let Some(record) = engine.store().task(TaskId(task.0)).await? else { return Ok(EndOutcome::Stale) };
    if was_committed(&record, end, &result) {
        return Ok(EndOutcome::Durable);
    }
    let has_children = end.spawn.as_ref().is_some_and(|spawn| !spawn.is_empty());
    let holders = holders(&**engine.store(), session).await?;
    if end.outcome != Outcome::Ok || has_children || !is_held(&record, &holders) {
        return Ok(EndOutcome::Stale);
    }
    let token = CompletionToken { task: TaskId(task.0), claim: Some(fence.0) };
    match engine.complete(token, result.clone()).await {
        Ok(()) => Ok(EndOutcome::Durable),
        Err(error) if error.refusal().is_some() || error.is_invalid() => {
            // The gateway that has died may have written the end in the meantime.
            let record = engine.store().task(TaskId(task.0)).await?;
            let is_durable = record.is_some_and(|record| was_committed(&record, end, &result));
            Ok(if is_durable { EndOutcome::Durable } else { EndOutcome::Stale })
        }
        Err(error) => Err(error),
    }
}

/// Returns true if the store has this end already: its acknowledgement was lost with the gateway.
fn was_committed(record: &TaskRecord, end: &End, result: &[u8]) -> bool {
    match end.outcome {
        Outcome::Ok => {
            let kept = record.result.bytes().map_or(&[][..], |bytes| bytes);
            record.state == TaskState::Completed && kept == result
        }
        Outcome::Fail => {
            let text = outcome::failure_text(end);
            record.errors.iter().any(|error| error.message == text)
        }
        _ => false,
    }
}

/// Returns the sessions of the store that belonged to a worker's session.
async fn holders(store: &dyn Store, session: &str) -> Result<Vec<SessionId>, onward::Error> {
    let suffix = suffix(session);
    let sessions = store.sessions().await?.into_iter();
    Ok(sessions.filter(|record| record.name.ends_with(&suffix)).map(|record| record.id).collect())
}

fn is_held(record: &TaskRecord, holders: &[SessionId]) -> bool {
    record.state == TaskState::Running && record.session.is_some_and(|session| holders.contains(&session))
}

/// Returns the attempts that the session no longer holds. If the store cannot be read, it returns
/// none: the store then decides about their ends.
pub(super) async fn lost(store: &dyn Store, session: &str, attempts: Vec<TaskFence>) -> Vec<TaskFence> {
    let Ok(holders) = holders(store, session).await else { return Vec::new() };
    let mut lost = Vec::new();
    for attempt in &attempts {
        // If a worker lists two attempts of a task, it holds at most the later one.
        let is_old = attempts.iter().any(|other| other.task == attempt.task && other.fence > attempt.fence);
        match store.task(TaskId(attempt.task.0)).await {
            Ok(Some(record)) if is_held(&record, &holders) && !is_old => {}
            Ok(_) => lost.push(*attempt),
            Err(_) => {}
        }
    }
    lost
}
