//! Ends a task in the caller's own transaction, so that the task's effect and its end are atomic.

use bytes::Bytes;
use rusqlite::Connection;

use crate::api::error::{Error, Result};
use crate::api::outcome::Outcome;
use crate::api::store::Durability;
use crate::api::task::Lease;
use crate::api::write::{AfterFailure, Write};
use crate::sqlite::commit::transaction::Transaction;
use crate::sqlite::store::caller_transaction::{CallerTransactions, Written, in_savepoint};
use crate::sqlite::store::sqlite_store::SqliteStore;

/// The number of prepared statements that a connection of [`SqliteStore::connect`] caches.
const STATEMENTS: usize = 64;

/// Writes in a transaction of the caller, which take effect when that transaction commits.
///
/// Commit, then call [`committed`](Self::committed), which notifies the waiting callers. After a
/// rollback drop this value; it does nothing then.
#[must_use = "callers that wait for the task are not notified until `committed` is called after the commit"]
#[derive(Debug)]
pub struct AppliedInTransaction<'s> {
    callers: &'s CallerTransactions,
    outcomes: Vec<Outcome>,
    written: Written,
}

impl AppliedInTransaction<'_> {
    /// Returns the result of each write, in their order; none is a refusal.
    #[must_use]
    pub fn outcomes(&self) -> &[Outcome] {
        &self.outcomes
    }

    /// Notifies callers that wait for a task and wakes workers, in this process and in other
    /// processes. Call it when the transaction has committed. Returns the same as
    /// [`outcomes`](Self::outcomes).
    ///
    /// A missing or early call loses nothing, nor does a process that dies before it. Each process
    /// that has the store open detects the change by itself, about a second later. The call never
    /// waits for a transaction.
    pub fn committed(mut self) -> Vec<Outcome> {
        self.callers.notify(&self.written);
        std::mem::take(&mut self.outcomes)
    }
}

impl Drop for AppliedInTransaction<'_> {
    /// Runs at the drop and not earlier: it makes the store write to the file, which would wait for
    /// the caller's transaction.
    fn drop(&mut self) {
        self.callers.note();
    }
}

