//! The single writer of a store: it commits all waiting calls in one transaction.
//!
//! While a transaction is under way, further calls wait in a channel. So the busier a process is,
//! the more calls share a transaction, and the number of transactions hardly grows.

use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};

use crate::api::error::{Error, Result};
use crate::api::outcome::Outcome;
use crate::api::store::Durability;
use crate::api::write::Write;
use crate::postgres::commit::flusher::CommittedBatch;
use crate::postgres::commit::outcome::{CommitOutcome, SyncMode};
use crate::postgres::commit::transaction::{apply, batch_of};
use crate::postgres::commit::writer_state::{CommitId, WriterState};
use crate::postgres::connect::connection::{OwnedConnection, connect};
use crate::postgres::connect::error::concerns_everyone;
use crate::postgres::connect::retry_budget::RetryBudget;
use crate::postgres::shared::Shared;
use crate::postgres::speculation::batch_builder::BatchBuilder;
use crate::postgres::speculation::plan::Plan;
use crate::postgres::speculation::row_cache::RowCache;
use crate::postgres::sql::SETTINGS;
use crate::postgres::working_set::applied::Applied;

/// The writes of one call, and the channel for its reply.
#[derive(Debug)]
pub(in crate::postgres) struct Call {
    pub(in crate::postgres) writes: Vec<Write>,
    pub(in crate::postgres) reply: oneshot::Sender<CallReply>,
}

/// The reply to a call.
#[derive(Debug)]
pub(in crate::postgres) enum CallReply {
    /// The call was applied or failed.
    Done(Result<Vec<Outcome>>),
    /// The server crashed before the call was on disk, and nothing of it happened. The writes come
    /// back to be applied again.
    Lost(Vec<Write>),
}

impl Call {
    /// Sends the outcomes or the error to the caller.
    pub(in crate::postgres) fn reply(self, result: Result<Vec<Outcome>>) {
        // A caller that was cancelled has dropped its receiver.
        let _ = self.reply.send(CallReply::Done(result));
    }

    /// Returns the writes to the caller, who applies them again.
    pub(in crate::postgres) fn give_back(self) {
        let _ = self.reply.send(CallReply::Lost(self.writes));
    }
}

/// Sends writes to the writer, again if the server crashed before they were on its disk.
pub(in crate::postgres) async fn apply_until_kept(
    shared: &Shared,
    calls: &mpsc::Sender<Call>,
    mut writes: Vec<Write>,
) -> Result<Vec<Outcome>> {
    let mut budget = RetryBudget::new(shared.options.retry_for);
    loop {
        let (reply, received) = oneshot::channel();
        calls.send(Call { writes, reply }).await.map_err(|_| Error::closed())?;
        match received.await.map_err(|_| Error::closed())? {
            CallReply::Done(result) => return result,
            CallReply::Lost(again) => writes = again,
        }
        if !budget.lasts() {
            return Err(lost());
        }
    }
}

/// The error for a call that the server lost in several crashes in a row.
#[cold]
fn lost() -> Error {
    Error::busy("the server crashed several times before the write was on its disk, so it did not happen; repeat it")
}

/// Commits batches until the store is dropped, at first over the connection that opened the store.
/// Batches that are not yet on disk go to `flusher`.
pub(in crate::postgres) async fn run(
    shared: Arc<Shared>,
    calls: mpsc::Receiver<Call>,
    flusher: mpsc::Sender<CommittedBatch>,
    client: OwnedConnection,
) {
    let mut writer =
        Writer { shared, builder: BatchBuilder::new(calls), flusher, client: Some(client), state: WriterState::new() };
    while let Some((batch, plan)) = writer.builder.take().await {
        writer.commit(batch, plan).await;
    }
}

/// The writer: one connection, and the state that its last transaction left.
struct Writer {
    shared: Arc<Shared>,
    builder: BatchBuilder,
    flusher: mpsc::Sender<CommittedBatch>,
    client: Option<OwnedConnection>,
    state: WriterState,
}

/// A committed batch. `is_durable` is true if it is on disk, or if the durability level does not
/// require that.
struct Done {
    applied: Applied,
    commit_id: CommitId,
    is_durable: bool,
}

impl Writer {
    /// Commits all calls in one transaction. If that fails, commits each call in its own, so that
    /// one bad call does not fail the others.
    async fn commit(&mut self, batch: Vec<Call>, plan: Option<Box<Plan>>) {
        let calls: Vec<&[Write]> = batch.iter().map(|call| call.writes.as_slice()).collect();
        match self.try_to_commit(&calls, plan).await {
            Ok(done) => self.hand_on(done, batch).await,
            Err(error) if batch.len() == 1 || concerns_everyone(&error) => {
                batch.into_iter().for_each(|call| call.reply(Err(error.clone())));
            }
            Err(_) => {
                for call in batch {
                    match self.try_to_commit(&[&call.writes], None).await {
                        Ok(done) => self.hand_on(done, vec![call]).await,
                        Err(error) => call.reply(Err(error)),
                    }
                }
            }
        }
    }

