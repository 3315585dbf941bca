//! Results of load queries, and how a working set adopts them.

use std::collections::{BTreeMap, BTreeSet};

use tokio_postgres::Row;
use tokio_postgres::types::Type;

use crate::api::error::Result;
use crate::api::name::Name;
use crate::api::task::{SessionId, TaskId};
use crate::model::{LoadRequest, RunningCountRows, RunningSessions};
use crate::postgres::connect::connection::ServerConnection;
use crate::postgres::connect::error::classified;
use crate::postgres::load::document_row::loaded_document;
use crate::postgres::load::query::DEEP;
use crate::postgres::load::query::LoadQuery;
use crate::postgres::load::query::rows;
use crate::postgres::load::row::{BEHIND_LINKS, head, task};
use crate::postgres::sql::Sql;
use crate::postgres::working_set::change_set::KeyRow;
use crate::postgres::working_set::contents::WorkingSet;
use crate::postgres::working_set::sub_queues::{SubQueueHead, SubQueueRows};
use crate::postgres::working_set::task_row::LoadedTask;

/// The result of a load query.
#[derive(Debug)]
pub(in crate::postgres) struct QueryResult {
    query: LoadQuery,
    found: FoundRows,
    /// The dependents and items that refer to requested tasks that no longer exist.
    waits: Vec<(i64, i64)>,
    batch_items: Vec<(i64, i64)>,
}

/// The rows of a result. Tasks are decoded as they arrive.
#[derive(Debug, Default)]
struct FoundRows {
    tasks: Vec<LoadedTask>,
    /// The limit per sub-queue that the server chose; it depends on the number of sub-queues.
    per_sub_queue: Option<i64>,
    /// The sub-queues without loaded tasks.
    heads: Vec<SubQueueHead>,
    /// The rows of other queries than those for tasks.
    rows: Vec<Row>,
}

impl FoundRows {
    /// Decodes a row by the kind of query.
    fn take(&mut self, query: &LoadQuery, row: Row) -> Result<()> {
        match query {
            LoadQuery::Keys(_)
            | LoadQuery::ExpiredKeys(_)
            | LoadQuery::Messages(..)
            | LoadQuery::RunningCounts
            | LoadQuery::RunningSessions(_)
            | LoadQuery::EndedCount
            | LoadQuery::LiveCount(_)
            | LoadQuery::Documents(_) => self.rows.push(row),
            LoadQuery::SubQueues { .. } if row.try_get::<_, Option<i16>>(1).map_err(classified)?.is_none() => {
                self.heads.push(head(&row)?);
            }
            LoadQuery::SubQueues { .. } => {
                self.per_sub_queue = Some(row.try_get(BEHIND_LINKS).map_err(classified)?);
                self.tasks.push(task(&row)?);
            }
            LoadQuery::Tasks { .. }
            | LoadQuery::Children { .. }
            | LoadQuery::LiveChildren(_)
            | LoadQuery::HeldBy(_)
            | LoadQuery::CancelRequested(_)
            | LoadQuery::Waiting(_)
            | LoadQuery::SubQueue(..)
            | LoadQuery::Order(..)
            | LoadQuery::IdRange(..) => self.tasks.push(task(&row)?),
        }
        Ok(())
    }
}

/// Adds results to a working set.
pub(in crate::postgres) fn take(working_set: &mut WorkingSet, loaded: Vec<QueryResult>) -> Result<()> {
    for one in loaded {
        take_one(working_set, one)?;
    }
    working_set.count_unloaded();
    Ok(())
}

