//! Writing tasks: new ones as whole rows, others only in the columns that changed, so that the rest
//! is not sent again.

use tokio_postgres::types::{ToSql, Type};

use crate::postgres::commit::write_rows::{Statements, Values};
use crate::postgres::speculation::columnar_write;
use crate::postgres::working_set::change_set::ChangeSet;
use crate::postgres::working_set::task_row::{ChangedRow, InstanceRow, TaskRow};

/// The values of one column, and their type.
macro_rules! column {
    ($rows:expr, $sort:expr, |$row:ident| $value:expr) => {{
        let values: Vec<_> = $rows.iter().map(|$row| $value).collect();
        (Box::new(values) as Box<dyn ToSql + Sync + Send + 'a>, $sort)
    }};
}

/// The columns of a task except its payload.
const COLUMNS: &str = "id, state, queue, kind, task_group, affinity, sort_key, priority, run_at, expires_at, overdue_at, session, \
     cancel_requested, parent, submitted_at, key, result, finished_at, end_number, ended_in, body, instance, orchestration";

/// Adds the statements for tasks and their tags.
pub(in crate::postgres) fn tasks<'a>(statements: &mut Statements<'a>, change_set: &'a ChangeSet) {
    statements.send_list("DELETE FROM {s}.task WHERE id = ANY($1)", &change_set.removed_live);
    statements.send_list("DELETE FROM {s}.history WHERE id = ANY($1)", &change_set.removed_ended);
    statements.send_list("DELETE FROM {s}.task_tag WHERE task = ANY($1)", &change_set.removed_live);
    statements.send_list("DELETE FROM {s}.task_tag WHERE task = ANY($1)", &change_set.removed_ended);
    columnar_write::insert(statements, &change_set.live_columnar);
    columnar_write::start(statements, &change_set.started_columnar);
    columnar_write::finish(statements, &change_set.finished_columnar);
    insert(statements, &change_set.live);
    start(statements, &change_set.started);
    change(statements, &change_set.changed);
    advance(statements, &change_set.advanced);
    finish(statements, &change_set.finished);
    put(statements, "task", "history", &change_set.rewritten, &change_set.revived);
    put(statements, "history", "task", &change_set.ended, &change_set.moved);
    let gone =
        "DELETE FROM {s}.task_tag t USING unnest($1, $2) AS u (task, tag) WHERE t.tag = u.tag AND t.task = u.task";
    tags(statements, gone, &change_set.gone_tags);
    tags(statements, "INSERT INTO {s}.task_tag (task, tag) SELECT * FROM unnest($1, $2)", &change_set.tags);
}

/// Adds a statement with pairs of task and tag, unless there are none.
fn tags<'a>(statements: &mut Statements<'a>, statement: &str, tags: &'a [(i64, Vec<u8>)]) {
    if tags.is_empty() {
        return;
    }
    let (tasks, tags): (Vec<i64>, Vec<&[u8]>) = tags.iter().map(|(task, tag)| (*task, tag.as_slice())).unzip();
    statements.send(statement, vec![(Box::new(tasks), Type::INT8_ARRAY), (Box::new(tags), Type::BYTEA_ARRAY)]);
}

/// Inserts new live tasks.
fn insert<'a>(statements: &mut Statements<'a>, rows: &'a [TaskRow]) {
    if rows.is_empty() {
        return;
    }
    let source: Vec<String> = (1..=24).map(|number| format!("${number}")).collect();
    let statement = format!(
        "INSERT INTO {{s}}.task ({COLUMNS}, payload) SELECT {}, u.payload FROM unnest({}) AS u ({COLUMNS}, payload)",
        taken_from_values(),
        source.join(", "),
    );
    statements.send(&statement, columns_of(rows));
}

/// Updates the columns that the start of an attempt changes.
fn start<'a>(statements: &mut Statements<'a>, rows: &'a [ChangedRow]) {
    if rows.is_empty() {
        return;
    }
    statements.send(
        "UPDATE {s}.task t SET state = u.state, session = u.session, expires_at = u.expires_at, body = u.body::json \
         FROM unnest($1, $2, $3, $4, $5) AS u (id, state, session, expires_at, body) WHERE t.id = u.id",
        vec![
            column!(rows, Type::INT8_ARRAY, |row| row.id),
            column!(rows, Type::INT2_ARRAY, |row| row.state),
            column!(rows, Type::INT8_ARRAY, |row| row.session),
            column!(rows, Type::INT8_ARRAY, |row| row.expires_at),
            column!(rows, Type::TEXT_ARRAY, |row| row.body.as_str()),
        ],
    );
}

