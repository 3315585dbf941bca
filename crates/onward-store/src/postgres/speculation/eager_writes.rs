//! Rows that are written while the rest of their batch is decided: the server need not wait for the
//! program, nor the program for the server.

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

/// What is on its way of a batch that is being decided.
pub(in crate::postgres) struct EagerWrites<'c> {
    client: &'c ServerConnection<'c>,
    sql: &'c Sql,
    sent: Vec<MaybeDone<Sent<'c>>>,
    pub(in crate::postgres) written: SentTasks,
    is_allowed: bool,
}

impl<'c> EagerWrites<'c> {
    /// For calls, where they are many writes.
    pub(in crate::postgres) fn of(client: &'c ServerConnection<'c>, sql: &'c Sql, calls: &[&[Write]]) -> Self {
        let is_allowed = calls.iter().map(|call| call.len()).sum::<usize>() >= 2 * bounds::DECIDED_AT_ONCE;
        Self { is_allowed, ..Self::never(client, sql) }
    }

    /// Everything is decided before anything is written.
    pub(in crate::postgres) fn never(client: &'c ServerConnection<'c>, sql: &'c Sql) -> Self {
        Self { client, sql, sent: Vec::new(), written: SentTasks::default(), is_allowed: false }
    }

    pub(in crate::postgres) fn is_allowed(&self) -> bool {
        self.is_allowed
    }

    /// Has rows of before go with what is asked for next, behind it.
    pub(in crate::postgres) fn adopt(&mut self, rows: Vec<ChangeSet>, written: SentTasks) {
        let saving = rows.into_iter().map(|rows| maybe_done(self.saving(rows)));
        self.sent = saving.collect();
        self.written = written;
    }

    /// Sends rows. What came of them is heard in the end.
    pub(in crate::postgres) async fn send(&mut self, rows: ChangeSet) {
        let mut saving = maybe_done(self.saving(rows));
        // They are on their way when this is first polled, and who carries them gets a turn.
        let _ = (&mut saving).now_or_never();
        self.sent.push(saving);
        tokio::task::yield_now().await;
    }

    fn saving(&self, rows: ChangeSet) -> Sent<'c> {
        let (client, sql) = (self.client, self.sql);
        Box::pin(async move { save_rows(client, sql, &rows).await })
    }

    /// Whether what is wanted can be loaded after this was written as before it: what looks at
    /// nothing that was written, but by numbers of tasks that are known.
    pub(in crate::postgres) fn can_still_load(&self, requests: &BTreeSet<LoadRequest>) -> bool {
        let is_unaffected = |request: &LoadRequest| {
            matches!(
                request,
                LoadRequest::Task(_) | LoadRequest::Key(..) | LoadRequest::SubQueue(_) | LoadRequest::SubQueues
            )
        };
        self.sent.is_empty() || (!self.written.has_new() && requests.iter().all(is_unaffected))
    }

    /// Waits until what was sent is written.
    pub(in crate::postgres) async fn written(&mut self) -> Result<(), Error> {
        join_all(std::mem::take(&mut self.sent).into_iter().map(saved)).await.into_iter().collect()
    }

    /// Waits for something that was asked for before or after what was sent.
    pub(in crate::postgres) async fn await_in_order<T>(&mut self, one: impl Future<Output = T>) -> T {
        await_in_order(&mut self.sent, one).await
    }

    /// What was sent, and which tasks these are.
    pub(in crate::postgres) fn into_sent(self) -> Vec<Sent<'c>> {
        self.sent.into_iter().map(saved).collect()
    }
}

fn saved(sent: MaybeDone<Sent<'_>>) -> Sent<'_> {
    match sent {
        MaybeDone::Future(sent) => sent,
        MaybeDone::Done(done) => Box::pin(ready(done)),
        MaybeDone::Gone => Box::pin(ready(Ok(()))),
    }
}
