//! The one task of a store that writes: it takes every call that waits into one transaction.

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

/// A caller's writes, and where the answer goes.
#[derive(Debug)]
pub(in crate::postgres) struct Call {
    pub(in crate::postgres) writes: Vec<Write>,
    pub(in crate::postgres) answer: oneshot::Sender<CallReply>,
}

/// What a caller hears.
#[derive(Debug)]
pub(in crate::postgres) enum CallReply {
    Done(Result<Vec<Outcome>>),
    /// The server crashed before it was on disk: nothing of it happened, and here it is, to be done
    /// again.
    Lost(Vec<Write>),
}

impl Call {
    pub(in crate::postgres) fn answer(self, result: Result<Vec<Outcome>>) {
        // A caller that has gone does not want it.
        let _ = self.answer.send(CallReply::Done(result));
    }

    pub(in crate::postgres) fn give_back(self) {
        let _ = self.answer.send(CallReply::Lost(self.writes));
    }
}

/// Has the writer apply writes, again where the server crashed before they were on its disk.
pub(in crate::postgres) async fn apply_until_kept(
    shared: &Shared,
    calls: &mpsc::Sender<Call>,
    mut writes: Vec<Write>,
) -> Result<Vec<Outcome>> {
    let mut patience = RetryBudget::new(shared.options.patience);
    loop {
        let (answer, answered) = oneshot::channel();
        calls.send(Call { writes, answer }).await.map_err(|_| Error::closed())?;
        match answered.await.map_err(|_| Error::closed())? {
            CallReply::Done(result) => return result,
            CallReply::Lost(again) => writes = again,
        }
        if !patience.lasts() {
            return Err(lost());
        }
    }
}

#[cold]
fn lost() -> Error {
    Error::busy(
        "the server crashed again and again before this was on its disk, so that nothing of it happened; do it again",
    )
}

/// Writes until the store is dropped, at first over the connection on which it was opened. What is
/// not yet on disk goes to `flusher`.
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

struct Writer {
    shared: Arc<Shared>,
    builder: BatchBuilder,
    flusher: mpsc::Sender<CommittedBatch>,
    client: Option<OwnedConnection>,
    state: WriterState,
}

/// What was committed, and whether it is on disk, as far as the class asks for that.
struct Done {
    applied: Applied,
    commit_id: CommitId,
    is_durable: bool,
}

impl Writer {
    /// All in one transaction; if that cannot be, each call in one of its own.
    async fn commit(&mut self, batch: Vec<Call>, plan: Option<Box<Plan>>) {
        let calls: Vec<&[Write]> = batch.iter().map(|call| call.writes.as_slice()).collect();
        match self.try_to_commit(&calls, plan).await {
            Ok(done) => self.hand_on(done, batch).await,
            Err(error) if batch.len() == 1 || concerns_everyone(&error) => {
                batch.into_iter().for_each(|call| call.answer(Err(error.clone())));
            }
            Err(_) => {
                for call in batch {
                    match self.try_to_commit(&[&call.writes], None).await {
                        Ok(done) => self.hand_on(done, vec![call]).await,
                        Err(error) => call.answer(Err(error)),
                    }
                }
            }
        }
    }

    /// Answers what is on disk; the rest is answered when it is.
    async fn hand_on(&mut self, done: Done, calls: Vec<Call>) {
        let Done { mut applied, commit_id, is_durable } = done;
        self.shared.committed(&applied);
        let outcomes = std::mem::take(&mut applied.outcomes);
        let committed = CommittedBatch { commit_id, calls, outcomes, notifications: applied.notifications };
        if is_durable {
            return committed.answer(&self.shared);
        }
        self.shared.unflushed(1);
        if let Err(unsent) = self.flusher.send(committed).await {
            unsent.0.fail(&self.shared, &Error::closed());
        }
    }

    async fn try_to_commit(&mut self, calls: &[&[Write]], mut plan: Option<Box<Plan>>) -> Result<Done> {
        let mut patience = RetryBudget::new(self.shared.options.patience);
        loop {
            let error = match self.once(calls, plan.take()).await {
                Ok(done) => return Ok(done),
                Err((error, false)) => return Err(error),
                Err((error, true)) => error,
            };
            tracing::debug!(%error, "a transaction is tried again");
            if !patience.wait().await {
                return Err(error);
            }
        }
    }

    /// One try; with an error, whether to try again.
    async fn once(&mut self, calls: &[&[Write]], plan: Option<Box<Plan>>) -> std::result::Result<Done, (Error, bool)> {
        let client = match self.client.take().filter(|client| !client.is_closed()) {
            Some(client) => client,
            None => {
                // It may be another server, whose transactions have other numbers.
                self.state.row_cache = RowCache::default();
                connect_to_write(&self.shared).await.map_err(|error| {
                    let again = error.is_transient();
                    (error, again)
                })?
            }
        };
        let mut state = std::mem::replace(&mut self.state, WriterState::new());
        // It is large, and whoever opens a store has it on the stack.
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
                // What may go well another time may do so because of another connection: one
                // without plans of before a migration.
                self.client = Some(client).filter(|_| !again);
                Err((error, again))
            }
            CommitOutcome::Unknown { applied, commit_id, error } => match self.has_happened(commit_id).await {
                // By whom it was committed is gone, so whether it is on disk is looked after.
                Some(true) => {
                    Ok(Done { applied, commit_id, is_durable: self.shared.options.durability != Durability::Full })
                }
                Some(false) => Err((error, true)),
                None => {
                    self.shared.anything_may_have_happened();
                    Err((unknown(error), false))
                }
            },
        }
    }

    /// Whether a transaction whose commit was not answered happened; `None` if nobody can be asked.
    async fn has_happened(&mut self, commit_id: CommitId) -> Option<bool> {
        self.state.again();
        let mut patience = RetryBudget::new(self.shared.options.patience);
        loop {
            if let Ok(client) = connect_to_write(&self.shared).await
                && let Ok(batch) = after_all_before(&client, &self.shared, commit_id).await
            {
                self.client = Some(client);
                return Some(batch >= commit_id.number);
            }
            if !patience.wait().await {
                return None;
            }
        }
    }
}

/// For one that was lost in a commit, when nobody could be asked about it.
#[cold]
pub(in crate::postgres) fn unknown(error: Error) -> Error {
    error.about("whether this happened is not known, for the server was lost while it committed and did not come back; look before doing it again")
}

/// A connection for the writer.
pub(super) async fn connect_to_write(shared: &Shared) -> Result<OwnedConnection> {
    connect(&shared.address).await?.keeping_plans(SETTINGS, &shared.plans).await
}

/// Which batch of a writer was the last, asked under the lock: whatever transaction of it was under
/// way is over then. One that has not begun, because it is a single statement that is still on its
/// way, never will: the number has moved on that it looks for.
async fn after_all_before(client: &OwnedConnection, shared: &Shared, commit_id: CommitId) -> Result<i64> {
    let begin = shared.sql.and_lock(client.begin());
    client.batch_execute(&begin).await.map_err(crate::postgres::connect::error::classified)?;
    let batch = batch_of(client, shared, commit_id).await?;
    let move_on = "SELECT setval('{s}.last_write', (SELECT last_value + 1 FROM {s}.last_write)); COMMIT";
    client.batch_execute(&shared.sql.text(move_on)).await.map_err(crate::postgres::connect::error::classified)?;
    Ok(batch)
}
