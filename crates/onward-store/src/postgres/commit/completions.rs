//! Completions: tasks that were completed by the function `onward_complete`, in transactions of
//! others, end here.
//!
//! The function has checked the lease under the store's lock. So that it still holds when the task
//! ends, whoever writes next takes the completions in before anything else, in the same
//! transaction.

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

/// What is to be told when the transaction has committed in which completions were taken in.
#[derive(Debug, Default)]
pub(super) struct ConsumedCompletions {
    pub(in crate::postgres) hint: Hint,
    pub(in crate::postgres) notifications: Vec<TaskNotification>,
}

/// Takes in all there are, in a transaction under the store's lock; `items` is what may be known of
/// what is no task.
pub(super) async fn take_in(
    client: &ServerConnection<'_>,
    shared: &Shared,
    items: Option<&(i64, SmallState)>,
) -> Result<ConsumedCompletions> {
    // What comes now is this process's.
    shared.saw(stamp(client, shared).await?);
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
        if rows.len() < bounds::COMPLETIONS {
            return Ok(taken_in);
        }
    }
}

/// The oldest, which are there no more if the transaction commits.
async fn take(client: &ServerConnection<'_>, shared: &Shared) -> Result<Vec<Row>> {
    let text = "WITH taken AS (DELETE FROM {s}.completion WHERE id IN (SELECT id FROM {s}.completion ORDER BY id LIMIT $1) RETURNING *) \
                SELECT task, session, claim, result FROM taken ORDER BY id";
    let limit = number(bounds::COMPLETIONS);
    client.query_typed(&shared.sql.text(text), &[(&limit, Type::INT8)]).await.map_err(classified)
}

fn completion(row: &Row) -> Result<Write> {
    let number = |at: usize| row.try_get::<_, i64>(at).map_err(classified);
    let claim = u32::try_from(number(2)?).unwrap_or_default();
    let lease = Lease { task: TaskId(number(0)?), session: SessionId(number(1)?), claim };
    let result = row.try_get::<_, Option<&[u8]>>(3).map_err(classified)?.map(Bytes::copy_from_slice);
    Ok(Write::Complete { lease, result })
}

/// None is refused unless somebody has written without the lock.
fn complain(calls: &[&[Write]], outcomes: &[Vec<Outcome>]) {
    for (call, outcomes) in calls.iter().zip(outcomes) {
        if let (Some(Write::Complete { lease, .. }), Some(Outcome::Refused(refusal))) = (call.first(), outcomes.first())
        {
            tracing::error!(task = lease.task.0, %refusal, "a task was completed by `onward_complete`, and does not end");
        }
    }
}

/// A statement that completes a task within any transaction on the store's database, and its
/// values: for drivers that the store does not know.
///
/// Made by [`PostgresStore::completion_statement`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompletionStatement {
    text: String,
    lease: Lease,
    result: Option<Bytes>,
}

impl CompletionStatement {
    /// The statement, whose four parameters are [`task`](Self::task), [`session`](Self::session),
    /// [`claim`](Self::claim) and [`result`](Self::result), in this order: `SELECT
    /// onward.onward_complete($1, $2, $3, $4)`.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// `$1`, a `bigint`.
    #[must_use]
    pub fn task(&self) -> i64 {
        self.lease.task.0
    }

    /// `$2`, a `bigint`.
    #[must_use]
    pub fn session(&self) -> i64 {
        self.lease.session.0
    }

    /// `$3`, a `bigint`.
    #[must_use]
    pub fn claim(&self) -> i64 {
        self.lease.claim.into()
    }

    /// `$4`, a `bytea` or `NULL`.
    #[must_use]
    pub fn result(&self) -> Option<&[u8]> {
        self.result.as_deref()
    }
}

impl PostgresStore {
    /// The statement that completes a task in a transaction of the caller's own, of any driver:
    /// sqlx, diesel, or another language. It calls the function `onward_complete`, for which the
    /// role needs the right (`GRANT EXECUTE ON FUNCTION onward.onward_complete TO shop`), unless it
    /// is the store's own.
    ///
    /// The server answers it with an error (`SQLSTATE` 55000, and a hint to roll back) if the lease
    /// holds no longer, and also outside of `READ COMMITTED` and for a result above the limit of
    /// payloads (22023). Run it **last, and commit at once**: until the end of the transaction
    /// every write to the store waits for it, and the server ends a transaction that stands still
    /// for 5 seconds after it.
    ///
    /// When the transaction has committed the task is completed, and nobody can do anything else
    /// with it; reads show it so as soon as anybody has written next, which a process that has the
    /// store open does at once. [`look_for_completions`](Self::look_for_completions) has this one
    /// do it sooner than it hears of it.
    #[must_use]
    pub fn completion_statement(&self, lease: Lease, result: Option<Bytes>) -> CompletionStatement {
        let text = self.shared.sql.text("SELECT {s}.onward_complete($1, $2, $3, $4)");
        CompletionStatement { text, lease, result }
    }

    /// Has this process look for what was completed by `onward_complete` now; it does so also when
    /// the server tells it, and every now and then. Does not wait.
    pub fn look_for_completions(&self) {
        self.shared.inbox.notify_one();
    }
}
