//! Listings of tasks.

use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};

use crate::error::Result;
use crate::limits;
use crate::sqlite::reads::record::{ENDED, FROM_ENDED, FROM_LIVE, LIVE, complete, read};
use crate::store::{Page, TaskFilter, TaskPage};
use crate::task::{TaskRecord, TaskState};
use crate::timestamp::Timestamp;

/// The conditions of a listing and their values.
#[derive(Default)]
struct Conditions {
    sql: Vec<String>,
    values: Vec<Value>,
}

impl Conditions {
    fn add(&mut self, sql: &str, value: impl Into<Value>) {
        self.sql.push(sql.to_owned());
        self.values.push(value.into());
    }

    fn of(filter: &TaskFilter, page: Page) -> Self {
        let mut conditions = Self::default();
        if let Some(before) = page.before {
            conditions.add("t.id < ?", before.0);
        }
        if let Some(kind) = &filter.kind {
            conditions.add("k.name = ?", kind.to_string());
        }
        if let Some(queue) = &filter.queue {
            conditions.add("q.name = ?", queue.to_string());
        }
        if let Some(key) = &filter.key {
            conditions.add("t.key = ?", key.clone());
        }
        let mut time = |sql, at: Option<Timestamp>| {
            if let Some(at) = at {
                conditions.add(sql, at.as_microseconds());
            }
        };
        time("t.submitted_at >= ?", filter.submitted_from);
        time("t.submitted_at < ?", filter.submitted_before);
        conditions
    }

    fn sql(&self) -> String {
        if self.sql.is_empty() { "1".to_owned() } else { self.sql.join(" AND ") }
    }
}

/// A page of tasks, newest first: the newest of the live and of the ended ones, merged.
pub(in crate::sqlite) fn tasks(connection: &Connection, filter: &TaskFilter, page: Page) -> Result<TaskPage> {
    let limit = page.limit.clamp(1, limits::PAGE);
    let mut tasks = live(connection, filter, page, limit + 1)?;
    tasks.extend(ended(connection, filter, page, limit + 1)?);
    tasks.sort_unstable_by_key(|task| std::cmp::Reverse(task.id));
    let more = tasks.len() > limit;
    tasks.truncate(limit);
    for task in &mut tasks {
        complete(connection, task)?;
    }
    let next = tasks.last().filter(|_| more).map(|task| task.id);
    Ok(TaskPage { tasks, next })
}

fn live(connection: &Connection, filter: &TaskFilter, page: Page, limit: usize) -> Result<Vec<TaskRecord>> {
    let wanted = |state| filter.states.is_empty() || filter.states.contains(&state);
    let states: Vec<TaskState> =
        TaskState::ALL.into_iter().filter(|state| !state.is_ended() && wanted(*state)).collect();
    if states.is_empty() || filter.finished_from.is_some() || filter.finished_before.is_some() {
        return Ok(Vec::new());
    }
    let mut conditions = Conditions::of(filter, page);
    let running_alone = states == [TaskState::Running];
    if states.len() < 3 && !running_alone {
        let state = |state| match state {
            TaskState::Running => "l.task IS NOT NULL",
            TaskState::Scheduled => "(l.task IS NULL AND t.scheduled = 1)",
            _ => "(l.task IS NULL AND t.scheduled = 0)",
        };
        conditions.sql.push(format!("({})", states.into_iter().map(state).collect::<Vec<_>>().join(" OR ")));
    }
    let payload = if filter.with_payload { ", t.payload, NULL" } else { "" };
    // Few tasks run, so those are looked for among the leases.
    let from = if running_alone {
        "lease l CROSS JOIN task t ON t.id = l.task CROSS JOIN lane n ON n.id = t.lane \
        CROSS JOIN queue q ON q.id = n.queue CROSS JOIN kind k ON k.id = n.kind"
    } else {
        FROM_LIVE
    };
    let order = if running_alone { "l.task" } else { "t.id" };
    let sql =
        format!("SELECT {LIVE}{payload} FROM {from} WHERE {} ORDER BY {order} DESC LIMIT {limit}", conditions.sql());
    select(connection, &sql, conditions.values, filter.with_payload)
}

fn ended(connection: &Connection, filter: &TaskFilter, page: Page, limit: usize) -> Result<Vec<TaskRecord>> {
    let states: Vec<&TaskState> = filter.states.iter().filter(|state| state.is_ended()).collect();
    if states.is_empty() && !filter.states.is_empty() {
        return Ok(Vec::new());
    }
    let mut conditions = Conditions::of(filter, page);
    if !states.is_empty() {
        let codes: Vec<String> = states.iter().map(|state| state.code().to_string()).collect();
        conditions.sql.push(format!("t.state IN ({})", codes.join(", ")));
    }
    if let Some(from) = filter.finished_from {
        conditions.add("t.finished_at >= ?", from.as_microseconds());
    }
    if let Some(before) = filter.finished_before {
        conditions.add("t.finished_at < ?", before.as_microseconds());
    }
    let payload = if filter.with_payload { ", t.payload, t.result" } else { "" };
    let sql = format!(
        "SELECT {ENDED}{payload} FROM {FROM_ENDED} WHERE {} ORDER BY t.id DESC LIMIT {limit}",
        conditions.sql()
    );
    select(connection, &sql, conditions.values, filter.with_payload)
}

fn select(connection: &Connection, sql: &str, values: Vec<Value>, with_payload: bool) -> Result<Vec<TaskRecord>> {
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query(params_from_iter(values))?;
    let mut tasks = Vec::new();
    while let Some(row) = rows.next()? {
        tasks.push(read(row, with_payload)?);
    }
    Ok(tasks)
}
