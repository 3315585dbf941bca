//! Tasks and policies of the protocol as those of the store.

use std::time::Duration;

use bytes::Bytes;
use onward::task::{OnDuplicate, Ttl, TtlFrom, UniqueKey, When};
use onward::{Backoff, Error, Name, NewTask, Priority, RetryPolicy};
use onward_protocol::{self as protocol, worker};

/// Returns a task as the store takes it.
///
/// # Errors
/// Returns the store's error for an invalid name, and for a reserved kind: its tasks run scripts,
/// or are signed with the secrets of webhooks.
pub(super) fn new_task(new: &worker::NewTask, payloads: &[Bytes]) -> Result<NewTask, Error> {
    let name = |name: &Option<String>| name.as_deref().map(Name::new).transpose();
    let mut task = NewTask::new(&new.kind)?;
    task.kind.check_own("kind")?;
    if let Some(queue) = name(&new.queue)? {
        task.queue = queue;
    }
    task.payload = new.payload.and_then(|index| payloads.get(index)).cloned().unwrap_or_default();
    task.priority = new.priority.map_or(task.priority, Priority);
    task.unique = new.key.clone().map(|key| unique_key(new, key));
    if let Some(delay) = new.delay_ms.filter(|delay| *delay > 0) {
        task.when = When::After(Duration::from_millis(delay));
    }
    let ttl = |milliseconds| Ttl { duration: Duration::from_millis(milliseconds), from: TtlFrom::Submission };
    task.ttl = new.ttl_ms.map(ttl);
    task.timeout = new.timeout_ms.map(Duration::from_millis);
    task.heartbeat_timeout = new.heartbeat_ms.map(Duration::from_millis);
    task.retry = new.retry.as_ref().map(retry_policy);
    task.group = name(&new.group)?;
    task.affinity = name(&new.affinity)?;
    for (key, value) in new.tags.iter().flatten() {
        task.tags.set(key, value);
    }
    Ok(task)
}

fn unique_key(new: &worker::NewTask, key: String) -> UniqueKey {
    let on_duplicate = match new.on_duplicate.unwrap_or_default() {
        worker::OnDuplicate::Skip => OnDuplicate::Skip,
        worker::OnDuplicate::Supersede => OnDuplicate::Supersede,
        worker::OnDuplicate::Reject => OnDuplicate::Reject,
        worker::OnDuplicate::Requeue => OnDuplicate::Requeue,
    };
    UniqueKey { key, on_duplicate, keep_for: Duration::from_millis(new.keep_key_ms.unwrap_or(0)) }
}

/// Returns a retry policy as the engine takes it.
pub(super) fn retry_policy(retry: &protocol::RetryPolicy) -> RetryPolicy {
    let initial = Duration::from_millis(retry.initial_ms());
    let maximum = Duration::from_millis(retry.maximum_ms());
    let backoff = match retry.backoff.unwrap_or_default() {
        protocol::Backoff::Constant => Backoff::Constant { delay: initial },
        protocol::Backoff::Linear => {
            Backoff::Linear { initial, increment: Duration::from_millis(retry.increment_ms()), maximum }
        }
        protocol::Backoff::Exponential => Backoff::Exponential { initial, factor: retry.factor(), maximum },
        protocol::Backoff::Jitter => Backoff::ExponentialJitter { initial, factor: retry.factor(), maximum },
    };
    RetryPolicy { attempts: retry.attempts(), backoff }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Shows: W9
    #[test]
    fn a_worker_cannot_submit_a_reserved_kind() {
        for kind in ["onward.script", "onward.webhook", "onward.each"] {
            let new = worker::NewTask { kind: kind.to_owned(), ..worker::NewTask::default() };
            assert!(new_task(&new, &[]).unwrap_err().is_invalid(), "{kind}");
        }
    }
}
