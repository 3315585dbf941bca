//! Eager writes: rows that are final are sent while the rest of their batch is decided, so that the
//! server and the program work at the same time.
//!
//! All of it belongs to one transaction, so no reader sees these rows before the commit.

use std::collections::BTreeSet;
use std::future::Future;

use futures_util::FutureExt;
use futures_util::future::{MaybeDone, join_all, maybe_done, ready};
use tokio_postgres::Error;

use crate::api::write::Write;
use crate::bounds;
use crate::model::LoadRequest;
use crate::postgres::commit::write_rows::{Sent, save_rows};
use crate::postgres::connect::connection::ServerConnection;
use crate::postgres::speculation::ordered_polling::await_in_order;
use crate::postgres::sql::Sql;
use crate::postgres::working_set::change_set::ChangeSet;
use crate::postgres::working_set::decision::SentTasks;

/// The statements in flight of a batch that is still being decided.
pub(in crate::postgres) struct EagerWrites<'c> {
    client: &'c ServerConnection<'c>,
    sql: &'c Sql,
    /// The statements, in the order in which they were sent.
    sent: Vec<MaybeDone<Sent<'c>>>,
    /// The tasks that were sent, in the version that was sent. The final change set is relative to
    /// them.
    pub(in crate::postgres) written: SentTasks,
    /// False for small batches, and for the second try of a batch.
    is_allowed: bool,
}

impl<'c> EagerWrites<'c> {
    /// Allows eager writes if the calls have enough writes for two steps.
    pub(in crate::postgres) fn of(client: &'c ServerConnection<'c>, sql: &'c Sql, calls: &[&[Write]]) -> Self {
        let is_allowed = calls.iter().map(|call| call.len()).sum::<usize>() >= 2 * bounds::DECIDED_AT_ONCE;
        Self { is_allowed, ..Self::never(client, sql) }
    }

    /// Forbids eager writes: everything is decided before anything is sent.
    pub(in crate::postgres) fn never(client: &'c ServerConnection<'c>, sql: &'c Sql) -> Self {
        Self { client, sql, sent: Vec::new(), written: SentTasks::default(), is_allowed: false }
    }

    /// Returns true if rows may be sent before everything is decided.
    pub(in crate::postgres) fn is_allowed(&self) -> bool {
        self.is_allowed
    }

    /// Adds the rows of a plan. They are sent with the next request, because nothing polls them
    /// before.
    pub(in crate::postgres) fn adopt(&mut self, rows: Vec<ChangeSet>, written: SentTasks) {
        let saving = rows.into_iter().map(|rows| maybe_done(self.saving(rows)));
        self.sent = saving.collect();
        self.written = written;
    }

    /// Sends rows without waiting for their result, which [`Self::written()`] returns in the end.
    pub(in crate::postgres) async fn send(&mut self, rows: ChangeSet) {
        let mut saving = maybe_done(self.saving(rows));
        // The first poll sends the rows. Yielding lets the connection's task write them to the
        // socket.
        let _ = (&mut saving).now_or_never();
        self.sent.push(saving);
        tokio::task::yield_now().await;
    }

    /// Builds the future that sends rows.
    fn saving(&self, rows: ChangeSet) -> Sent<'c> {
        let (client, sql) = (self.client, self.sql);
        Box::pin(async move { save_rows(client, sql, &rows).await })
    }

    /// Returns true if requests load the same rows after the rows sent so far as before. That holds
    /// for rows found by number, key or sub-queue; counts and orders include what was sent.
    pub(in crate::postgres) fn can_still_load(&self, requests: &BTreeSet<LoadRequest>) -> bool {
        let is_unaffected = |request: &LoadRequest| {
            matches!(
                request,
                LoadRequest::Task(_) | LoadRequest::Key(..) | LoadRequest::SubQueue(_) | LoadRequest::SubQueues
            )
        };
        self.sent.is_empty() || (!self.written.has_new() && requests.iter().all(is_unaffected))
    }

    /// Waits for everything sent, and returns the first error in order.
    pub(in crate::postgres) async fn written(&mut self) -> Result<(), Error> {
        join_all(std::mem::take(&mut self.sent).into_iter().map(saved)).await.into_iter().collect()
    }

    /// Waits for a reply while the statements sent before it make progress.
    pub(in crate::postgres) async fn await_in_order<T>(&mut self, one: impl Future<Output = T>) -> T {
        await_in_order(&mut self.sent, one).await
    }

    /// Returns the statements in flight, to be awaited together with the commit.
    pub(in crate::postgres) fn into_sent(self) -> Vec<Sent<'c>> {
        self.sent.into_iter().map(saved).collect()
    }
}

/// Returns the statement's future, or its result if it is done.
fn saved(sent: MaybeDone<Sent<'_>>) -> Sent<'_> {
    match sent {
        MaybeDone::Future(sent) => sent,
        MaybeDone::Done(done) => Box::pin(ready(done)),
        MaybeDone::Gone => Box::pin(ready(Ok(()))),
    }
}
