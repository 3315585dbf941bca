//! Finishes a task in the transaction in which its handler writes, so that the effect happens
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
/// Commit, then call [`committed`](Self::committed). After a rollback drop this value: the attempt
/// then ends as its handler returns.
#[must_use = "call `committed` after the commit, so that the engine knows that the task is finished"]
#[derive(Debug)]
pub struct Finishing<'c> {
    attempt: &'c Attempt,
    applied: AppliedInTransaction<'c>,
}

impl Finishing<'_> {
    /// Notifies the engine and the waiters of the task that the transaction has committed.
    ///
    /// If it is called although the transaction did not commit, this attempt keeps the task until
    /// the engine stops or its session ends. The task is then retried.
    pub fn committed(self) -> Finished {
        self.attempt.mark_finished();
        self.applied.committed();
        Finished(())
    }
}

/// A proof that a task is finished, which its handler returns. The engine does not finish it again.
#[must_use = "return it from the handler"]
#[derive(Debug)]
pub struct Finished(());

impl From<Finished> for Output {
    fn from(Finished(()): Finished) -> Self {
        Self::NONE
    }
}

impl Finished {
    /// Returns a proof for an end that the engine knows of.
    #[cfg(feature = "postgres")]
    pub(crate) fn confirmed() -> Self {
        Self(())
    }
}

/// Connections to the store's file for handlers' transactions, kept for the next transaction.
#[derive(Debug, Default)]
pub(crate) struct Connections(Mutex<Vec<Connection>>);

impl Connections {
    fn take(&self, store: &SqliteStore) -> onward_store::Result<Connection> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop();
        kept.map_or_else(|| store.connect(), Ok)
    }

    /// Keeps an idle connection. A connection with an open transaction is closed instead.
    fn keep(&self, connection: Connection) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() < bounds::IDLE_CONNECTIONS && connection.is_autocommit() {
            kept.push(connection);
        }
    }
}

/// Finishing in a transaction, for stores in a SQLite file and handlers that write to the same
/// file. Either the handler's writes and the end of its task are both committed, or neither is,
/// even if the process crashes: the effect happens exactly once.
///
/// The store rejects the end if the attempt has lost its lease, because another attempt may run by
/// then. The tasks that the attempt has [spawned](Self::spawn_task) and its progress are written
/// with it.
impl Context {
    /// Runs `work` in a transaction on the store's file, on a thread that may block. Completes the
    /// task in the same transaction, with the return value of `work` as its result. An error rolls
    /// everything back; returned by the handler, it ends the attempt as usual.
    ///
    /// ```
    /// # use onward::handlers::Finished;
    /// # use onward::{Context, Failure};
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
    /// Keep `work` short, and do not wait for the engine within it: every write to the store waits
    /// for the transaction. Onward's table names are taken; give yours a prefix. In the handler of
    /// a typed task let `work` return [`Output::json`](crate::Output::json) of the result, and
    /// return the result itself afterwards.
    ///
    /// If the future is dropped early, for example because the attempt's time is over, `work` still
    /// runs to its end. The lease decides whether it commits.
    ///
    /// # Errors
    /// The failure that `work` returns; a retryable failure if the file could not be written or the
    /// lease was lost; a permanent failure if the store is not in a SQLite file.
    pub async fn finish<R, W>(&self, work: W) -> Result<Finished, Failure>
    where
        R: Into<Output>,
        W: FnOnce(&Transaction<'_>) -> Result<R, Failure> + Send + 'static,
    {
        let context = self.clone();
        let finished = tokio::task::spawn_blocking(move || context.finish_here(work));
        finished.await.map_err(|failed| Failure::retryable(format!("the transaction did not complete: {failed}")))?
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

    /// Completes the task in the handler's own transaction on a connection to the store's file, as
    /// [`SqliteStore::complete_in`] does. Begin the transaction with `BEGIN IMMEDIATE`, commit it,
    /// then call [`committed`](Finishing::committed) and return its result. The call blocks, as
    /// SQLite does.
    ///
    /// # Errors
    /// A retryable failure if the lease was lost: roll back. The errors of
    /// [`SqliteStore::apply_in`] about the connection; a permanent failure if the store is not in a
    /// SQLite file.
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
        // The pieces stay unsaved, because the transaction may be rolled back. A store ignores a
        // piece that it has.
        let unsaved = self.attempt.output.take();
        unsaved.iter().for_each(|piece| self.attempt.output.put_back(piece.clone()));
        let appended = unsaved.into_iter().map(|piece| Write::AppendOutput { lease, piece });
        // The completion is last, because the writes before it need the lease.
        spawned
            .chain(reported)
            .chain(moved)
            .chain(appended)
            .chain([Write::Complete { lease, result: output.0.or_else(|| self.attempt.result.bytes()) }])
            .collect()
    }
}

/// Returns the engine's store if it is in a SQLite file.
fn sqlite(inner: &Inner) -> Result<&SqliteStore, Failure> {
    let store = inner.store.as_any().and_then(|store| store.downcast_ref::<SqliteStore>());
    store.ok_or_else(|| {
        Failure::permanent(
            "only a task of a store in a SQLite file can be finished in a transaction; open the engine on a file",
        )
    })
}