/// Ends of attempts in transactions of the caller. The rows that a handler writes to its own tables
/// in the store's file become durable together with the end of its task, or neither does. So the
/// effect happens exactly once. The connection must meet the conditions of
/// [`submit_in`](SqliteStore::submit_in).
impl SqliteStore {
    /// Completes a task in the caller's own transaction, with all effects of its end. The task has
    /// ended when the caller commits.
    ///
    /// The lease is the fence. If it no longer holds, because the attempt lost it and another may
    /// run, the call is rejected, and the caller must roll back.
    ///
    /// ```
    /// use onward_store::rusqlite::TransactionBehavior;
    /// use onward_store::{Claim, NewTask, OpenSession, Outcome, SqliteStore, Store, Write};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("shop.db");
    /// # let store = SqliteStore::open(&path).await?;
    /// # let open = OpenSession::new("worker", std::time::Duration::from_secs(10));
    /// # let submit = Write::Submit(Box::new(NewTask::new("pay")?));
    /// # let outcome = store.apply(vec![submit, Write::OpenSession(open)]).await?.remove(1);
    /// # let Outcome::SessionOpened(session) = outcome else { panic!() };
    /// # let outcome = store.apply(vec![Write::Claim(Claim::any(session, 1))]).await?.remove(0);
    /// # let Outcome::Claimed(claimed) = outcome else { panic!() };
    /// # let lease = claimed.tasks[0].lease;
    /// let mut connection = store.connect()?;
    /// connection.execute(
    ///     "CREATE TABLE IF NOT EXISTS shop_payment (amount INTEGER NOT NULL)",
    ///     [],
    /// )?;
    ///
    /// let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    /// transaction.execute("INSERT INTO shop_payment VALUES (?)", [100])?;
    /// let finished = store.complete_in(&transaction, lease, None)?;
    /// transaction.commit()?;
    /// finished.committed();
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`apply_in`](Self::apply_in).
    pub fn complete_in(
        &self,
        connection: &Connection,
        lease: Lease,
        result: Option<Bytes>,
    ) -> Result<AppliedInTransaction<'_>> {
        self.apply_in(connection, vec![Write::Complete { lease, result }])
    }

    /// Ends an attempt with an error in the caller's own transaction.
    /// [`outcomes`](AppliedInTransaction::outcomes) then has the new state of the task. `hold` is
    /// treated as false: a rollback would void the next lease, so no worker may continue with it.
    ///
    /// # Errors
    /// As [`apply_in`](Self::apply_in).
    pub fn fail_in(
        &self,
        connection: &Connection,
        lease: Lease,
        error: impl Into<String>,
        next: AfterFailure,
    ) -> Result<AppliedInTransaction<'_>> {
        let next = match next {
            AfterFailure::Retry { after, uses_attempt, .. } => AfterFailure::Retry { after, uses_attempt, hold: false },
            next => next,
        };
        self.apply_in(connection, vec![Write::Fail { lease, error: error.into(), next }])
    }

    /// Applies writes in the caller's own transaction, all or none. Each write sees the effects of
    /// the previous ones.
    ///
    /// # Errors
    /// The transaction is as it was, unless the disk is full or faulty (see
    /// [`submit_in`](Self::submit_in)). If the lease no longer holds, the caller must roll back
    /// anyway, because another attempt does the same work by now.
    ///
    /// [`refusal`](Error::refusal) has the rejected write and the reason; with several writes it is
    /// a [`Refusal::InAll`](crate::Refusal::InAll). [`is_invalid`](Error::is_invalid) for a
    /// [`Write::OpenSession`] or a [`Write::Claim`], whose outcomes are of use only after the
    /// commit. Otherwise as [`submit_in`](Self::submit_in).
    pub fn apply_in(&self, connection: &Connection, writes: Vec<Write>) -> Result<AppliedInTransaction<'_>> {
        check(&writes)?;
        let callers = self.callers_of(connection)?;
        let work = |transaction: &mut Transaction<'_>| apply(transaction, writes);
        let (outcomes, written) = in_savepoint(connection, || callers.work(connection, work))?;
        Ok(AppliedInTransaction { callers, outcomes, written })
    }

    /// Opens a connection to the store's file for transactions of the caller. It waits up to 30
    /// seconds for its turn to write, and its commits are as durable as those of the store.
    ///
    /// # Errors
    /// [`is_invalid`](Error::is_invalid) if the store is in memory; the file's error if it cannot
    /// be opened.
    pub fn connect(&self) -> Result<Connection> {
        let callers = self.callers().ok_or_else(|| {
            Error::invalid("the store is in memory, which has no other connections; open one in a file")
        })?;
        let connection = crate::sqlite::store::connect::connect(&callers.path, None)?;
        connection.set_prepared_statement_cache_capacity(STATEMENTS);
        let synchronous = if self.durability() == Durability::Full { "FULL" } else { "NORMAL" };
        connection.pragma_update(None, "synchronous", synchronous)?;
        Ok(connection)
    }
}

/// Rejects sessions and claims in the caller's transaction: a rollback would undo a lease that a
/// process already holds.
fn check(writes: &[Write]) -> Result<()> {
    let is_ours = |write: &Write| matches!(write, Write::OpenSession(_) | Write::Claim(_));
    let is_within = |write: &Write| matches!(write, Write::All(writes) if writes.iter().any(is_ours));
    if writes.iter().any(|write| is_ours(write) || is_within(write)) {
        return Err(Error::invalid(
            "sessions are opened and tasks claimed by the store itself; leave that out of the transaction",
        ));
    }
    Ok(())
}

/// Applies the writes. A single write is not wrapped in an `All`, so that its refusal is its own.
fn apply(transaction: &mut Transaction<'_>, mut writes: Vec<Write>) -> Result<Vec<Outcome>> {
    let single = if writes.len() == 1 { writes.pop() } else { None };
    match transaction.write(single.as_ref().unwrap_or(&Write::All(writes)))? {
        Outcome::Refused(refusal) => Err(Error::refused(refusal)),
        Outcome::All(outcomes) if single.is_none() => Ok(outcomes),
        outcome => Ok(vec![outcome]),
    }
}
