//! Writes in a transaction that the caller begins and commits.

use bytes::Bytes;
use tokio_postgres::GenericClient;
use tokio_postgres::error::SqlState;

use crate::api::error::{Error, Result};
use crate::api::notification::TaskNotification;
use crate::api::outcome::{Outcome, Submitted};
use crate::api::store::Hint;
use crate::api::task::{Lease, NewTask};
use crate::api::write::{AfterFailure, Write};
use crate::postgres::commit::transaction::apply_within;
use crate::postgres::connect::connection::ServerConnection;
use crate::postgres::connect::error::classified;
use crate::postgres::connect::error::driver_error;
use crate::postgres::shared::Shared;
use crate::postgres::store::PostgresStore;
use crate::postgres::working_set::applied::Applied;

/// Writes that were applied in the caller's transaction and take effect when it commits.
///
/// After the commit call [`committed`](Self::committed), which notifies the waiting callers of this
/// process. After a rollback drop the value.
#[must_use = "waiting callers are notified sooner if `committed` is called after the commit"]
#[derive(Debug)]
pub struct AppliedOnServer<'s> {
    shared: &'s Shared,
    outcomes: Vec<Outcome>,
    hint: Hint,
    notifications: Vec<TaskNotification>,
}

impl AppliedOnServer<'_> {
    /// Returns the outcome of each write, in order; none is a refusal. The task numbers in it are
    /// valid once the transaction has committed. After a rollback they are never given to a task.
    #[must_use]
    pub fn outcomes(&self) -> &[Outcome] {
        &self.outcomes
    }

    /// Returns the outcomes of the submitted tasks.
    pub fn submitted(&self) -> impl Iterator<Item = Submitted> {
        self.outcomes.iter().filter_map(|outcome| match outcome {
            Outcome::Submitted(submitted) => Some(*submitted),
            _ => None,
        })
    }

    /// Notifies the waiting callers of this process. Call it when the transaction has committed.
    /// Returns the same as [`outcomes`](Self::outcomes).
    ///
    /// A forgotten call loses nothing: the server notifies every process of the commit, including
    /// this one. Processes that receive no notifications poll.
    pub fn committed(self) -> Vec<Outcome> {
        self.shared.hint(self.hint);
        self.shared.notify(self.notifications);
        self.outcomes
    }
}

