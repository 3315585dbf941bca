//! Waiting for the disk: transactions commit without, so that the next need not wait for the last,
//! and are answered once a sync behind them is done.
//!
//! What is not yet on disk when the server crashes is gone, and with it all that came later: the
//! log of the server has an order. Nobody was told of it. Reads do not tell of it either: they wait
//! for the disk where it is behind what they saw.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::mpsc;
use tokio_postgres::types::{ToSql, Type};

use crate::api::error::{Error, Result};
use crate::api::notification::TaskNotification;
use crate::api::outcome::Outcome;
use crate::bounds;
use crate::postgres::commit::writer::{Call, unknown};
use crate::postgres::commit::writer_state::CommitId;
use crate::postgres::connect::connection::{OwnedConnection, connect};
use crate::postgres::connect::error::classified;
use crate::postgres::connect::retry_budget::RetryBudget;
use crate::postgres::shared::Shared;

/// How many transactions may wait for the disk; the writer waits behind so many.
pub(in crate::postgres) const UNFLUSHED: usize = 64;

/// A transaction that is committed, and whom to tell.
pub(in crate::postgres) struct CommittedBatch {
    pub(in crate::postgres) commit_id: CommitId,
    pub(in crate::postgres) calls: Vec<Call>,
    pub(in crate::postgres) outcomes: Vec<Vec<Outcome>>,
    pub(in crate::postgres) notifications: Vec<TaskNotification>,
}

impl CommittedBatch {
    /// Tells everybody: it is on disk.
    pub(in crate::postgres) fn answer(self, shared: &Shared) {
        shared.notify(self.notifications);
        for (call, outcomes) in self.calls.into_iter().zip(self.outcomes) {
            call.answer(Ok(outcomes));
        }
    }

    /// Has everybody do it again: the server crashed before it was on disk, and it is not there.
    fn give_back(self, shared: &Shared) {
        shared.anything_may_have_happened();
        self.calls.into_iter().for_each(Call::give_back);
    }

    /// Tells everybody that it may not be there. It may be all the same, and what it brought has
    /// not been told.
    pub(in crate::postgres) fn fail(self, shared: &Shared, error: &Error) {
        shared.anything_may_have_happened();
        self.calls.into_iter().for_each(|call| call.answer(Err(error.clone())));
    }
}

/// Syncs until the writer is gone.
pub(in crate::postgres) async fn run(shared: Arc<Shared>, mut committed: mpsc::Receiver<CommittedBatch>) {
    let mut client = None;
    while let Some(first) = committed.recv().await {
        let mut waiting = vec![first];
        while waiting.len() < bounds::COMMIT
            && let Ok(next) = committed.try_recv()
        {
            waiting.push(next);
        }
        let there = sync(&shared, &mut client, &waiting).await;
        shared.flushed(waiting.len());
        for one in waiting {
            match &there {
                Ok(there) if there.get(&one.commit_id.writer).is_some_and(|batch| *batch >= one.commit_id.number) => {
                    one.answer(&shared);
                }
                Ok(_) => one.give_back(&shared),
                Err(error) => one.fail(&shared, error),
            }
        }
    }
}

/// Has everything of before on disk, and answers which batch of each writer is the last there: none
/// is missing unless the server crashed.
async fn sync(
    shared: &Shared,
    client: &mut Option<OwnedConnection>,
    waiting: &[CommittedBatch],
) -> Result<BTreeMap<i64, i64>> {
    let mut writers: Vec<i64> = waiting.iter().map(|one| one.commit_id.writer).collect();
    writers.dedup();
    let mut patience = RetryBudget::new(shared.options.patience);
    loop {
        let error = match try_to_sync(shared, client, &writers).await {
            Ok(there) => return Ok(there),
            Err(error) => error,
        };
        *client = None;
        if !patience.wait().await {
            return Err(unknown(error));
        }
    }
}

async fn try_to_sync(
    shared: &Shared,
    client: &mut Option<OwnedConnection>,
    writers: &Vec<i64>,
) -> Result<BTreeMap<i64, i64>> {
    let link = match client {
        Some(link) => link,
        none => none.insert(connect(&shared.address).await?),
    };
    // The statement sees what was committed before it, and its own commit waits for the disk.
    let text = shared.sql.text(
        "WITH sync AS (SELECT pg_logical_emit_message(true, 'onward', '') AS at) \
         SELECT w.id, w.batch, (SELECT at FROM sync) IS NULL FROM {s}.writer w WHERE w.id = ANY($1)",
    );
    let parameters: [(&(dyn ToSql + Sync), Type); 1] = [(writers, Type::INT8_ARRAY)];
    let rows = link.query_typed(&text, &parameters).await.map_err(classified)?;
    rows.iter().map(|row| Ok((row.try_get(0).map_err(classified)?, row.try_get(1).map_err(classified)?))).collect()
}