/// Updates the columns that may change while the submission stays the same.
fn change<'a>(statements: &mut Statements<'a>, rows: &'a [ChangedRow]) {
    if rows.is_empty() {
        return;
    }
    statements.send(
        "UPDATE {s}.task t SET state = u.state, sort_key = u.sort_key, run_at = u.run_at, expires_at = u.expires_at, \
           overdue_at = u.overdue_at, session = u.session, cancel_requested = u.cancel_requested, result = u.result, body = u.body::json, \
           instance = coalesce(u.instance, t.instance) \
         FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) \
           AS u (id, state, sort_key, run_at, expires_at, overdue_at, session, cancel_requested, result, body, instance) \
         WHERE t.id = u.id",
        vec![
            column!(rows, Type::INT8_ARRAY, |row| row.id),
            column!(rows, Type::INT2_ARRAY, |row| row.state),
            column!(rows, Type::INT8_ARRAY, |row| row.sort_key),
            column!(rows, Type::INT8_ARRAY, |row| row.run_at),
            column!(rows, Type::INT8_ARRAY, |row| row.expires_at),
            column!(rows, Type::INT8_ARRAY, |row| row.overdue_at),
            column!(rows, Type::INT8_ARRAY, |row| row.session),
            column!(rows, Type::BOOL_ARRAY, |row| row.cancel_requested),
            column!(rows, Type::BYTEA_ARRAY, |row| row.result.as_deref()),
            column!(rows, Type::TEXT_ARRAY, |row| row.body.as_str()),
            column!(rows, Type::BYTEA_ARRAY, |row| row.instance.as_deref()),
        ],
    );
}

/// Updates the instances of orchestrations that continue.
fn advance<'a>(statements: &mut Statements<'a>, rows: &'a [InstanceRow]) {
    if rows.is_empty() {
        return;
    }
    statements.send(
        "UPDATE {s}.task t SET instance = u.instance FROM unnest($1, $2) AS u (id, instance) WHERE t.id = u.id",
        vec![
            column!(rows, Type::INT8_ARRAY, |row| row.id),
            column!(rows, Type::BYTEA_ARRAY, |row| row.instance.as_slice()),
        ],
    );
}

/// Moves tasks that end to the history. Unchanged columns are copied within the server.
fn finish<'a>(statements: &mut Statements<'a>, rows: &'a [ChangedRow]) {
    if rows.is_empty() {
        return;
    }
    statements.send(
        "WITH gone AS (DELETE FROM {s}.task t USING unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) \
             AS u (id, state, sort_key, run_at, expires_at, cancel_requested, result, finished_at, end_number, ended_in, body) \
           WHERE t.id = u.id \
           RETURNING t.id, u.state, t.queue, t.kind, t.task_group, t.affinity, u.sort_key, t.priority, u.run_at, u.expires_at, u.cancel_requested, t.parent, \
             t.submitted_at, t.key, t.payload, u.result, u.finished_at, u.end_number, u.ended_in, u.body, t.instance, t.orchestration) \
         INSERT INTO {s}.history (id, state, queue, kind, task_group, affinity, sort_key, priority, run_at, expires_at, cancel_requested, parent, \
           submitted_at, key, payload, result, finished_at, end_number, ended_in, body, instance, orchestration) \
         SELECT id, state, queue, kind, task_group, affinity, sort_key, priority, run_at, expires_at, cancel_requested, parent, \
           submitted_at, key, payload, result, finished_at, end_number, ended_in, body::json, instance, orchestration FROM gone",
        vec![
            column!(rows, Type::INT8_ARRAY, |row| row.id),
            column!(rows, Type::INT2_ARRAY, |row| row.state),
            column!(rows, Type::INT8_ARRAY, |row| row.sort_key),
            column!(rows, Type::INT8_ARRAY, |row| row.run_at),
            column!(rows, Type::INT8_ARRAY, |row| row.expires_at),
            column!(rows, Type::BOOL_ARRAY, |row| row.cancel_requested),
            column!(rows, Type::BYTEA_ARRAY, |row| row.result.as_deref()),
            column!(rows, Type::INT8_ARRAY, |row| row.finished_at),
            column!(rows, Type::INT8_ARRAY, |row| row.end_number),
            column!(rows, Type::INT8_ARRAY, |row| row.ended_in),
            column!(rows, Type::TEXT_ARRAY, |row| row.body.as_str()),
        ],
    );
}