/// Adds one result, and marks its requests as loaded: a request without a row is known to have
/// none.
fn take_one(working_set: &mut WorkingSet, loaded: QueryResult) -> Result<()> {
    let QueryResult { query, found: FoundRows { tasks, per_sub_queue, heads, rows }, waits, batch_items } = loaded;
    match query {
        LoadQuery::Tasks { ids, .. } => {
            take_tasks(working_set, tasks);
            working_set.looked_for(&ids, &waits, &batch_items);
        }
        LoadQuery::Keys(keys) => {
            take_keys(working_set, &rows)?;
            keys.into_iter().for_each(|(kind, key)| working_set.mark_loaded(LoadRequest::Key(kind, key)));
        }
        LoadQuery::ExpiredKeys(_) => take_keys(working_set, &rows)?,
        LoadQuery::Children { mut parents, deep } => {
            // A chain that is not cut off by the limit is complete, so all its tasks have known
            // children.
            if deep && tasks.len() < DEEP {
                parents.extend(tasks.iter().map(|task| task.id().0));
            }
            take_tasks(working_set, tasks);
            parents.into_iter().for_each(|parent| working_set.mark_loaded(LoadRequest::Children(TaskId(parent))));
        }
        LoadQuery::LiveChildren(parents) => {
            take_tasks(working_set, tasks);
            let loaded = |parent| LoadRequest::LiveChildren(TaskId(parent));
            parents.into_iter().for_each(|parent| working_set.mark_loaded(loaded(parent)));
        }
        LoadQuery::Messages(tasks, most) => take_messages(working_set, &tasks, &rows, most)?,
        LoadQuery::HeldBy(sessions) => {
            take_tasks(working_set, tasks);
            sessions.into_iter().for_each(|session| working_set.mark_loaded(LoadRequest::HeldBy(SessionId(session))));
        }
        LoadQuery::CancelRequested(sessions) => {
            take_tasks(working_set, tasks);
            sessions
                .into_iter()
                .for_each(|session| working_set.mark_loaded(LoadRequest::CancelRequested(SessionId(session))));
        }
        LoadQuery::IdRange(from, before) => {
            take_tasks(working_set, tasks);
            working_set.mark_loaded(LoadRequest::IdRange(TaskId(from), TaskId(before)));
        }
        LoadQuery::RunningCounts => take_running(working_set, &rows)?,
        LoadQuery::RunningSessions(but) => take_running_sessions(working_set, but, &rows)?,
        // If there are fewer rows than the limit, every waiting task is loaded. Otherwise the
        // sub-queues remain unknown, and are requested again.
        LoadQuery::Waiting(limit) if tasks.len() < limit => working_set.all_waiting(tasks),
        LoadQuery::Waiting(_) => take_tasks(working_set, tasks),
        LoadQuery::SubQueues { limit, .. } => {
            let limit = per_sub_queue.and_then(|size| usize::try_from(size).ok()).unwrap_or(limit);
            working_set.sub_queues(SubQueueRows { tasks, limit }, heads);
        }
        LoadQuery::SubQueue(sub_queue, limit) => working_set.sub_queue(&sub_queue, SubQueueRows { tasks, limit }),
        LoadQuery::Order(request, limit) => working_set.order(&request, tasks, limit),
        LoadQuery::EndedCount => working_set.ended(count(&rows)?),
        LoadQuery::Documents(_) => rows.iter().try_for_each(|row| take_document(working_set, row))?,
        LoadQuery::LiveCount(queue) => working_set.live(queue, count(&rows)?),
    }
    Ok(())
}

/// Decodes a count.
fn count(rows: &[Row]) -> Result<u64> {
    let count = rows.first().map(|row| row.try_get::<_, i64>(0)).transpose().map_err(classified)?;
    Ok(count.map_or(0, i64::cast_unsigned))
}

/// Adds tasks.
fn take_tasks(working_set: &mut WorkingSet, tasks: Vec<LoadedTask>) {
    for task in tasks {
        working_set.task(task);
    }
}

/// Adds holders of unique keys.
fn take_keys(working_set: &mut WorkingSet, rows: &[Row]) -> Result<()> {
    for row in rows {
        let get = || -> std::result::Result<KeyRow, tokio_postgres::Error> {
            Ok(KeyRow { kind: row.try_get(0)?, key: row.try_get(1)?, task: row.try_get(2)?, until: row.try_get(3)? })
        };
        working_set.key(get().map_err(classified)?)?;
    }
    Ok(())
}

