//! What the store says of itself.

use onward_store::{Durability, QueueRecord, SessionRecord, SqliteStore, Store};

use super::finding::Finding;
use crate::commands::queue::scope_text;
use crate::output::{moment, optional};

/// Reads the whole file and checks that it hangs together.
pub(super) async fn integrity(store: &SqliteStore) -> anyhow::Result<Finding> {
    let report = store.check().await?;
    if report.integrity.is_empty() {
        return Ok(Finding::ok("integrity", format!("the file hangs together; schema {}", report.schema)));
    }
    let found = format!("{} problems, the first: {}", report.integrity.len(), report.integrity[0]);
    let remedy =
        "stop all that use the store, keep a copy of it, and restore the last backup: onward store restore FILE";
    Ok(Finding::bad("integrity", found, remedy))
}

/// Durability, sessions and leases, dead letters, pauses.
pub(super) async fn check(store: &dyn Store) -> anyhow::Result<Vec<Finding>> {
    let (queues, sessions) = (store.queues().await?, store.sessions().await?);
    let mut findings = vec![durability(store), self::sessions(&sessions, &queues), dead_letters(&queues)];
    findings.extend(pauses(store).await?);
    Ok(findings)
}

fn durability(store: &dyn Store) -> Finding {
    let class = store.info().durability;
    match class {
        Durability::Full => Finding::ok("durability", "full: what is acknowledged survives power loss"),
        Durability::Normal | Durability::Memory => Finding::warn(
            "durability",
            format!("{class}: what is acknowledged survives a killed process, not power loss"),
            "leave out --durability normal where that matters",
        ),
    }
}

fn sessions(sessions: &[SessionRecord], queues: &[QueueRecord]) -> Finding {
    let running: u64 = queues.iter().map(|queue| queue.running).sum();
    let held: u64 = sessions.iter().map(|session| session.running).sum();
    let found = format!("{} sessions hold {held} of {running} running tasks", sessions.len());
    if held == running {
        return Finding::ok("sessions", found);
    }
    let remedy = "the rest belongs to workers that are gone; the next worker that runs takes it over, so start one";
    Finding::warn("sessions", found, remedy)
}

fn dead_letters(queues: &[QueueRecord]) -> Finding {
    let dead: u64 = queues.iter().map(|queue| queue.ended.dead).sum();
    if dead == 0 {
        return Finding::ok("dead", "no dead letters");
    }
    Finding::warn(
        "dead",
        format!("{dead} dead letters"),
        "look at them with onward task list --state dead; onward task retry TASK",
    )
}

async fn pauses(store: &dyn Store) -> anyhow::Result<Vec<Finding>> {
    let pauses = store.pauses().await?;
    let finding = |pause: &onward_store::PauseRecord| {
        let until = optional(pause.until, moment);
        let found = format!("{} is paused until: {until}", scope_text(&pause.scope));
        Finding::warn("paused", found, "nothing of it starts; end it with onward queue resume")
    };
    Ok(pauses.iter().map(finding).collect())
}
