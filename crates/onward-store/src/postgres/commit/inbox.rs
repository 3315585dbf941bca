//! The inbox: rows that the SQL function `onward_submit` inserted in callers' transactions become
//! tasks here. Completions are consumed here as well, if no other write does it first.
//!
//! A row is deleted in the transaction that submits its task, by the process that comes first. A
//! row that cannot be submitted stays, with the reason.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::mpsc;
use tokio_postgres::Row;
use tokio_postgres::types::{ToSql, Type};

use crate::api::dependency::Dependency;
use crate::api::error::{Error, Result};
use crate::api::name::Name;
use crate::api::outcome::Outcome;
use crate::api::store::Durability;
use crate::api::tag::Tags;
use crate::api::task::{NewTask, OnDuplicate, Priority, TaskId, Ttl, TtlFrom, UniqueKey, When};
use crate::api::timestamp::Timestamp;
use crate::api::write::Write;
use crate::postgres::commit::transaction::apply_within;
use crate::postgres::commit::writer::{Call, apply_until_kept, connect_to_write};
use crate::postgres::connect::connection::{OwnedConnection, ServerConnection};
use crate::postgres::connect::error::classified;
use crate::postgres::connect::error::{concerns_everyone, is_of_values};
use crate::postgres::connect::retry_budget::{LONG_PAUSE, PAUSE};
use crate::postgres::load::query::number;
use crate::postgres::shared::Shared;
use crate::postgres::sql::Sql;
use crate::postgres::working_set::applied::Applied;

/// The most rows that one transaction submits.
const BATCH: i64 = 500;

/// Empties the inbox whenever it may have rows, until the store is dropped.
pub(in crate::postgres) async fn run(shared: Weak<Shared>, calls: mpsc::WeakSender<Call>) {
    let (mut client, mut pause) = (None, PAUSE);
    // Strong references live only for one pass, so that this loop does not keep the store open.
    loop {
        let (Some(shared), Some(calls)) = (shared.upgrade(), calls.upgrade()) else { return };
        let outcome = take_all(&shared, &calls, &mut client).await;
        let inbox = Arc::clone(&shared.inbox);
        drop((shared, calls));
        let Err(error) = outcome else {
            pause = PAUSE;
            inbox.notified().await;
            continue;
        };
        client = None;
        tracing::warn!(%error, "the rows of the inbox cannot be processed");
        if error.is_transient() {
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONG_PAUSE);
        } else {
            // A permanent error, such as a missing right, needs an operator. Retrying alone would
            // fail again.
            inbox.notified().await;
        }
    }
}

/// Returns two flags: if the inbox has rows without an error, and if completions are pending.
pub(in crate::postgres) async fn is_waiting(client: &OwnedConnection, sql: &Sql) -> Result<(bool, bool)> {
    let text = "SELECT EXISTS (SELECT 1 FROM {s}.inbox WHERE error IS NULL), EXISTS (SELECT 1 FROM {s}.completion)";
    let rows = client.query_typed(&sql.text(text), &[]).await.map_err(classified)?;
    let is_so = |at: usize| rows.first().map_or(Ok(false), |row| row.try_get(at).map_err(classified));
    Ok((is_so(0)?, is_so(1)?))
}

/// Submits every row of the inbox and consumes completions. Connects only if there is something to
/// submit.
pub(in crate::postgres) async fn take_all(
    shared: &Shared,
    calls: &mpsc::Sender<Call>,
    client: &mut Option<OwnedConnection>,
) -> Result<()> {
    let reader = shared.pool.get().await?;
    let (has_tasks, has_completions) = is_waiting(&reader, &shared.sql).await?;
    shared.sees_inbox.store(true, Ordering::Relaxed);
    reader.give_back();
    if has_completions {
        // An empty call is enough: every write consumes the completions first.
        apply_until_kept(shared, calls, Vec::new()).await?;
    }
    if !has_tasks {
        return Ok(());
    }
    let client = match client {
        Some(client) => client,
        none => none.insert(connect_to_write(shared).await?),
    };
    submit(client, shared).await
}

