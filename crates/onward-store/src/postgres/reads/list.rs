//! Listings and counts of tasks.

use std::collections::BTreeSet;

use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::filter::Condition;
use super::model_reads::{ask, end, within};
use crate::api::error::Result;
use crate::api::store::{Page, TaskFilter, TaskIdPage, TaskPage};
use crate::api::task::TaskId;
use crate::bounds;
use crate::model::LoadRequest;
use crate::postgres::connect::error::classified;
use crate::postgres::load::query::number;
use crate::postgres::shared::Shared;
use crate::postgres::working_set::contents::WorkingSet;

/// Returns a page of tasks, the newest first.
pub(in crate::postgres) async fn tasks(shared: &Shared, filter: TaskFilter, page: Page) -> Result<TaskPage> {
    let limit = page.limit.clamp(1, bounds::PAGE);
    let client = shared.pool.get().await?;
    // The tasks may have changed since their numbers were found. Some may then no longer match the
    // filter.
    let (statement, condition) = numbers(&filter, page.before, limit + 1);
    let rows = client.query_typed(&shared.sql.text(&statement), &condition.parameters()).await.map_err(classified)?;
    let mut ids: Vec<TaskId> = rows.iter().map(id).collect();
    let more = ids.len() > limit;
    ids.truncate(limit);
    let requests: BTreeSet<LoadRequest> = ids.iter().copied().map(LoadRequest::Task).collect();
    let records = |working_set: &mut WorkingSet, _| working_set.records(&ids, filter.with_payload);
    let (tasks, is_unflushed) = within(&client, shared, requests, records).await?;
    end(&client, shared, is_unflushed).await?;
    client.give_back();
    let next = ids.last().copied().filter(|_| more);
    Ok(TaskPage { tasks, next })
}

/// Returns a page of task numbers, the newest first.
pub(in crate::postgres) async fn task_ids(shared: &Shared, filter: TaskFilter, page: Page) -> Result<TaskIdPage> {
    let limit = page.limit.clamp(1, bounds::ID_PAGE);
    let client = shared.pool.get().await?;
    let (statement, condition) = numbers(&filter, page.before, limit + 1);
    let rows = ask(&client, shared, &statement, &condition.parameters()).await?;
    client.give_back();
    Ok(TaskIdPage::of(rows.iter().map(id).collect(), limit))
}

/// Returns the query for the numbers of a page.
fn numbers(filter: &TaskFilter, before: Option<TaskId>, limit: usize) -> (String, Condition) {
    let mut condition = Condition::of(filter);
    if let Some(before) = before {
        condition.add("t.id < $", Box::new(before.0), Type::INT8);
    }
    let limit = condition.parameter(Box::new(number(limit)), Type::INT8);
    let text = condition.text();
    let statement = format!(
        "(SELECT t.id FROM {{s}}.task t WHERE {text} ORDER BY t.id DESC LIMIT {limit}) UNION ALL \
         (SELECT t.id FROM {{s}}.history t WHERE {text} ORDER BY t.id DESC LIMIT {limit}) ORDER BY 1 DESC LIMIT {limit}"
    );
    (statement, condition)
}

/// Decodes a task number.
fn id(row: &Row) -> TaskId {
    TaskId(row.get(0))
}

/// Returns the number of tasks that match a filter.
pub(in crate::postgres) async fn count(shared: &Shared, filter: TaskFilter) -> Result<u64> {
    let condition = Condition::of(&filter);
    let text = condition.text();
    let statement = format!(
        "SELECT (SELECT count(*) FROM {{s}}.task t WHERE {text}) + (SELECT count(*) FROM {{s}}.history t WHERE {text})"
    );
    let client = shared.pool.get().await?;
    let rows = ask(&client, shared, &statement, &condition.parameters()).await?;
    client.give_back();
    Ok(rows.first().map_or(0, |row| row.get::<_, i64>(0).cast_unsigned()))
}
