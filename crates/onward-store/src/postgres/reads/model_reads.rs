//! Reads that the model performs on loaded rows.

use std::collections::BTreeSet;

use futures_util::future::join;
use tokio_postgres::Row;
use tokio_postgres::types::{ToSql, Type};

use crate::api::error::{Error, Result};
use crate::api::reason::WaitReason;
use crate::api::store::Durability;
use crate::api::task::{TaskId, TaskRecord};
use crate::api::write::Claim;
use crate::model::LoadRequest;
use crate::model::Now;
use crate::postgres::commit::begin::{begin_to_read, is_unflushed};
use crate::postgres::connect::connection::OwnedConnection;
use crate::postgres::connect::error::classified;
use crate::postgres::load::found::take;
use crate::postgres::load::loader::Loader;
use crate::postgres::shared::Shared;
use crate::postgres::sql::SYNC;
use crate::postgres::working_set::applied::Covered;
use crate::postgres::working_set::contents::WorkingSet;

/// The most rounds of loading in one read. Each round lets the read get further, so only a defect
/// reaches this.
const ROUNDS: usize = 10_000;

/// Returns a task's record.
pub(in crate::postgres) async fn task(shared: &Shared, task: TaskId) -> Result<Option<TaskRecord>> {
    look_first(shared, BTreeSet::from([LoadRequest::Task(task)]), move |working_set, _| working_set.record(task)).await
}

/// Returns the reasons why a task waits.
pub(in crate::postgres) async fn why(shared: &Shared, task: TaskId) -> Result<Option<Vec<WaitReason>>> {
    look_first(shared, BTreeSet::from([LoadRequest::Task(task)]), move |working_set, now| working_set.why(task, now))
        .await
}

/// Returns the task that a claim would get next.
pub(in crate::postgres) async fn peek(shared: &Shared, claim: Claim) -> Result<Option<TaskRecord>> {
    look_first(shared, BTreeSet::from([LoadRequest::SubQueues]), move |working_set, now| working_set.peek(&claim, now))
        .await
}

/// Runs a read over a working set, and loads what it requests until it succeeds.
pub(in crate::postgres) async fn look<T>(
    shared: &Shared,
    decide: impl FnMut(&mut WorkingSet, Now) -> Covered<T>,
) -> Result<T> {
    look_first(shared, BTreeSet::new(), decide).await
}

/// Runs a read like [`look`], and loads its `first` requests in the first round trip.
async fn look_first<T>(
    shared: &Shared,
    first: BTreeSet<LoadRequest>,
    decide: impl FnMut(&mut WorkingSet, Now) -> Covered<T>,
) -> Result<T> {
    let client = shared.pool.get().await?;
    let (value, is_unflushed) = within(&client, shared, first, decide).await?;
    end(&client, shared, is_unflushed).await?;
    client.give_back();
    Ok(value)
}

/// Ends a reading transaction. If it saw changes that are not on disk yet, waits for the disk: a
/// crash of the server could still undo them.
pub(in crate::postgres) async fn end(client: &OwnedConnection, shared: &Shared, is_unflushed: bool) -> Result<()> {
    client.batch_execute("COMMIT").await.map_err(classified)?;
    if is_unflushed && must_wait(shared) {
        client.batch_execute(SYNC).await.map_err(classified)?;
    }
    Ok(())
}

/// Returns the rows of a single statement, which needs no transaction. What it saw is on disk then,
/// as with [`end`].
pub(in crate::postgres) async fn ask(
    client: &OwnedConnection,
    shared: &Shared,
    statement: &str,
    parameters: &[(&(dyn ToSql + Sync), Type)],
) -> Result<Vec<Row>> {
    let statement = shared.sql.text(statement);
    let rows = async { client.query_typed(&statement, parameters).await.map_err(classified) };
    if !must_wait(shared) {
        return rows.await;
    }
    // Both queries are sent at once. The second runs after the first, so everything that the first
    // one saw is in the server's log by then.
    let (rows, is_unflushed) = join(rows, is_unflushed(client)).await;
    let rows = rows?;
    if is_unflushed? {
        client.batch_execute(SYNC).await.map_err(classified)?;
    }
    Ok(rows)
}

/// Returns true if reads must wait for the disk. With a lower durability, acknowledged writes may
/// be lost as well.
fn must_wait(shared: &Shared) -> bool {
    shared.options.durability == Durability::Full
}

/// Runs a read in a transaction that is begun here and ended by the caller. The flag is true if the
/// read saw changes that are not on disk yet.
pub(in crate::postgres) async fn within<T>(
    client: &OwnedConnection,
    shared: &Shared,
    first: BTreeSet<LoadRequest>,
    mut decide: impl FnMut(&mut WorkingSet, Now) -> Covered<T>,
) -> Result<(T, bool)> {
    let mut loader = Loader::new(client, &shared.sql, 1, false, 0);
    let mut header = begin_to_read(client, shared, &mut loader, first).await?;
    for _ in 0..ROUNDS {
        match decide(&mut header.working_set, header.now) {
            Ok(value) => return Ok((value, header.is_unflushed)),
            Err(requests) => take(&mut header.working_set, loader.load(requests).await?)?,
        }
    }
    Err(Error::io("what a read looks for cannot be loaded; this is a defect of the PostgreSQL store"))
}
