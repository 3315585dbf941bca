//! Listings of tasks.

use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};

use crate::error::Result;
use crate::limits;
use crate::sqlite::reads::lane_names::LaneNames;
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
            conditions.add(include_str!("../sql/in_lanes_of_kind.sql").trim(), kind.to_string());
        }
        if let Some(queue) = &filter.queue {
            conditions.add(include_str!("../sql/in_lanes_of_queue.sql").trim(), queue.to_string());
        }
        if let Some(key) = &filter.key {
            conditions.add("t.key = ?", key.clone());
        }
        if let Some(parent) = filter.parent {
            conditions.add(include_str!("../sql/in_children_of.sql").trim(), parent.0);
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
    let mut listing = Listing { names: LaneNames::new(connection), connection, filter, page, limit: limit + 1 };
    let mut tasks = listing.live()?;
    tasks.extend(listing.ended()?);
    tasks.sort_unstable_by_key(|task| std::cmp::Reverse(task.id));
    let more = tasks.len() > limit;
    tasks.truncate(limit);
    complete(connection, &mut tasks)?;
    let next = tasks.last().filter(|_| more).map(|task| task.id);
    Ok(TaskPage { tasks, next })
}

/// What a listing works on.
struct Listing<'a> {
    connection: &'a Connection,
    names: LaneNames<'a>,
    filter: &'a TaskFilter,
    page: Page,
    limit: usize,
}

impl Listing<'_> {
    fn live(&mut self) -> Result<Vec<TaskRecord>> {
        let (filter, limit) = (self.filter, self.limit);
        let wanted = |state| filter.states.is_empty() || filter.states.contains(&state);
        let states: Vec<TaskState> =
            TaskState::ALL.into_iter().filter(|state| !state.is_ended() && wanted(*state)).collect();
        if states.is_empty() || filter.finished_from.is_some() || filter.finished_before.is_some() {
            return Ok(Vec::new());
        }
        let mut conditions = Conditions::of(filter, self.page);
        let running_alone = states == [TaskState::Running];
        if states.len() < 4 && !running_alone {
            let state = |state| match state {
                TaskState::Running => "l.first IS NOT NULL",
                TaskState::Blocked => "(l.first IS NULL AND t.scheduled = 2)",
                TaskState::Scheduled => "(l.first IS NULL AND t.scheduled = 1)",
                _ => "(l.first IS NULL AND t.scheduled = 0)",
            };
            conditions.sql.push(format!("({})", states.into_iter().map(state).collect::<Vec<_>>().join(" OR ")));
        }
        let payload = if filter.with_payload { ", t.payload, NULL" } else { "" };
        // Few tasks run, so those are looked for among the leases.
        let from =
            if running_alone { "lease l CROSS JOIN task t ON t.id BETWEEN l.first AND l.last" } else { FROM_LIVE };
        let order = if running_alone { "l.first DESC, t.id" } else { "t.id" };
        let sql = format!(
            "SELECT {LIVE}{payload} FROM {from} WHERE {} ORDER BY {order} DESC LIMIT {limit}",
            conditions.sql()
        );
        self.select(&sql, conditions.values)
    }

    fn ended(&mut self) -> Result<Vec<TaskRecord>> {
        let (filter, limit) = (self.filter, self.limit);
        let states: Vec<&TaskState> = filter.states.iter().filter(|state| state.is_ended()).collect();
        if states.is_empty() && !filter.states.is_empty() {
            return Ok(Vec::new());
        }
        let mut conditions = Conditions::of(filter, self.page);
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
        self.select(&sql, conditions.values)
    }

    fn select(&mut self, sql: &str, values: Vec<Value>) -> Result<Vec<TaskRecord>> {
        let mut statement = self.connection.prepare_cached(sql)?;
        let mut rows = statement.query(params_from_iter(values))?;
        let mut tasks = Vec::new();
        while let Some(row) = rows.next()? {
            tasks.push(read(row, &mut self.names, self.filter.with_payload)?);
        }
        Ok(tasks)
    }
}
