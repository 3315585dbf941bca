//! Finishes a task in a transaction on the PostgreSQL server of its store.

use onward_store::tokio_postgres::GenericClient;
use onward_store::{AppliedOnServer, CompletionStatement, PostgresStore, Write};

use super::attempt::Attempt;
use super::context::Context;
use super::failure::Failure;
use super::finish::Finished;
use super::output::Output;
use crate::engine::Inner;

/// The end of this attempt, written in a transaction on the server that has not committed yet.
///
/// Commit, then call [`committed`](Self::committed). After a rollback drop this value: the attempt
/// then ends as its handler returns.
#[must_use = "call `committed` after the commit, so that the engine knows that the task is finished"]
#[derive(Debug)]
pub struct FinishingOnServer<'c> {
    attempt: &'c Attempt,
    applied: AppliedOnServer<'c>,
}

impl FinishingOnServer<'_> {
    /// Notifies the engine and the waiters of the task that the transaction has committed.
    ///
    /// If it is called although the transaction did not commit, this attempt keeps the task until
    /// the engine stops or its session ends. The task is then retried.
    pub fn committed(self) -> Finished {
        self.attempt.mark_finished();
        self.applied.committed();
        Finished::confirmed()
    }
}

/// A statement that finishes this attempt within a transaction of any driver.
///
/// Run the statement, commit, then call [`committed`](Self::committed). After a rollback drop this
/// value: the attempt then ends as its handler returns.
#[must_use = "call `committed` after the commit, so that the engine knows that the task is finished"]
#[derive(Debug)]
pub struct FinishingByStatement<'c> {
    attempt: &'c Attempt,
    store: &'c PostgresStore,
    statement: CompletionStatement,
}

impl FinishingByStatement<'_> {
    /// Returns the statement and its four values.
    #[must_use]
    pub fn statement(&self) -> &CompletionStatement {
        &self.statement
    }

    /// Notifies the engine that the transaction has committed.
    ///
    /// If it is called although the transaction did not commit, this attempt keeps the task until
    /// the engine stops or its session ends. The task is then retried.
    pub fn committed(self) -> Finished {
        self.attempt.mark_finished();
        self.store.look_for_completions();
        Finished::confirmed()
    }
}

/// Finishing in a transaction, for stores on PostgreSQL and handlers that write to the same
/// database. Either the handler's writes and the end of its task are both committed, or neither is,
/// even if the process or the server crashes: the effect happens exactly once.
impl Context {
    /// Completes the task in the handler's own transaction on the store's database, as
    /// [`PostgresStore::complete_in`] does. Call it last in the transaction and commit at once,
    /// because all writes to the store wait for the transaction. The tasks that the attempt has
    /// [spawned](Self::spawn_task) and its progress are written with it.
    ///
    /// ```no_run
    /// # use onward::handlers::Finished;
    /// # use onward::{Context, Failure};
    /// use onward_store::tokio_postgres::{NoTls, connect};
    ///
    /// async fn pay(context: Context) -> Result<Finished, Failure> {
    ///     let (mut client, connection) = connect("postgres://shop@db.example/shop", NoTls).await?;
    ///     tokio::spawn(connection);
    ///     let transaction = client.transaction().await?;
    ///     transaction
    ///         .execute("UPDATE account SET cents = cents + 100 WHERE name = 'ada'", &[])
    ///         .await?;
    ///     let finishing = context.finish_on(&transaction, "paid").await?;
    ///     transaction.commit().await?;
    ///     Ok(finishing.committed())
    /// }
    /// ```
    ///
    /// # Errors
    /// A retryable failure if the lease was lost: roll back, which dropping the transaction does.
    /// The errors of [`PostgresStore::apply_in`] about the transaction; a permanent failure if the
    /// store is not on PostgreSQL.
    pub async fn finish_on(
        &self,
        transaction: &impl GenericClient,
        output: impl Into<Output>,
    ) -> Result<FinishingOnServer<'_>, Failure> {
        let writes = self.finishing_writes(output.into());
        let applied = postgres(&self.run.inner)?.apply_in(transaction, writes).await?;
        Ok(FinishingOnServer { attempt: &self.attempt, applied })
    }

    /// Returns the statement that completes the task in the handler's own transaction on the
    /// store's database, for any other driver, such as sqlx.
    /// [`PostgresStore::completion_statement`] documents the statement and the right that its role
    /// needs. Run it last in the transaction, and commit at once. The progress of the attempt is
    /// written before it, in a separate commit.
    ///
    /// ```no_run
    /// use onward::handlers::Finished;
    /// use onward::{Context, Failure};
    /// use onward_store::tokio_postgres::{Client, types::ToSql};
    ///
    /// async fn pay(context: Context, client: &mut Client) -> Result<Finished, Failure> {
    ///     let transaction = client.transaction().await?;
    ///     transaction
    ///         .execute("UPDATE account SET cents = cents + 100 WHERE name = 'ada'", &[])
    ///         .await?;
    ///     let finishing = context.finish_by_statement("paid").await?;
    ///     let statement = finishing.statement();
    ///     let values: [&(dyn ToSql + Sync); 4] =
    ///         [&statement.task(), &statement.session(), &statement.claim(), &statement.result()];
    ///     transaction.execute(statement.text(), &values).await?;
    ///     transaction.commit().await?;
    ///     Ok(finishing.committed())
    /// }
    /// ```
    ///
    /// # Errors
    /// A permanent failure if the store is not on PostgreSQL, or if the attempt has
    /// [spawned](Self::spawn_task) tasks: these would be committed apart from its end; submit them
    /// by `onward_submit` in the transaction instead. A retryable failure if the store cannot be
    /// written to.
    pub async fn finish_by_statement(&self, output: impl Into<Output>) -> Result<FinishingByStatement<'_>, Failure> {
        let store = postgres(&self.run.inner)?;
        let mut writes = self.finishing_writes(output.into());
        if writes.iter().any(|write| matches!(write, Write::Submit(_))) {
            return Err(Failure::permanent(
                "the attempt has spawned tasks, which would be committed apart from its end; submit them with `onward_submit` in its transaction",
            ));
        }
        let Some(Write::Complete { lease, result }) = writes.pop() else {
            return Err(Failure::permanent(
                "an attempt that does not complete its task cannot be finished by a statement; return its output",
            ));
        };
        if !writes.is_empty() {
            self.run.inner.store.apply(writes).await?;
        }
        Ok(FinishingByStatement { attempt: &self.attempt, store, statement: store.completion_statement(lease, result) })
    }
}

/// Returns the engine's store if it is on PostgreSQL.
fn postgres(inner: &Inner) -> Result<&PostgresStore, Failure> {
    let store = inner.store.as_any().and_then(|store| store.downcast_ref::<PostgresStore>());
    store.ok_or_else(|| {
        Failure::permanent(
            "only a task of a store on PostgreSQL can be finished in a transaction there; open the engine on that database",
        )
    })
}