    /// Sends the outcomes to the callers if the batch is on disk. Otherwise passes it to the
    /// flusher.
    async fn hand_on(&mut self, done: Done, calls: Vec<Call>) {
        let Done { mut applied, commit_id, is_durable } = done;
        self.shared.committed(&applied);
        let outcomes = std::mem::take(&mut applied.outcomes);
        let committed = CommittedBatch { commit_id, calls, outcomes, notifications: applied.notifications };
        if is_durable {
            return committed.reply(&self.shared);
        }
        self.shared.unflushed(1);
        if let Err(unsent) = self.flusher.send(committed).await {
            unsent.0.fail(&self.shared, &Error::closed());
        }
    }

    /// Commits calls, and retries within the retry budget while the error is transient.
    async fn try_to_commit(&mut self, calls: &[&[Write]], mut plan: Option<Box<Plan>>) -> Result<Done> {
        let mut budget = RetryBudget::new(self.shared.options.retry_for);
        loop {
            let error = match self.once(calls, plan.take()).await {
                Ok(done) => return Ok(done),
                Err((error, false)) => return Err(error),
                Err((error, true)) => error,
            };
            tracing::debug!(%error, "a transaction is tried again");
            if !budget.wait().await {
                return Err(error);
            }
        }
    }

    /// Tries a commit once. On an error the flag is true if a retry may succeed.
    async fn once(&mut self, calls: &[&[Write]], plan: Option<Box<Plan>>) -> std::result::Result<Done, (Error, bool)> {
        let client = match self.client.take().filter(|client| !client.is_closed()) {
            Some(client) => client,
            None => {
                // The new connection may lead to another server, after a failover, whose
                // transaction numbers differ.
                self.state.row_cache = RowCache::default();
                connect_to_write(&self.shared).await.map_err(|error| {
                    let again = error.is_transient();
                    (error, again)
                })?
            }
        };
        let mut state = std::mem::replace(&mut self.state, WriterState::new());
        // The future is large, and the caller that opens a store would have it on its stack.
        let outcome = Box::pin(apply(&client, &self.shared, calls, &mut state, plan, &mut self.builder)).await;
        self.state = state;
        if !matches!(outcome, CommitOutcome::Committed { .. }) {
            self.builder.forget_plan();
        }
        match outcome {
            CommitOutcome::Committed { applied, commit_id, mode } => {
                self.client = Some(client);
                Ok(Done { applied, commit_id, is_durable: mode != SyncMode::AfterCommit })
            }
            CommitOutcome::Failed { error, again } => {
                // A retry may succeed on a new connection only: this one may have plans from before
                // a migration.
                self.client = Some(client).filter(|_| !again);
                Err((error, again))
            }
            CommitOutcome::Unknown { applied, commit_id, error } => match self.has_happened(commit_id).await {
                // The connection that committed is lost, so the flusher has to check that the
                // commit is on disk.
                Some(true) => {
                    Ok(Done { applied, commit_id, is_durable: self.shared.options.durability != Durability::Full })
                }
                Some(false) => Err((error, true)),
                None => {
                    self.shared.notify_unknown_change();
                    Err((unknown(error), false))
                }
            },
        }
    }

    /// Returns if a transaction with a lost reply has happened; `None` if no server could be
    /// reached within the retry budget.
    async fn has_happened(&mut self, commit_id: CommitId) -> Option<bool> {
        self.state.again();
        let mut budget = RetryBudget::new(self.shared.options.retry_for);
        loop {
            if let Ok(client) = connect_to_write(&self.shared).await
                && let Ok(batch) = after_all_before(&client, &self.shared, commit_id).await
            {
                self.client = Some(client);
                return Some(batch >= commit_id.number);
            }
            if !budget.wait().await {
                return None;
            }
        }
    }
}

/// The error for a call whose commit lost its connection, if no server could be asked about its
/// fate.
#[cold]
pub(in crate::postgres) fn unknown(error: Error) -> Error {
    error.about("it is not known if this write happened, because the server was lost during the commit and did not come back; check before repeating it")
}

/// Connects with the settings of a writer.
pub(super) async fn connect_to_write(shared: &Shared) -> Result<OwnedConnection> {
    connect(&shared.address).await?.keeping_plans(SETTINGS, &shared.plans).await
}

/// Returns the number of a writer's last batch, read under the store's lock.
///
/// Any transaction of that writer that was running when the connection broke has ended by then,
/// because it held the lock. The statement also advances `last_write`. A
/// [fast-path](crate::postgres::speculation::fast_path) statement that is still on its way compares
/// that number, and so it can no longer take effect.
async fn after_all_before(client: &OwnedConnection, shared: &Shared, commit_id: CommitId) -> Result<i64> {
    let begin = shared.sql.and_lock(client.begin());
    client.batch_execute(&begin).await.map_err(crate::postgres::connect::error::classified)?;
    let batch = batch_of(client, shared, commit_id).await?;
    let move_on = "SELECT setval('{s}.last_write', (SELECT last_value + 1 FROM {s}.last_write)); COMMIT";
    client.batch_execute(&shared.sql.text(move_on)).await.map_err(crate::postgres::connect::error::classified)?;
    Ok(batch)
}
