//! Completions: tasks that the SQL function `onward_complete` completed in a caller's transaction
//! end here.
//!
//! The function has checked the lease under the store's lock. The next writer consumes the pending
//! completions before anything else, in the same transaction, so that the lease still holds when
//! the task ends.

use bytes::Bytes;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use crate::api::error::Result;
use crate::api::notification::TaskNotification;
use crate::api::outcome::Outcome;
use crate::api::store::Hint;
use crate::api::task::{Lease, SessionId, TaskId};
use crate::api::write::Write;
use crate::bounds;
use crate::postgres::commit::transaction::apply_completions;
use crate::postgres::connect::connection::ServerConnection;
use crate::postgres::connect::error::classified;
use crate::postgres::load::query::number;
use crate::postgres::shared::Shared;
use crate::postgres::store::PostgresStore;
use crate::postgres::wake::stamp;
use crate::postgres::working_set::small_state::SmallState;

/// The notifications that are due when the transaction that consumed the completions has committed.
#[derive(Debug, Default)]
pub(super) struct ConsumedCompletions {
    pub(in crate::postgres) hint: Hint,
    pub(in crate::postgres) notifications: Vec<TaskNotification>,
}

/// Consumes all pending completions, in a transaction that holds the store's lock. `items` is the
/// cached small state and its version, if the writer has one.
pub(super) async fn take_in(
    client: &ServerConnection<'_>,
    shared: &Shared,
    items: Option<&(i64, SmallState)>,
) -> Result<ConsumedCompletions> {
    // The lock is held, so from here on only this transaction changes the stamp.
    shared.record_stamp(stamp(client, shared).await?);
    let mut taken_in = ConsumedCompletions::default();
    loop {
        let rows = take(client, shared).await?;
        let calls: Vec<[Write; 1]> =
            rows.iter().map(|row| completion(row).map(|write| [write])).collect::<Result<_>>()?;
        if !calls.is_empty() {
            let calls: Vec<&[Write]> = calls.iter().map(<[Write; 1]>::as_slice).collect();
            let applied = apply_completions(client, shared, &calls, items.cloned()).await?;
            complain(&calls, &applied.outcomes);
            taken_in.hint.add(applied.hint);
            taken_in.notifications.extend(applied.notifications);
        }
        // The lock is held, so no completion can be added: a short batch is the last one.
        if rows.len() < bounds::COMPLETIONS {
            return Ok(taken_in);
        }
    }
}

/// Deletes and returns the oldest pending completions. They are back if the transaction rolls back.
async fn take(client: &ServerConnection<'_>, shared: &Shared) -> Result<Vec<Row>> {
    let text = "WITH taken AS (DELETE FROM {s}.completion WHERE id IN (SELECT id FROM {s}.completion ORDER BY id LIMIT $1) RETURNING *) \
                SELECT task, session, claim, result FROM taken ORDER BY id";
    let limit = number(bounds::COMPLETIONS);
    client.query_typed(&shared.sql.text(text), &[(&limit, Type::INT8)]).await.map_err(classified)
}

/// Decodes a completion as a write.
fn completion(row: &Row) -> Result<Write> {
    let number = |at: usize| row.try_get::<_, i64>(at).map_err(classified);
    let claim = u32::try_from(number(2)?).unwrap_or_default();
    let lease = Lease { task: TaskId(number(0)?), session: SessionId(number(1)?), claim };
    let result = row.try_get::<_, Option<&[u8]>>(3).map_err(classified)?.map(Bytes::copy_from_slice);
    Ok(Write::Complete { lease, result })
}

/// Logs rejected completions. `onward_complete` has checked each lease, so a rejection means that
/// another program wrote without the lock.
fn complain(calls: &[&[Write]], outcomes: &[Vec<Outcome>]) {
    for (call, outcomes) in calls.iter().zip(outcomes) {
        if let (Some(Write::Complete { lease, .. }), Some(Outcome::Refused(refusal))) = (call.first(), outcomes.first())
        {
            tracing::error!(task = lease.task.0, %refusal, "a task was completed by `onward_complete`, and does not end");
        }
    }
}

/// A statement with its values that completes a task in any transaction on the store's database. It
/// is for drivers other than `tokio_postgres`.
///
/// Made by [`PostgresStore::completion_statement`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompletionStatement {
    text: String,
    lease: Lease,
    result: Option<Bytes>,
}

impl CompletionStatement {
    /// Returns the statement. Its four parameters are [`task`](Self::task),
    /// [`session`](Self::session), [`claim`](Self::claim) and [`result`](Self::result), in this
    /// order: `SELECT onward.onward_complete($1, $2, $3, $4)`.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns `$1`, a `bigint`.
    #[must_use]
    pub fn task(&self) -> i64 {
        self.lease.task.0
    }

    /// Returns `$2`, a `bigint`.
    #[must_use]
    pub fn session(&self) -> i64 {
        self.lease.session.0
    }

    /// Returns `$3`, a `bigint`.
    #[must_use]
    pub fn claim(&self) -> i64 {
        self.lease.claim.into()
    }

    /// Returns `$4`, a `bytea` or `NULL`.
    #[must_use]
    pub fn result(&self) -> Option<&[u8]> {
        self.result.as_deref()
    }
}

impl PostgresStore {
    /// Returns a statement that completes a task in the caller's transaction with any driver: sqlx,
    /// diesel, or another language.
    ///
    /// It calls the function `onward_complete`. Any role but the store's own needs the right to do
    /// so: `GRANT EXECUTE ON FUNCTION onward.onward_complete TO shop`.
    ///
    /// The server rejects it with `SQLSTATE` 55000 and a hint to roll back if the lease no longer
    /// holds. It also rejects it outside of `READ COMMITTED`, and a result above the payload limit
    /// with 22023. Run it **last, and commit at once**: until the end of the transaction every
    /// write to the store waits for it. The server ends a transaction that stays idle for 5 seconds
    /// after it.
    ///
    /// When the transaction has committed, the task is completed and no other write can change it.
    /// Reads show this after the next write to the store. A process that has the store open does
    /// that write at once. Call [`look_for_completions`](Self::look_for_completions) to have this
    /// process do it before the notification arrives.
    #[must_use]
    pub fn completion_statement(&self, lease: Lease, result: Option<Bytes>) -> CompletionStatement {
        let text = self.shared.sql.text("SELECT {s}.onward_complete($1, $2, $3, $4)");
        CompletionStatement { text, lease, result }
    }

    /// Starts a search for tasks that `onward_complete` completed, and returns without waiting. The
    /// store also searches when the server notifies it, and whenever it polls.
    pub fn look_for_completions(&self) {
        self.shared.inbox.notify_one();
    }
}
