//! Finishing a task in the transaction of what its handler writes, so that the effect happens
//! exactly once.

use std::sync::{Mutex, PoisonError};

use onward_store::rusqlite::{Connection, Transaction, TransactionBehavior};
use onward_store::{AppliedInTransaction, SqliteStore, Write};

use super::attempt::Attempt;
use super::context::Context;
use super::failure::Failure;
use super::output::Output;
use crate::bounds;
use crate::engine::Inner;

/// The end of this attempt, written in a transaction that has not committed yet.
///
/// Commit, then call [`committed`](Self::committed). After a rollback drop it: the attempt then
/// ends as its handler answers.
#[must_use = "the engine learns from `committed` that the task is finished"]
#[derive(Debug)]
pub struct Finishing<'c> {
    attempt: &'c Attempt,
    applied: AppliedInTransaction<'c>,
}

impl Finishing<'_> {
    /// Tells the engine, and those who wait for the task, that the transaction has committed.
    ///
    /// If it is called although the transaction did not commit, the task stays this attempt's until
    /// the engine stops or its session ends, and is then tried again.
    pub fn committed(self) -> Finished {
        self.attempt.mark_finished();
        self.applied.committed();
        Finished(())
    }
}

/// Proof that a task is finished, for its handler to answer: the engine does not finish it again.
#[must_use = "the handler answers it"]
#[derive(Debug)]
pub struct Finished(());

impl From<Finished> for Output {
    fn from(Finished(()): Finished) -> Self {
        Self::NONE
    }
}

impl Finished {
    /// The engine knows of it.
    #[cfg(feature = "postgres")]
    pub(crate) fn confirmed() -> Self {
        Self(())
    }
}

/// Connections to the store's file for handlers' transactions, kept for the next one.
#[derive(Debug, Default)]
pub(crate) struct Connections(Mutex<Vec<Connection>>);

impl Connections {
    fn take(&self, store: &SqliteStore) -> onward_store::Result<Connection> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop();
        kept.map_or_else(|| store.connect(), Ok)
    }

    /// One on which something went wrong is closed instead.
    fn keep(&self, connection: Connection) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() < bounds::IDLE_CONNECTIONS && connection.is_autocommit() {
            kept.push(connection);
        }
    }
}

/// Finishing in a transaction, for stores in a SQLite file and handlers that write to the same
/// file. Either both what the handler wrote and the end of its task are committed, or neither,
/// whatever happens to the process: the effect happens exactly once.
///
/// The end is refused if the attempt has lost its lease, because another one may run by then. What
/// the attempt has [spawned](Self::spawn_task), and how far it said it was, is written with it.
impl Context {
    /// Runs `work` in a transaction on the store's file, on a thread that may block, and completes
    /// the task in the same transaction, with what `work` answers as its result. An error rolls
    /// everything back; answered by the handler, it ends the attempt as usual.
    ///
    /// ```
    /// # use onward::{Context, Failure, Finished};
    /// async fn pay(context: Context) -> Result<Finished, Failure> {
    ///     let amount: i64 = std::str::from_utf8(context.payload())?.parse()?;
    ///     context
    ///         .finish(move |transaction| {
    ///             transaction.execute("UPDATE shop_account SET balance = balance + ?", [amount])?;
    ///             Ok(format!("{amount} paid"))
    ///         })
    ///         .await
    /// }
    /// ```
    ///
    /// Keep `work` short, and wait for nothing of the engine within it: every write to the store
    /// waits for the transaction. Names of tables that Onward uses are taken; give yours a prefix.
    /// In the handler of a typed task let `work` answer [`Output::json`](crate::Output::json) of
    /// the result, and answer the result itself afterwards.
    ///
    /// If the future is dropped meanwhile, as when the attempt's time is over, `work` still goes on
    /// to its end; the lease decides whether it commits.
    ///
    /// # Errors
    /// What `work` answers; a failure that may pass if the file could not be written or the lease
    /// was lost; a permanent one if the store is not in a SQLite file.
    pub async fn finish<R, W>(&self, work: W) -> Result<Finished, Failure>
    where
        R: Into<Output>,
        W: FnOnce(&Transaction<'_>) -> Result<R, Failure> + Send + 'static,
    {
        let context = self.clone();
        let finished = tokio::task::spawn_blocking(move || context.finish_here(work));
        finished
            .await
            .map_err(|failed| Failure::retryable(format!("the transaction did not come to its end: {failed}")))?
    }

    fn finish_here<R: Into<Output>>(
        &self,
        work: impl FnOnce(&Transaction<'_>) -> Result<R, Failure>,
    ) -> Result<Finished, Failure> {
        let connections = &self.run.inner.connections;
        let mut connection = connections.take(sqlite(&self.run.inner)?)?;
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let output = work(&transaction)?;
        let finishing = self.finish_in(&transaction, output)?;
        transaction.commit()?;
        let finished = finishing.committed();
        connections.keep(connection);
        Ok(finished)
    }

    /// Completes the task in a transaction of the handler's own on a connection to the store's
    /// file, as [`SqliteStore::complete_in`] does. Begin it with `BEGIN IMMEDIATE`, commit it, then
    /// call [`committed`](Finishing::committed) and answer what that answers. It blocks, as SQLite
    /// does.
    ///
    /// # Errors
    /// A failure that may pass if the lease was lost: roll back. What [`SqliteStore::apply_in`]
    /// reports about the connection; a permanent failure if the store is not in a SQLite file.
    pub fn finish_in(&self, connection: &Connection, output: impl Into<Output>) -> Result<Finishing<'_>, Failure> {
        let applied = sqlite(&self.run.inner)?.apply_in(connection, self.finishing_writes(output.into()))?;
        Ok(Finishing { attempt: &self.attempt, applied })
    }

    pub(crate) fn finishing_writes(&self, output: Output) -> Vec<Write> {
        let lease = self.attempt.task.lease;
        let progress = &self.attempt.progress;
        let (fraction, message, bytes) = (progress.fraction(), progress.message(), progress.bytes());
        let has_progress = fraction.is_some() || message.is_some() || bytes.is_some();
        let reported = has_progress.then(|| Write::Report { lease, fraction, message, bytes });
        let io = self.attempt.io.now();
        let moved = (!io.is_none()).then(|| Write::RecordIo { lease, io });
        let spawned = self.attempt.spawned.all().into_iter().map(|new| Write::Submit(Box::new(new)));
        spawned
            .chain(reported)
            .chain(moved)
            .chain([Write::Complete { lease, result: output.0.or_else(|| self.attempt.result.bytes()) }])
            .collect()
    }
}

/// The engine's store, if it is one whose file handlers may write to.
fn sqlite(inner: &Inner) -> Result<&SqliteStore, Failure> {
    let store = inner.store.as_any().and_then(|store| store.downcast_ref::<SqliteStore>());
    store.ok_or_else(|| {
        Failure::permanent(
            "only a task of a store in a SQLite file can be finished in a transaction; open the engine on a file",
        )
    })
}