/// Submits the rows of the inbox, batch by batch.
async fn submit(client: &OwnedConnection, shared: &Shared) -> Result<()> {
    // The number of rows that are still to be submitted one by one, because their batch failed.
    let mut alone = 0;
    loop {
        let limit = if alone > 0 { 1 } else { BATCH };
        let rows = begin(client, shared, limit).await?;
        match take(client, shared, &rows).await {
            Ok(()) => alone = (alone - 1).max(0),
            Err(error) if concerns_everyone(&error) || client.batch_execute("ROLLBACK").await.is_err() => {
                return Err(error);
            }
            Err(error) if limit == 1 => {
                refuse_alone(client, shared, &rows, error).await?;
                alone -= 1;
            }
            Err(_) => {
                alone = number(rows.len());
                continue;
            }
        }
        // A short batch was the last one. A later `onward_submit` sends its own notification.
        if number(rows.len()) < limit {
            return Ok(());
        }
    }
}

/// Submits rows as tasks in the transaction that found them, and commits it.
async fn take(client: &OwnedConnection, shared: &Shared, rows: &[Row]) -> Result<()> {
    if rows.is_empty() {
        return client.batch_execute("ROLLBACK").await.map_err(classified);
    }
    let (mut numbers, mut calls, mut refused) = (Vec::new(), Vec::new(), Vec::new());
    for row in rows {
        let number: i64 = row.try_get(0).map_err(classified)?;
        match new_task(row) {
            Ok(new) => {
                numbers.push(number);
                calls.push([Write::Submit(Box::new(new))]);
            }
            Err(error) => refused.push((number, error.to_string())),
        }
    }
    let calls: Vec<&[Write]> = calls.iter().map(<[Write; 1]>::as_slice).collect();
    let applied = apply_within(client, shared, &calls, "").await?;
    for (number, outcomes) in numbers.iter().zip(&applied.outcomes) {
        if let Some(Outcome::Refused(refusal)) = outcomes.first() {
            refused.push((*number, refusal.to_string()));
        }
    }
    numbers.retain(|number| !refused.iter().any(|(other, _)| other == number));
    end(client, shared, &numbers, &refused).await?;
    notify(shared, applied);
    Ok(())
}

/// Begins a transaction under the store's lock, so that no other process reads the same rows, and
/// returns the oldest rows.
async fn begin(client: &OwnedConnection, shared: &Shared, limit: i64) -> Result<Vec<Row>> {
    client.batch_execute(&shared.sql.and_lock(client.begin())).await.map_err(classified)?;
    let text = "SELECT id, kind, payload, queue, priority, key, on_duplicate, keep_key_for, run_at, task_group, tags, ttl, timeout, deadline, \
                affinity, parent, depends_on, heartbeat_timeout, retention FROM {s}.inbox WHERE error IS NULL ORDER BY id LIMIT $1";
    client.query_typed(&shared.sql.text(text), &[(&limit, Type::INT8)]).await.map_err(classified)
}

/// Deletes the submitted rows, records the reasons at the refused ones, and commits.
async fn end(
    client: &ServerConnection<'_>,
    shared: &Shared,
    taken: &Vec<i64>,
    refused: &[(i64, String)],
) -> Result<()> {
    let text = "DELETE FROM {s}.inbox WHERE id = ANY($1)";
    client.query_typed(&shared.sql.text(text), &[(taken, Type::INT8_ARRAY)]).await.map_err(classified)?;
    if !refused.is_empty() {
        refuse(client, shared, refused).await?;
    }
    let is_durable = shared.options.durability == Durability::Full;
    let commit = if is_durable { "COMMIT" } else { "SET LOCAL synchronous_commit = off; COMMIT" };
    client.batch_execute(commit).await.map_err(classified)
}