/// Methods that write in the caller's transaction: its writes to its own tables in the same
/// database and its writes to tasks become durable together, or not at all. `client` is a
/// `tokio_postgres` (0.7) transaction on any connection to the store's database; the connection
/// need not come from the store.
///
/// * **Do it last, and commit at once.** Until the end of the transaction, every write to the store
///   waits for it. The server ends a transaction that stays idle for 5 seconds after the write.
/// * The transaction must see what other transactions commit in the meantime: `READ COMMITTED`,
///   PostgreSQL's default.
/// * The role needs the same rights as a role that opens the store.
impl PostgresStore {
    /// Submits tasks in the caller's transaction, all or none: a transactional outbox without a
    /// second system.
    ///
    /// ```no_run
    /// use onward_store::{NewTask, PostgresStore};
    ///
    /// # async fn order(store: &PostgresStore, client: &mut tokio_postgres::Client)
    /// #     -> Result<(), Box<dyn std::error::Error>> {
    /// let transaction = client.transaction().await?;
    /// transaction.execute("INSERT INTO shop_order (item) VALUES ($1)", &[&"tea"]).await?;
    /// let submitted = store.submit_in(&transaction, vec![NewTask::new("mail")?]).await?;
    /// transaction.commit().await?;
    /// submitted.committed();
    /// # Ok(()) }
    /// ```
    ///
    /// For long transactions use the SQL function `onward_submit` instead, which does not hold the
    /// store's lock.
    ///
    /// # Errors
    /// As [`apply_in`](Self::apply_in).
    pub async fn submit_in(&self, client: &impl GenericClient, tasks: Vec<NewTask>) -> Result<AppliedOnServer<'_>> {
        let writes = tasks.into_iter().map(|task| Write::Submit(Box::new(task))).collect();
        self.apply_in(client, writes).await
    }

    /// Completes a task in the caller's transaction, with everything that follows from its end. The
    /// task has ended when the caller commits.
    ///
    /// The lease is the fence. If it no longer holds, because the attempt was given up and another
    /// one may run, the completion is refused, and the caller must roll back. While the transaction
    /// is open, no session can take the lease away.
    /// # Errors
    /// As [`apply_in`](Self::apply_in).
    pub async fn complete_in(
        &self,
        client: &impl GenericClient,
        lease: Lease,
        result: Option<Bytes>,
    ) -> Result<AppliedOnServer<'_>> {
        self.apply_in(client, vec![Write::Complete { lease, result }]).await
    }

    /// Ends an attempt with an error in the caller's transaction;
    /// [`outcomes`](AppliedOnServer::outcomes) have the task's next state.
    ///
    /// `hold` is treated as false: a rollback would void the next lease, so no worker may continue
    /// with it.
    ///
    /// # Errors
    /// As [`apply_in`](Self::apply_in).
    pub async fn fail_in(
        &self,
        client: &impl GenericClient,
        lease: Lease,
        error: impl Into<String>,
        next: AfterFailure,
    ) -> Result<AppliedOnServer<'_>> {
        let next = match next {
            AfterFailure::Retry { after, uses_attempt, .. } => AfterFailure::Retry { after, uses_attempt, hold: false },
            next => next,
        };
        self.apply_in(client, vec![Write::Fail { lease, error: error.into(), next }]).await
    }

    /// Applies writes in the caller's transaction, all or none. Each write sees the effects of the
    /// previous ones.
    ///
    /// # Errors
    /// [`refusal`](Error::refusal) names the refused write and the reason; with several writes it
    /// is a [`Refusal::InAll`](crate::Refusal::InAll). The transaction is then as it was before
    /// the call. If the refusal is a lost lease, the caller must still roll back, because another
    /// attempt does the same work by now.
    ///
    /// [`is_invalid`](Error::is_invalid) holds in four cases: without a transaction, in a
    /// transaction that does not see other commits, on a connection to another database, and for a
    /// [`Write::OpenSession`] or a [`Write::Claim`], whose outcomes would be usable only after the
    /// commit. Any other error is the server's.
    pub async fn apply_in(&self, client: &impl GenericClient, writes: Vec<Write>) -> Result<AppliedOnServer<'_>> {
        check(&writes)?;
        let (link, shared) = (ServerConnection::borrowed(client.client()), &*self.shared);
        let writes = if writes.len() == 1 { writes } else { vec![Write::All(writes)] };
        check_transaction(&link, shared).await?;
        let applied = match apply_within(&link, shared, &[&writes], BEGIN).await {
            Ok(applied) => applied,
            Err(error) => {
                // The savepoint may be gone with the connection or the transaction. Then there is
                // nothing to undo.
                let _ = link.batch_execute(UNDO).await;
                return Err(or_no_transaction(error));
            }
        };
        let Applied { mut outcomes, hint, notifications, .. } = applied;
        let outcomes = match outcomes.pop().and_then(|mut outcomes| outcomes.pop()) {
            Some(Outcome::Refused(refusal)) => {
                link.batch_execute(UNDO).await.map_err(classified)?;
                return Err(Error::refused(refusal));
            }
            Some(Outcome::All(outcomes)) => outcomes,
            outcome => outcome.into_iter().collect(),
        };
        link.batch_execute("RELEASE onward_write").await.map_err(classified)?;
        Ok(AppliedOnServer { shared, outcomes, hint, notifications })
    }
}

/// Begins the write within the caller's transaction. The timeout keeps a process that hangs with
/// the store's lock from blocking all other writers.
const BEGIN: &str = "SAVEPOINT onward_write; SET LOCAL idle_in_transaction_session_timeout = '5s'";

/// Takes back everything since [`BEGIN`], and leaves the caller's own work alone.
const UNDO: &str = "ROLLBACK TO onward_write; RELEASE onward_write";

/// Rejects writes whose outcome is of use only after the commit.
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

/// Checks that the transaction is on the store's database and sees other commits. A decision over
/// an old snapshot of the store would be wrong.
async fn check_transaction(link: &ServerConnection<'_>, shared: &Shared) -> Result<()> {
    let text =
        "SELECT current_setting('transaction_isolation') = 'read committed', to_regclass('{s}.completion') IS NOT NULL";
    let rows = link.query_typed(&shared.sql.text(text), &[]).await.map_err(classified)?;
    let row = rows.first().ok_or_else(Error::closed)?;
    let holds = |at: usize| row.try_get::<_, bool>(at).map_err(classified);
    let (schema, version) = (&shared.sql.schema, shared.options.migrations.newest());
    if !holds(1)? {
        return Err(Error::invalid(format!(
            "the transaction is on a database without the store's schema `{schema}` of version {version}; use a connection to the store's database"
        )));
    }
    if !holds(0)? {
        return Err(Error::invalid("the transaction does not see what others commit; begin it as READ COMMITTED"));
    }
    Ok(())
}

/// Replaces the server's error for a missing transaction by one that names the remedy.
fn or_no_transaction(error: Error) -> Error {
    match driver_error(&error).and_then(tokio_postgres::Error::code) {
        Some(&SqlState::NO_ACTIVE_SQL_TRANSACTION) => {
            Error::invalid("there is no transaction under way on the connection; begin one").caused_by(error)
        }
        _ => error,
    }
}
