//! Reads that the memory store's code answers over what is loaded.

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

/// How often what a read looks for is loaded at the most.
const ROUNDS: usize = 10_000;

pub(in crate::postgres) async fn task(shared: &Shared, task: TaskId) -> Result<Option<TaskRecord>> {
    look_first(shared, BTreeSet::from([LoadRequest::Task(task)]), move |working_set, _| working_set.record(task)).await
}

pub(in crate::postgres) async fn why(shared: &Shared, task: TaskId) -> Result<Option<Vec<WaitReason>>> {
    look_first(shared, BTreeSet::from([LoadRequest::Task(task)]), move |working_set, now| working_set.why(task, now))
        .await
}

pub(in crate::postgres) async fn peek(shared: &Shared, claim: Claim) -> Result<Option<TaskRecord>> {
    look_first(shared, BTreeSet::from([LoadRequest::SubQueues]), move |working_set, now| working_set.peek(&claim, now))
        .await
}

/// Answers from what is loaded, and loads until it can be answered.
pub(in crate::postgres) async fn look<T>(
    shared: &Shared,
    answer: impl FnMut(&mut WorkingSet, Now) -> Covered<T>,
) -> Result<T> {
    look_first(shared, BTreeSet::new(), answer).await
}

async fn look_first<T>(
    shared: &Shared,
    first: BTreeSet<LoadRequest>,
    answer: impl FnMut(&mut WorkingSet, Now) -> Covered<T>,
) -> Result<T> {
    let client = shared.pool.get().await?;
    let (answer, is_unflushed) = within(&client, shared, first, answer).await?;
    end(&client, shared, is_unflushed).await?;
    client.give_back();
    Ok(answer)
}

/// Ends a transaction that has read. What it saw may be ahead of the disk, and nobody is told of
/// that before a crash of the server could no longer undo it.
pub(in crate::postgres) async fn end(client: &OwnedConnection, shared: &Shared, is_unflushed: bool) -> Result<()> {
    client.batch_execute("COMMIT").await.map_err(classified)?;
    if is_unflushed && must_wait(shared) {
        client.batch_execute(SYNC).await.map_err(classified)?;
    }
    Ok(())
}

/// What a single statement answers, which needs no transaction around it. What it saw is on disk
/// then, as with [`end`].
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
    // Sent at once, and answered behind it: by then all that it saw is in the server's log.
    let (rows, is_unflushed) = join(rows, is_unflushed(client)).await;
    let rows = rows?;
    if is_unflushed? {
        client.batch_execute(SYNC).await.map_err(classified)?;
    }
    Ok(rows)
}

fn must_wait(shared: &Shared) -> bool {
    shared.options.durability == Durability::Full
}

/// Answers in a transaction of its own, which is begun and not ended here, and says whether it was
/// ahead of the disk.
pub(in crate::postgres) async fn within<T>(
    client: &OwnedConnection,
    shared: &Shared,
    first: BTreeSet<LoadRequest>,
    mut answer: impl FnMut(&mut WorkingSet, Now) -> Covered<T>,
) -> Result<(T, bool)> {
    let mut loader = Loader::new(client, &shared.sql, 1, false, 0);
    let mut header = begin_to_read(client, shared, &mut loader, first).await?;
    for _ in 0..ROUNDS {
        match answer(&mut header.working_set, header.now) {
            Ok(answer) => return Ok((answer, header.is_unflushed)),
            Err(requests) => take(&mut header.working_set, loader.load(requests).await?)?,
        }
    }
    Err(Error::io("what a read looks for cannot be loaded; this is a defect of the PostgreSQL store"))
}