/// Records the reason at each refused row, which stays in the inbox.
async fn refuse(client: &ServerConnection<'_>, shared: &Shared, refused: &[(i64, String)]) -> Result<()> {
    let (numbers, errors): (Vec<i64>, Vec<&str>) = refused.iter().map(|(at, why)| (*at, why.as_str())).unzip();
    let text = "UPDATE {s}.inbox i SET error = u.error FROM unnest($1, $2) AS u (id, error) WHERE i.id = u.id";
    let values: [(&(dyn ToSql + Sync), Type); 2] = [(&numbers, Type::INT8_ARRAY), (&errors, Type::TEXT_ARRAY)];
    client.query_typed(&shared.sql.text(text), &values).await.map_err(classified)?;
    for (number, error) in refused {
        tracing::warn!(number, error, "a task in the inbox cannot be submitted, and stays there");
    }
    Ok(())
}

/// Records the reason at a row whose values the server rejects. The rows after it are submitted
/// without waiting for an operator.
async fn refuse_alone(client: &OwnedConnection, shared: &Shared, rows: &[Row], error: Error) -> Result<()> {
    match rows {
        [row] if is_of_values(&error) => {
            refuse(client, shared, &[(row.try_get(0).map_err(classified)?, error.to_string())]).await
        }
        _ => Err(error),
    }
}

/// Notifies the waiting callers of this process.
fn notify(shared: &Shared, applied: Applied) {
    shared.committed(&applied);
    shared.notify(applied.notifications);
}

/// Decodes a row of the inbox. Limits and names are checked as for any other submission.
fn new_task(row: &Row) -> Result<NewTask> {
    let text = |at: usize| row.try_get::<_, Option<&str>>(at).map_err(classified);
    let number = |at: usize| row.try_get::<_, Option<i64>>(at).map_err(classified);
    let name = |at: usize| text(at)?.map(Name::new).transpose();
    let moment = |at: usize| Ok::<_, Error>(number(at)?.map(Timestamp::from_microseconds));
    let duration = |at: usize| Ok::<_, Error>(number(at)?.map(|micros| Duration::from_micros(micros.unsigned_abs())));
    let missing = || Error::invalid("it has no kind");
    let mut new = NewTask::of(name(1)?.ok_or_else(missing)?);
    new.payload = Bytes::copy_from_slice(row.try_get(2).map_err(classified)?);
    new.queue = name(3)?.unwrap_or_else(Name::default_queue);
    let priority: i16 = row.try_get(4).map_err(classified)?;
    new.priority = Priority(u8::try_from(priority).map_err(|_| Error::invalid("its priority is not 0 to 255"))?);
    if let Some(key) = text(5)? {
        let keep_for = duration(7)?.unwrap_or_default();
        new.unique = Some(UniqueKey { key: key.to_owned(), on_duplicate: on_duplicate(text(6)?)?, keep_for });
    }
    new.when = moment(8)?.map_or(When::Now, When::At);
    (new.group, new.affinity) = (name(9)?, name(14)?);
    let tags: Tags =
        serde_json::from_str(text(10)?.unwrap_or("{}")).map_err(|error| Error::invalid(error.to_string()))?;
    new.tags = tags;
    new.ttl = duration(11)?.map(|duration| Ttl { duration, from: TtlFrom::default() });
    (new.timeout, new.deadline) = (duration(12)?, moment(13)?);
    (new.heartbeat_timeout, new.retention) = (duration(17)?, duration(18)?);
    new.parent = number(15)?.map(TaskId);
    let on: Vec<i64> = row.try_get(16).map_err(classified)?;
    new.depends_on.tasks = on.into_iter().map(|task| Dependency::Task(TaskId(task))).collect();
    Ok(new)
}

/// Decodes the policy for duplicates. A row of a newer version may have one that this version does
/// not know.
fn on_duplicate(text: Option<&str>) -> Result<OnDuplicate> {
    match text {
        Some("skip") => Ok(OnDuplicate::Skip),
        Some("supersede") => Ok(OnDuplicate::Supersede),
        Some("requeue") => Ok(OnDuplicate::Requeue),
        _ => Err(Error::invalid("its policy for duplicates is not known to this version; use a newer one")),
    }
}
