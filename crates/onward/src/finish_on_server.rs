//! Finishing a task in a transaction on the PostgreSQL server of its store.

use onward_store::tokio_postgres::GenericClient;
use onward_store::{AppliedOnServer, PostgresStore};

use crate::attempt::Attempt;
use crate::context::Context;
use crate::engine::Inner;
use crate::failure::Failure;
use crate::finish::Finished;
use crate::output::Output;

/// The end of this attempt, written in a transaction on the server that has not committed yet.
///
/// Commit, then call [`committed`](Self::committed). After a rollback drop it: the attempt then ends as its handler answers.
#[must_use = "the engine learns from `committed` that the task is finished"]
#[derive(Debug)]
pub struct FinishingOnServer<'c> {
    attempt: &'c Attempt,
    applied: AppliedOnServer<'c>,
}

impl FinishingOnServer<'_> {
    /// Tells the engine, and those who wait for the task, that the transaction has committed.
    ///
    /// If it is called although the transaction did not commit, the task stays this attempt's until the engine stops or its session
    /// ends, and is then tried again.
    pub fn committed(self) -> Finished {
        self.attempt.mark_finished();
        self.applied.committed();
        Finished::told()
    }
}

/// Finishing in a transaction, for stores on PostgreSQL and handlers that write to the same database. Either both what the handler wrote and the end of its
/// task are committed, or neither, whatever happens to the process or to the server: the effect happens exactly once.
impl Context {
    /// Completes the task in a transaction of the handler's own on the store's database, as [`PostgresStore::complete_in`] does: last in the
    /// transaction, which is then committed at once, for all writes to the store wait for it. What the attempt has [spawned](Self::spawn_task), and how far it said it
    /// was, is written with it.
    ///
    /// ```no_run
    /// # use onward::{Context, Failure, Finished};
    /// use onward_store::tokio_postgres::{NoTls, connect};
    ///
    /// async fn pay(context: Context) -> Result<Finished, Failure> {
    ///     let (mut client, connection) = connect("postgres://shop@db.example/shop", NoTls).await?;
    ///     tokio::spawn(connection);
    ///     let transaction = client.transaction().await?;
    ///     transaction.execute("UPDATE account SET cents = cents + 100 WHERE name = 'ada'", &[]).await?;
    ///     let finishing = context.finish_on(&transaction, "paid").await?;
    ///     transaction.commit().await?;
    ///     Ok(finishing.committed())
    /// }
    /// ```
    ///
    /// # Errors
    /// A failure that may pass if the lease was lost: roll back, which dropping the transaction does. What [`PostgresStore::apply_in`] reports about the
    /// transaction; a permanent failure if the store is not on PostgreSQL.
    pub async fn finish_on(
        &self,
        transaction: &impl GenericClient,
        output: impl Into<Output>,
    ) -> Result<FinishingOnServer<'_>, Failure> {
        let writes = self.finishing_writes(output.into());
        let applied = postgres(&self.run.inner)?.apply_in(transaction, writes).await?;
        Ok(FinishingOnServer { attempt: &self.attempt, applied })
    }
}

/// The engine's store, if it is one whose database handlers may write to.
fn postgres(inner: &Inner) -> Result<&PostgresStore, Failure> {
    let store = inner.store.as_any().and_then(|store| store.downcast_ref::<PostgresStore>());
    store.ok_or_else(|| {
        Failure::permanent(
            "only a task of a store on PostgreSQL can be finished in a transaction there; open the engine on that database",
        )
    })
}