/// Returns the expressions that select the columns from the parameters.
fn taken_from_values() -> String {
    let taken: Vec<String> = COLUMNS.split(", ").map(|column| format!("u.{column}")).collect();
    taken.join(", ").replace("u.body", "u.body::json")
}

/// Inserts or updates whole rows in one table. Rows that move take their payload from the other
/// table, so that it is not sent again.
fn put<'a>(statements: &mut Statements<'a>, table: &str, other: &str, rows: &'a [TaskRow], moved: &'a Vec<i64>) {
    if rows.is_empty() {
        return;
    }
    let set: Vec<String> = COLUMNS.split(", ").skip(1).map(|column| format!("{column} = excluded.{column}")).collect();
    let source: Vec<String> = (2..=25).map(|number| format!("${number}")).collect();
    let statement = format!(
        "WITH gone AS (DELETE FROM {{s}}.{other} WHERE id = ANY($1) RETURNING id, payload) \
         INSERT INTO {{s}}.{table} ({COLUMNS}, payload) \
         SELECT {}, coalesce(u.payload, gone.payload) FROM unnest({}) AS u ({COLUMNS}, payload) \
         LEFT JOIN gone ON gone.id = u.id \
         ON CONFLICT (id) DO UPDATE SET {}, payload = coalesce(excluded.payload, {table}.payload)",
        taken_from_values(),
        source.join(", "),
        set.join(", ")
    );
    let mut values: Values<'a> = vec![(Box::new(moved), Type::INT8_ARRAY)];
    values.extend(columns_of(rows));
    statements.send(&statement, values);
}

/// Returns the values of all columns, in the order of [`COLUMNS`], and the payloads.
fn columns_of<'a>(rows: &'a [TaskRow]) -> Values<'a> {
    vec![
        column!(rows, Type::INT8_ARRAY, |row| row.id),
        column!(rows, Type::INT2_ARRAY, |row| row.state),
        column!(rows, Type::TEXT_ARRAY, |row| row.queue.as_str()),
        column!(rows, Type::TEXT_ARRAY, |row| row.kind.as_str()),
        column!(rows, Type::TEXT_ARRAY, |row| row.group.as_str()),
        column!(rows, Type::TEXT_ARRAY, |row| row.affinity_key.as_str()),
        column!(rows, Type::INT8_ARRAY, |row| row.sort_key),
        column!(rows, Type::INT2_ARRAY, |row| row.priority),
        column!(rows, Type::INT8_ARRAY, |row| row.run_at),
        column!(rows, Type::INT8_ARRAY, |row| row.expires_at),
        column!(rows, Type::INT8_ARRAY, |row| row.overdue_at),
        column!(rows, Type::INT8_ARRAY, |row| row.session),
        column!(rows, Type::BOOL_ARRAY, |row| row.cancel_requested),
        column!(rows, Type::INT8_ARRAY, |row| row.parent),
        column!(rows, Type::INT8_ARRAY, |row| row.submitted_at),
        column!(rows, Type::BYTEA_ARRAY, |row| row.key.as_deref()),
        column!(rows, Type::BYTEA_ARRAY, |row| row.result.as_deref()),
        column!(rows, Type::INT8_ARRAY, |row| row.finished_at),
        column!(rows, Type::INT8_ARRAY, |row| row.end_number),
        column!(rows, Type::INT8_ARRAY, |row| row.ended_in),
        column!(rows, Type::TEXT_ARRAY, |row| row.body.as_str()),
        column!(rows, Type::BYTEA_ARRAY, |row| row.instance.as_deref()),
        column!(rows, Type::BOOL_ARRAY, |row| row.orchestration),
        column!(rows, Type::BYTEA_ARRAY, |row| row.payload.as_deref()),
    ]
}
