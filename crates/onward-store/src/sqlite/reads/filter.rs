//! Converts a filter to SQL queries.

use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension};

use crate::api::error::Result;
use crate::api::store::TaskFilter;
use crate::api::task::{TaskId, TaskState};
use crate::api::timestamp::Timestamp;
use crate::bounds;
use crate::rules::prefix;
use crate::sqlite::reads::record::{FROM_ENDED, FROM_LIVE};

/// A range of task numbers.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::sqlite) struct Range {
    /// The first number; `None` for all from the beginning.
    pub(in crate::sqlite) from: Option<TaskId>,
    /// The number below which the range ends; `None` for all to the end.
    pub(in crate::sqlite) before: Option<TaskId>,
}

impl Range {
    /// Returns the range of all numbers below one.
    pub(in crate::sqlite) fn before(before: Option<TaskId>) -> Self {
        Self { from: None, before }
    }

    /// Returns true if the range has no bound.
    fn is_all(self) -> bool {
        self.from.is_none() && self.before.is_none()
    }
}

/// The tasks of a range that a filter selects.
#[derive(Debug)]
pub(super) struct Selection<'f> {
    /// The filter.
    filter: &'f TaskFilter,
    /// The range.
    range: Range,
    /// The tags that the tasks must have, the rarest first.
    tags: Vec<TagInUse>,
}

/// A tag that a task has.
#[derive(Debug, Clone, Copy)]
struct TagInUse {
    /// The tag's number.
    number: i64,
    /// The number of tasks that have it.
    tasks: u64,
}

/// A query without its columns, order and limit.
#[derive(Debug, Default)]
pub(super) struct Query {
    /// The tables.
    from: String,
    /// The conditions, all of which must hold.
    conditions: Vec<String>,
    /// The values to bind, in the order of the conditions.
    pub(in crate::sqlite) values: Vec<Value>,
    /// The column of the tasks' numbers.
    id: &'static str,
    /// The order: newest tasks first.
    order: &'static str,
}

impl Query {
    /// Adds a condition with one value.
    fn add(&mut self, condition: impl Into<String>, value: impl Into<Value>) {
        self.conditions.push(condition.into());
        self.values.push(value.into());
    }

    /// Adds a condition on a time, if there is one.
    fn add_time(&mut self, condition: &str, at: Option<Timestamp>) {
        if let Some(at) = at {
            self.add(condition, at.as_microseconds());
        }
    }

    /// Returns the conjunction of the conditions.
    fn conditions(&self) -> String {
        if self.conditions.is_empty() { "1".to_owned() } else { self.conditions.join(" AND ") }
    }

    /// Returns the query for these columns of the newest tasks. Its last bound value is the limit.
    pub(in crate::sqlite) fn newest(&self, columns: &str) -> String {
        format!("SELECT {columns} FROM {} WHERE {} ORDER BY {} LIMIT ?", self.from, self.conditions(), self.order)
    }

    /// Returns the query for the tasks' numbers, newest first. Its last bound value is the limit.
    pub(in crate::sqlite) fn ids(&self) -> String {
        self.newest(self.id)
    }

    /// Returns the query for the number of tasks.
    pub(in crate::sqlite) fn count(&self) -> String {
        format!("SELECT count(*) FROM {} WHERE {}", self.from, self.conditions())
    }
}

impl<'f> Selection<'f> {
    /// Returns the selection of `filter`; `None` if the filter has a tag that no task has.
    pub(in crate::sqlite) fn of(connection: &Connection, filter: &'f TaskFilter, range: Range) -> Result<Option<Self>> {
        if filter.tags.len() > bounds::TAGS {
            return Ok(None);
        }
        let mut tags = Vec::with_capacity(filter.tags.len());
        for (key, value) in filter.tags.iter() {
            let mut statement =
                connection.prepare_cached("SELECT number, tasks FROM tag WHERE key = ? AND value = ?")?;
            let read = |row: &rusqlite::Row<'_>| Ok(TagInUse { number: row.get(0)?, tasks: row.get(1)? });
            match statement.query_row([key, value], read).optional()? {
                Some(tag) => tags.push(tag),
                None => return Ok(None),
            }
        }
        tags.sort_unstable_by_key(|tag| tag.tasks);
        Ok(Some(Self { filter, range, tags }))
    }