/// Adds messages. An orchestration with fewer than `most` has no more.
fn take_messages(working_set: &mut WorkingSet, tasks: &[i64], rows: &[Row], most: usize) -> Result<()> {
    let mut found: BTreeMap<i64, Vec<Vec<u8>>> = tasks.iter().map(|task| (*task, Vec::new())).collect();
    for row in rows {
        let (task, body): (i64, Vec<u8>) = (row.try_get(0).map_err(classified)?, row.try_get(1).map_err(classified)?);
        found.entry(task).or_default().push(body);
    }
    for (task, messages) in found {
        working_set.messages(TaskId(task), &messages, messages.len() < most)?;
    }
    Ok(())
}

/// Adds a loaded document to the working set, with the size of its collection for the bounds.
fn take_document(working_set: &mut WorkingSet, row: &Row) -> Result<()> {
    let (document, size, collections) = loaded_document(row)?;
    working_set.document(document, size, collections);
    Ok(())
}

/// Adds the counts of running tasks.
fn take_running(working_set: &mut WorkingSet, rows: &[Row]) -> Result<()> {
    let mut running = RunningCountRows::new();
    for row in rows {
        let (session, count): (i64, i64) = (row.get(0), row.get(4));
        let (queue, kind, group): (&str, &str, &str) = (row.get(1), row.get(2), row.get(3));
        let group = if group.is_empty() { None } else { Some(Name::new(group)?) };
        running.insert((SessionId(session), Name::new(queue)?, Name::new(kind)?, group), count.cast_unsigned());
    }
    working_set.running(&running);
    Ok(())
}

/// Adds one running task of each session.
fn take_running_sessions(working_set: &mut WorkingSet, but: Vec<i64>, rows: &[Row]) -> Result<()> {
    let but = but.into_iter().map(TaskId).collect();
    let mut running_sessions = RunningSessions { but, ..RunningSessions::default() };
    for row in rows {
        let (session, task): (i64, i64) = (row.try_get(0).map_err(classified)?, row.try_get(1).map_err(classified)?);
        running_sessions.one_of.insert(SessionId(session), TaskId(task));
    }
    working_set.running_sessions(running_sessions);
    Ok(())
}

/// Runs a load query. For tasks that no longer exist, it also reads the rows that still refer to
/// them.
pub(in crate::postgres) async fn ask(
    client: &ServerConnection<'_>,
    sql: &Sql,
    query: LoadQuery,
) -> Result<QueryResult> {
    let mut found = FoundRows::default();
    rows(client, sql, &query, &mut |row| found.take(&query, row)).await?;
    let mut loaded = QueryResult { query, found, waits: Vec::new(), batch_items: Vec::new() };
    let LoadQuery::Tasks { ids, .. } = &loaded.query else { return Ok(loaded) };
    let there: BTreeSet<i64> = loaded.found.tasks.iter().map(|task| task.id().0).collect();
    let gone: Vec<i64> = ids.iter().copied().filter(|id| !there.contains(id)).collect();
    if !gone.is_empty() {
        loaded.waits =
            pairs(client, &sql.text("SELECT task, dependent FROM {s}.dependency WHERE task = ANY($1)"), &gone).await?;
        loaded.batch_items =
            pairs(client, &sql.text("SELECT task, batch FROM {s}.batch_item WHERE batch = ANY($1)"), &gone).await?;
    }
    Ok(loaded)
}

/// Runs a query for pairs of numbers.
async fn pairs(client: &ServerConnection<'_>, sql: &str, ids: &Vec<i64>) -> Result<Vec<(i64, i64)>> {
    let rows = client.query_typed(sql, &[(ids, Type::INT8_ARRAY)]).await.map_err(classified)?;
    Ok(rows.iter().map(|row| (row.get(0), row.get(1))).collect())
}
