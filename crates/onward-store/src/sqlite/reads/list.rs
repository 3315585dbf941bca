//! Listings of tasks.

use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};

use crate::api::error::Result;
use crate::api::store::{Page, TaskFilter, TaskIdPage, TaskPage};
use crate::api::task::{TaskId, TaskRecord};
use crate::bounds;
use crate::sqlite::reads::filter::{Query, Range, Selection};
use crate::sqlite::reads::record::{ENDED, LIVE, complete, read};
use crate::sqlite::reads::sub_queue_names::SubQueueNames;

/// Returns a page of tasks, the newest first. It merges the newest live and the newest ended tasks.
pub(in crate::sqlite) fn tasks(connection: &Connection, filter: &TaskFilter, page: Page) -> Result<TaskPage> {
    let limit = page.limit.clamp(1, bounds::PAGE);
    let Some(selection) = Selection::of(connection, filter, Range::before(page.before))? else {
        return Ok(TaskPage::default());
    };
    let mut listing =
        Listing { names: SubQueueNames::new(connection), connection, payload: filter.with_payload, limit: limit + 1 };
    let mut tasks = listing.select(selection.live(), LIVE, "t.payload, NULL")?;
    tasks.extend(listing.select(selection.ended(), ENDED, "t.payload, t.result")?);
    tasks.sort_unstable_by_key(|task| std::cmp::Reverse(task.id));
    let more = tasks.len() > limit;
    tasks.truncate(limit);
    complete(connection, &mut tasks)?;
    let next = tasks.last().filter(|_| more).map(|task| task.id);
    Ok(TaskPage { tasks, next })
}

/// The state of a listing.
struct Listing<'a> {
    /// The connection.
    connection: &'a Connection,
    /// The names of sub-queues.
    names: SubQueueNames<'a>,
    /// True if records include payloads.
    payload: bool,
    /// The most records.
    limit: usize,
}

impl Listing<'_> {
    /// Runs a query for live or for ended tasks.
    fn select(&mut self, query: Option<Query>, columns: &str, payload: &str) -> Result<Vec<TaskRecord>> {
        let Some(query) = query else { return Ok(Vec::new()) };
        let sql = if self.payload { query.newest(&format!("{columns}, {payload}")) } else { query.newest(columns) };
        let mut statement = self.connection.prepare_cached(&sql)?;
        let mut rows = statement.query(params_from_iter(with_limit(query.values, self.limit)))?;
        let mut tasks = Vec::new();
        while let Some(row) = rows.next()? {
            tasks.push(read(row, &mut self.names, self.payload)?);
        }
        Ok(tasks)
    }
}

/// Appends the limit to the values of a query.
fn with_limit(mut values: Vec<Value>, limit: usize) -> Vec<Value> {
    values.push(Value::Integer(i64::try_from(limit).unwrap_or(i64::MAX)));
    values
}

/// Returns the numbers of a page of tasks, highest first.
pub(in crate::sqlite) fn task_ids(connection: &Connection, filter: &TaskFilter, page: Page) -> Result<TaskIdPage> {
    let limit = page.limit.clamp(1, bounds::ID_PAGE);
    Ok(TaskIdPage::of(newest_ids(connection, filter, Range::before(page.before), limit + 1)?, limit))
}

/// Returns the numbers of the newest tasks, highest first.
pub(in crate::sqlite) fn newest_ids(
    connection: &Connection,
    filter: &TaskFilter,
    range: Range,
    limit: usize,
) -> Result<Vec<TaskId>> {
    let Some(selection) = Selection::of(connection, filter, range)? else { return Ok(Vec::new()) };
    let queries = selection.queries();
    let mut ids = Vec::new();
    for query in &queries {
        let mut statement = connection.prepare_cached(&query.ids())?;
        let mut rows = statement.query(params_from_iter(with_limit(query.values.clone(), limit)))?;
        while let Some(row) = rows.next()? {
            ids.push(TaskId(row.get(0)?));
        }
    }
    if queries.len() > 1 {
        ids.sort_unstable_by_key(|id| std::cmp::Reverse(*id));
        ids.truncate(limit);
    }
    Ok(ids)
}

/// Returns the number of tasks that a filter selects.
pub(in crate::sqlite) fn count(connection: &Connection, filter: &TaskFilter) -> Result<u64> {
    let Some(selection) = Selection::of(connection, filter, Range::default())? else { return Ok(0) };
    if let Some(known) = selection.known_count() {
        return Ok(known);
    }
    let mut tasks = 0;
    for query in selection.queries() {
        let mut statement = connection.prepare_cached(&query.count())?;
        tasks += statement.query_row(params_from_iter(query.values), |row| row.get::<_, u64>(0))?;
    }
    Ok(tasks)
}
