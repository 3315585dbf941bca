//! The content of the store before the timed part.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, bail, ensure};
use bench_protocol::{Order, Row};
use onward::task::When;
use onward::{Engine, NewTask, Store};
use onward_store::{Claim, Claimed, OpenSession, Outcome, SessionId, Write};

/// The number of tasks in one commit while a store is filled.
const CHUNK: usize = 4096;

/// Makes the history and the delayed tasks of a row. The row itself makes the waiting tasks.
pub(crate) async fn fill(store: &Arc<dyn Store>, row: &Row) -> Result<()> {
    let engine = Engine::builder().store(store.clone()).open().await?;
    finish(&engine, row.backlog.finished, row.payload_bytes).await?;
    submit(&engine, row.backlog.delayed, row.payload_bytes, When::After(Duration::from_secs(3600))).await
}

/// Submits `count` tasks of the kind that the rows run.
pub(crate) async fn submit(engine: &Engine, count: usize, bytes: usize, when: When) -> Result<()> {
    // The number is beyond every ledger, so that tasks of a backlog do not count as those of the
    // row.
    let payload = Order::new(u64::MAX, 0, bytes)?.to_json()?.into();
    let task = NewTask { payload, when, ..NewTask::new(crate::round_trips::KIND)? };
    let mut left = count;
    while left > 0 {
        let chunk = left.min(CHUNK);
        engine.submit_all(vec![task.clone(); chunk]).await?;
        left -= chunk;
    }
    Ok(())
}

async fn finish(engine: &Engine, count: usize, bytes: usize) -> Result<()> {
    let mut left = count;
    while left > 0 {
        let chunk = left.min(CHUNK);
        submit(engine, chunk, bytes, When::Now).await?;
        let (session, claimed) = claim(engine.store(), chunk, Duration::from_secs(60)).await?;
        let completes = claimed.tasks.iter().map(|task| Write::Complete { lease: task.lease, result: None }).collect();
        let outcomes = engine.store().apply(vec![Write::All(completes), Write::CloseSession { session }]).await?;
        ensure!(matches!(outcomes.first(), Some(Outcome::All(_))), "the history could not be made: {outcomes:?}");
        left -= chunk;
    }
    Ok(())
}

/// Claims exactly `count` tasks in a session of its own.
pub(crate) async fn claim(store: &Arc<dyn Store>, count: usize, lease: Duration) -> Result<(SessionId, Claimed)> {
    let open = Write::OpenSession(OpenSession::new("backlog", lease));
    let Some(Outcome::SessionOpened(session)) = store.apply(vec![open]).await?.pop() else {
        bail!("no session was opened");
    };
    let mut all = Claimed::default();
    while all.tasks.len() < count {
        let limit = CHUNK.min(count - all.tasks.len());
        let claim = Claim::any(session, limit);
        let Some(Outcome::Claimed(claimed)) = store.apply(vec![Write::Claim(claim)]).await?.pop() else {
            bail!("nothing was claimed");
        };
        ensure!(!claimed.tasks.is_empty(), "only {} of {count} tasks could be claimed", all.tasks.len());
        all.tasks.extend(claimed.tasks);
    }
    Ok((session, all))
}