    /// Returns the number of selected tasks, if a counter has it.
    pub(super) fn known_count(&self) -> Option<u64> {
        match self.tags[..] {
            [tag] if self.is_by_tags_alone() && self.range.is_all() => Some(tag.tasks),
            _ => None,
        }
    }

    /// Returns the queries that find all tasks, each task by exactly one of them.
    pub(super) fn queries(&self) -> Vec<Query> {
        match self.by_tags() {
            Some(query) => vec![query],
            None => self.live().into_iter().chain(self.ended()).collect(),
        }
    }

    /// Returns one query for live and ended tasks, if the filter has conditions on tags only.
    fn by_tags(&self) -> Option<Query> {
        if !self.is_by_tags_alone() || self.tags.is_empty() {
            return None;
        }
        let mut query = Query { from: "task_tag g".to_owned(), id: "g.task", order: "g.task DESC", ..Query::default() };
        self.add_tags(&mut query);
        self.add_range(&mut query);
        Some(query)
    }

    /// Returns true if the filter has conditions on tags only, so that the index of tags is enough.
    fn is_by_tags_alone(&self) -> bool {
        let filter = self.filter;
        let by_tags = TaskFilter { tags: filter.tags.clone(), with_payload: filter.with_payload, ..Default::default() };
        by_tags == *filter
    }

    /// Adds the range of numbers.
    fn add_range(&self, query: &mut Query) {
        if let Some(from) = self.range.from {
            query.add(format!("{} >= ?", query.id), from.0);
        }
        if let Some(before) = self.range.before {
            query.add(format!("{} < ?", query.id), before.0);
        }
    }

    /// Adds the tags. The rarest tag drives the search, and the others are looked up for each task
    /// that it finds.
    fn add_tags(&self, query: &mut Query) {
        let mut tags = self.tags.iter();
        if let Some(rarest) = tags.next() {
            query.add("g.tag = ?", rarest.number);
        }
        for tag in tags {
            query.add("EXISTS (SELECT 1 FROM task_tag o WHERE o.tag = ? AND o.task = g.task)", tag.number);
        }
    }

    /// Returns the query of live tasks; `None` if none can match.
    pub(in crate::sqlite) fn live(&self) -> Option<Query> {
        let filter = self.filter;
        let is_wanted = |state| filter.states.is_empty() || filter.states.contains(&state);
        let states: Vec<TaskState> =
            TaskState::ALL.into_iter().filter(|state| !state.is_ended() && is_wanted(*state)).collect();
        if states.is_empty() || filter.finished_from.is_some() || filter.finished_before.is_some() {
            return None;
        }
        let mut query = if states == [TaskState::Running] && self.tags.is_empty() {
            // Few tasks run, so they are found through the leases.
            let from = "lease l CROSS JOIN task t ON t.id BETWEEN l.first AND l.last".to_owned();
            self.query_from(Query { from, order: "l.first DESC, t.id DESC", id: "t.id", ..Query::default() })
        } else {
            self.query_from(self.source(FROM_LIVE))
        };
        if states.len() < 4 {
            query.conditions.push(format!("({})", states.into_iter().map(live_state).collect::<Vec<_>>().join(" OR ")));
        }
        Some(query)
    }

    /// Returns the query of ended tasks; `None` if none can match.
    pub(in crate::sqlite) fn ended(&self) -> Option<Query> {
        let filter = self.filter;
        let states = filter.states.iter().filter(|state| state.is_ended());
        let codes: Vec<String> = states.map(|state| state.code().to_string()).collect();
        if codes.is_empty() && !filter.states.is_empty() {
            return None;
        }
        let mut query = self.query_from(self.source(FROM_ENDED));
        if !codes.is_empty() {
            query.conditions.push(format!("t.state IN ({})", codes.join(", ")));
        }
        query.add_time("t.finished_at >= ?", filter.finished_from);
        query.add_time("t.finished_at < ?", filter.finished_before);
        Some(query)
    }

