//! Waiting for the disk: transactions commit without a sync, so that the next one need not wait for
//! the previous one. Callers get their outcomes once a later sync is done.
//!
//! The server's log is ordered: a crash that loses one commit loses every later one, too. No caller
//! has seen such an outcome. Reads do not show it either: they wait until the commits that they saw
//! are on disk.

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

/// The most transactions that may wait for the disk. The writer waits if there are more.
pub(in crate::postgres) const UNFLUSHED: usize = 64;

/// A committed transaction, and the callers that wait for it.
pub(in crate::postgres) struct CommittedBatch {
    pub(in crate::postgres) commit_id: CommitId,
    pub(in crate::postgres) calls: Vec<Call>,
    pub(in crate::postgres) outcomes: Vec<Vec<Outcome>>,
    pub(in crate::postgres) notifications: Vec<TaskNotification>,
}

impl CommittedBatch {
    /// Sends each caller its outcomes: the transaction is on disk.
    pub(in crate::postgres) fn reply(self, shared: &Shared) {
        shared.notify(self.notifications);
        for (call, outcomes) in self.calls.into_iter().zip(self.outcomes) {
            call.reply(Ok(outcomes));
        }
    }

    /// Returns the writes to their callers to be applied again: the server crashed before the
    /// transaction was on disk, and has lost it.
    fn give_back(self, shared: &Shared) {
        shared.notify_unknown_change();
        self.calls.into_iter().for_each(Call::give_back);
    }

    /// Returns an error to each caller: the transaction's fate is unknown. It may be on disk, so
    /// waiting readers of this process must look again.
    pub(in crate::postgres) fn fail(self, shared: &Shared, error: &Error) {
        shared.notify_unknown_change();
        self.calls.into_iter().for_each(|call| call.reply(Err(error.clone())));
    }
}

/// Syncs committed batches until the writer is dropped. One sync serves all batches that wait by
/// then.
pub(in crate::postgres) async fn run(shared: Arc<Shared>, mut committed: mpsc::Receiver<CommittedBatch>) {
    let mut client = None;
    while let Some(first) = committed.recv().await {
        let mut waiting = vec![first];
        while waiting.len() < bounds::COMMIT
            && let Ok(next) = committed.try_recv()
        {
            waiting.push(next);
        }
        // One marker per writer is enough: batch numbers rise, and the log keeps their order.
        let there = sync(&shared, &mut client, &waiting).await;
        shared.flushed(waiting.len());
        for one in waiting {
            match &there {
                Ok(there) if there.get(&one.commit_id.writer).is_some_and(|batch| *batch >= one.commit_id.number) => {
                    one.reply(&shared);
                }
                Ok(_) => one.give_back(&shared),
                Err(error) => one.fail(&shared, error),
            }
        }
    }
}

/// Waits until everything committed before is on disk, and returns the last batch of each writer
/// that the server has. A batch is missing only if the server crashed.
async fn sync(
    shared: &Shared,
    client: &mut Option<OwnedConnection>,
    waiting: &[CommittedBatch],
) -> Result<BTreeMap<i64, i64>> {
    let mut writers: Vec<i64> = waiting.iter().map(|one| one.commit_id.writer).collect();
    writers.dedup();
    let mut budget = RetryBudget::new(shared.options.retry_for);
    loop {
        let error = match try_to_sync(shared, client, &writers).await {
            Ok(there) => return Ok(there),
            Err(error) => error,
        };
        *client = None;
        if !budget.wait().await {
            return Err(unknown(error));
        }
    }
}

/// Syncs once over the flusher's own connection, and connects if it has none.
async fn try_to_sync(
    shared: &Shared,
    client: &mut Option<OwnedConnection>,
    writers: &Vec<i64>,
) -> Result<BTreeMap<i64, i64>> {
    let link = match client {
        Some(link) => link,
        none => none.insert(connect(&shared.address).await?),
    };
    // The statement sees what was committed before it began, and its own commit waits for the disk.
    let text = shared.sql.text(
        "WITH sync AS (SELECT pg_logical_emit_message(true, 'onward', '') AS at) \
         SELECT w.id, w.batch, (SELECT at FROM sync) IS NULL FROM {s}.writer w WHERE w.id = ANY($1)",
    );
    let parameters: [(&(dyn ToSql + Sync), Type); 1] = [(writers, Type::INT8_ARRAY)];
    let rows = link.query_typed(&text, &parameters).await.map_err(classified)?;
    rows.iter().map(|row| Ok((row.try_get(0).map_err(classified)?, row.try_get(1).map_err(classified)?))).collect()
}
