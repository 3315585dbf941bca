//! Writes in a transaction of the caller's own.

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

/// Writes in a transaction of the caller's, which count when that commits.
///
/// Commit, then call [`committed`](Self::committed), which tells those who wait. After a rollback
/// drop it.
#[must_use = "who waits for the task hears of it sooner if `committed` is called after the commit"]
#[derive(Debug)]
pub struct AppliedOnServer<'s> {
    shared: &'s Shared,
    outcomes: Vec<Outcome>,
    hint: Hint,
    notifications: Vec<TaskNotification>,
}

impl AppliedOnServer<'_> {
    /// What became of each write, in their order; none is a refusal. Numbers in it are of tasks
    /// once the transaction has committed; after a rollback nobody gets them.
    #[must_use]
    pub fn outcomes(&self) -> &[Outcome] {
        &self.outcomes
    }

    /// Of tasks that were submitted, what became of each.
    pub fn submitted(&self) -> impl Iterator<Item = Submitted> {
        self.outcomes.iter().filter_map(|outcome| match outcome {
            Outcome::Submitted(submitted) => Some(*submitted),
            _ => None,
        })
    }

    /// Tells those who wait in this process; to be called when the transaction has committed.
    /// Answers what [`outcomes`](Self::outcomes) does.
    ///
    /// If it is forgotten nothing is lost: the server tells every process of the commit, this one
    /// too, and where messages do not come through each looks by itself.
    pub fn committed(self) -> Vec<Outcome> {
        self.shared.hint(self.hint);
        self.shared.notify(self.notifications);
        self.outcomes
    }
}

/// Writing in transactions of the caller's own: what it writes to its own tables in the same
/// database and what it does to tasks become durable together, or not at all. `client` is a
/// transaction of `tokio_postgres` (0.7) on any connection to the store's database, whatever made
/// it.
///
/// * **Do it last, and commit at once.** From then on until the end of the transaction every write
///   to the store waits for it. The server ends a transaction that stands still for 5 seconds after
///   it.
/// * The transaction must see what others commit meanwhile: `READ COMMITTED`, PostgreSQL's default.
/// * The role needs the rights of one that opens the store.
impl PostgresStore {
    /// Submits tasks in a transaction of the caller's own, all or none: a transactional outbox
    /// without a second system.
    ///
    /// ```no_run
    /// use onward_store::{NewTask, PostgresStore};
    ///
    /// # async fn order(store: &PostgresStore, client: &mut tokio_postgres::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// let transaction = client.transaction().await?;
    /// transaction.execute("INSERT INTO shop_order (item) VALUES ($1)", &[&"tea"]).await?;
    /// let submitted = store.submit_in(&transaction, vec![NewTask::new("mail")?]).await?;
    /// transaction.commit().await?;
    /// submitted.committed();
    /// # Ok(()) }
    /// ```
    ///
    /// Where transactions are long, submit by the function `onward_submit` instead, which nobody
    /// waits for.
    ///
    /// # Errors
    /// As [`apply_in`](Self::apply_in).
    pub async fn submit_in(&self, client: &impl GenericClient, tasks: Vec<NewTask>) -> Result<AppliedOnServer<'_>> {
        let writes = tasks.into_iter().map(|task| Write::Submit(Box::new(task))).collect();
        self.apply_in(client, writes).await
    }

    /// Completes a task in a transaction of the caller's own, with all that follows from its end.
    /// It has ended when the caller commits.
    ///
    /// The lease is the fence: if it no longer holds, because the attempt was given up and perhaps
    /// another runs, this is refused, and the caller must roll back. While the transaction is open
    /// nobody takes the lease away.
    ///
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

    /// Ends an attempt with an error in a transaction of the caller's own;
    /// [`outcomes`](AppliedOnServer::outcomes) say where the task stands then. Nobody goes on with
    /// a task of whose next lease only a rollback might tell: `hold` is taken as false.
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

    /// Applies writes in a transaction of the caller's own: all of them, or none. Each sees the
    /// effects of those before it.
    ///
    /// # Errors
    /// [`refusal`](Error::refusal) tells what was refused and why; of several writes it is a
    /// [`Refusal::InAll`](crate::Refusal::InAll). Then the transaction is as it was. One whose
    /// lease no longer holds must be rolled back all the same: its work is another attempt's by
    /// now.
    ///
    /// [`is_invalid`](Error::is_invalid) outside of a transaction, in one that does not see what
    /// others commit, on a connection to another database, and for a [`Write::OpenSession`] or a
    /// [`Write::Claim`], whose answers would be of use only after the commit; else what the server
    /// says.
    pub async fn apply_in(&self, client: &impl GenericClient, writes: Vec<Write>) -> Result<AppliedOnServer<'_>> {
        check(&writes)?;
        let (link, shared) = (ServerConnection::lent(client.client()), &*self.shared);
        let writes = if writes.len() == 1 { writes } else { vec![Write::All(writes)] };
        check_transaction(&link, shared).await?;
        let applied = match apply_within(&link, shared, &[&writes], BEGIN).await {
            Ok(applied) => applied,
            Err(error) => {
                // Undone, where there is anything left to undo it on.
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

/// A process that stands still with the store's lock would hold up all others.
const BEGIN: &str = "SAVEPOINT onward_write; SET LOCAL idle_in_transaction_session_timeout = '5s'";

const UNDO: &str = "ROLLBACK TO onward_write; RELEASE onward_write";

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

/// What is decided on an old picture of the store would be wrong, and what is written outside of a
/// transaction would not be together with anything.
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

fn or_no_transaction(error: Error) -> Error {
    match driver_error(&error).and_then(tokio_postgres::Error::code) {
        Some(&SqlState::NO_ACTIVE_SQL_TRANSACTION) => {
            Error::invalid("there is no transaction under way on the connection; begin one").caused_by(error)
        }
        _ => error,
    }
}