    /// Returns the query that finds tasks of a table: by the rarest tag if there is one, or through
    /// `instance` if only orchestrations are selected.
    fn source(&self, table: &str) -> Query {
        if self.tags.is_empty() && self.filter.orchestration == Some(true) {
            let (from, conditions) = (format!("instance i CROSS JOIN {table}"), vec!["t.id = i.task".to_owned()]);
            return Query { from, conditions, id: "i.task", order: "i.task DESC", ..Query::default() };
        }
        if self.tags.is_empty() {
            return Query { from: table.to_owned(), id: "t.id", order: "t.id DESC", ..Query::default() };
        }
        let (from, conditions) = (format!("task_tag g CROSS JOIN {table}"), vec!["t.id = g.task".to_owned()]);
        Query { from, conditions, id: "g.task", order: "g.task DESC", ..Query::default() }
    }

    /// Returns a query with the conditions that live and ended tasks share.
    fn query_from(&self, mut query: Query) -> Query {
        let filter = self.filter;
        self.add_tags(&mut query);
        self.add_range(&mut query);
        if let Some(kind) = &filter.kind {
            query.add(include_str!("../sql/filters/in_kind.sql").trim(), kind.to_string());
        }
        if let Some(queue) = &filter.queue {
            query.add(include_str!("../sql/filters/in_queue.sql").trim(), queue.to_string());
        }
        if let Some(group) = &filter.group {
            query.add(include_str!("../sql/filters/in_group.sql").trim(), group.to_string());
        }
        if let Some(key) = &filter.key {
            query.add("t.key = ?", key.clone());
        }
        if let Some(parent) = filter.parent {
            query.add(include_str!("../sql/filters/in_children_of.sql").trim(), parent.0);
        }
        if let Some(batch) = filter.batch {
            query.add("t.id IN (SELECT task FROM batch_item WHERE batch = ?)", batch.0);
        }
        if let Some(is_one) = filter.orchestration.filter(|_| query.id != "i.task") {
            let not = if is_one { "" } else { "NOT " };
            query.conditions.push(format!("{not}EXISTS (SELECT 1 FROM instance i WHERE i.task = t.id)"));
        }
        query.add_time("t.submitted_at >= ?", filter.submitted_from);
        query.add_time("t.submitted_at < ?", filter.submitted_before);
        if let Some(prefix) = &filter.tag_key_prefix {
            add_tag_key_prefix(&mut query, prefix);
        }
        if let Some(prefix) = &filter.key_prefix {
            add_key_prefix(&mut query, prefix);
        }
        if let Some(from) = filter.priority_from {
            query.add("t.priority >= ?", i64::from(from.0));
        }
        if let Some(to) = filter.priority_to {
            query.add("t.priority <= ?", i64::from(to.0));
        }
        if let Some(requested) = filter.cancel_requested {
            query.add("(t.cancel_requested > 0) = ?", requested);
        }
        query
    }
}

/// Adds a prefix of the unique key as a range of an index.
fn add_key_prefix(query: &mut Query, prefix: &str) {
    query.add("t.key >= ?", prefix.to_owned());
    if let Some(end) = prefix::end(prefix) {
        query.add("t.key < ?", end);
    }
}

/// Adds a prefix of a tag's key as a range of an index.
fn add_tag_key_prefix(query: &mut Query, prefix: &str) {
    let Some(end) = prefix::end(prefix) else {
        return query.add(include_str!("../sql/filters/has_tag_key_from.sql").trim(), prefix.to_owned());
    };
    query.add(include_str!("../sql/filters/has_tag_key_within.sql").trim(), prefix.to_owned());
    query.values.push(end.into());
}

/// Returns the condition for the state of a live task.
fn live_state(state: TaskState) -> &'static str {
    match state {
        TaskState::Running => "l.first IS NOT NULL",
        TaskState::Scheduled => "(l.first IS NULL AND t.scheduled = 1)",
        TaskState::Blocked => "(l.first IS NULL AND t.scheduled = 2)",
        _ => "(l.first IS NULL AND t.scheduled = 0)",
    }
}
