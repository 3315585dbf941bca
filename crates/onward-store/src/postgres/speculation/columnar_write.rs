//! Writing columnar batches: common values are sent once, and the server parses them once.
//!
//! Sending one value instead of an array saves its encoding here, and on the server its decoding
//! and, for the body, the parsing of JSON for each row.

use tokio_postgres::types::{ToSql, Type};

use crate::postgres::commit::write_rows::{Statements, Values};
use crate::postgres::speculation::columnar_batch::ColumnarBatch;
use crate::postgres::working_set::task_row::TaskRow;

/// The columns of the rows for an `INSERT`: each is a value that all rows have in common, or an
/// array with one value per row.
#[derive(Default)]
struct Columns<'a> {
    /// The names of the columns.
    names: Vec<&'static str>,
    /// The expression selected for each column.
    sources: Vec<String>,
    /// The columns with an array.
    differ: Vec<&'static str>,
    /// The parameters of these arrays.
    arrays: Vec<String>,
    /// The values of all parameters.
    values: Values<'a>,
}

impl<'a> Columns<'a> {
    /// Adds the columns that all rows share. The subquery makes the server parse the body once,
    /// instead of once per row.
    fn of_all(row: &'a TaskRow) -> Self {
        let mut columns = Self::default();
        columns.same("state", row.state, Type::INT2);
        columns.same("queue", row.queue.as_str(), Type::TEXT);
        columns.same("kind", row.kind.as_str(), Type::TEXT);
        columns.same("affinity", row.affinity_key.as_str(), Type::TEXT);
        columns.same("priority", row.priority, Type::INT2);
        columns.same("expires_at", row.expires_at, Type::INT8);
        columns.same("session", row.session, Type::INT8);
        columns.same("cancel_requested", row.cancel_requested, Type::BOOL);
        columns.same("parent", row.parent, Type::INT8);
        columns.same("finished_at", row.finished_at, Type::INT8);
        columns.same("ended_in", row.ended_in, Type::INT8);
        let body = columns.parameter(row.body.as_str(), Type::TEXT);
        columns.column("body", format!("(SELECT {body}::json)"));
        columns
    }

    /// Adds a parameter and returns its placeholder.
    fn parameter(&mut self, value: impl ToSql + Sync + Send + 'a, sort: Type) -> String {
        self.values.push((Box::new(value), sort));
        format!("${}", self.values.len())
    }

    /// Adds a column with its expression.
    fn column(&mut self, name: &'static str, source: String) {
        self.names.push(name);
        self.sources.push(source);
    }

    /// Adds a column with one value for all rows.
    fn same(&mut self, name: &'static str, value: impl ToSql + Sync + Send + 'a, sort: Type) {
        let source = self.parameter(value, sort);
        self.column(name, source);
    }

    /// Adds a column with a value per row, or with a single one if all values are equal.
    fn each<T: ToSql + Sync + Send + PartialEq + Copy + 'a>(
        &mut self,
        name: &'static str,
        values: Vec<T>,
        sort: Type,
        array: Type,
    ) {
        match values.first() {
            Some(first) if values.iter().all(|value| value == first) => self.same(name, *first, sort),
            _ => self.array(name, values, array),
        }
    }

    /// Adds a column with an array.
    fn array<T: ToSql + Sync + Send + 'a>(&mut self, name: &'static str, values: Vec<T>, array: Type) {
        let parameter = self.parameter(values, array);
        self.arrays.push(parameter);
        self.differ.push(name);
        self.column(name, format!("u.{name}"));
    }

    /// Adds the columns in which the tasks of a batch differ. The number is always an array:
    /// `unnest` needs at least one.
    fn of_each(&mut self, group: &'a ColumnarBatch) {
        self.array("id", group.ids(), Type::INT8_ARRAY);
        self.each("task_group", group.groups(), Type::TEXT, Type::TEXT_ARRAY);
        self.each("key", group.keys(), Type::BYTEA, Type::BYTEA_ARRAY);
        self.each("payload", group.payloads(), Type::BYTEA, Type::BYTEA_ARRAY);
        self.each("sort_key", group.sort_keys(), Type::INT8, Type::INT8_ARRAY);
        self.each("run_at", group.run_at(), Type::INT8, Type::INT8_ARRAY);
        self.each("submitted_at", group.submitted_at(), Type::INT8, Type::INT8_ARRAY);
        self.each("result", group.results(), Type::BYTEA, Type::BYTEA_ARRAY);
        self.each("end_number", group.end_numbers(), Type::INT8, Type::INT8_ARRAY);
    }

    /// Sends the `INSERT`.
    fn insert_into(self, statements: &mut Statements<'a>, table: &str) {
        let statement = format!(
            "INSERT INTO {{s}}.{table} ({}) SELECT {} FROM unnest({}) AS u ({})",
            self.names.join(", "),
            self.sources.join(", "),
            self.arrays.join(", "),
            self.differ.join(", "),
        );
        statements.send(&statement, self.values);
    }
}

/// Inserts a batch into one of the tables `task` and `history`.
fn insert_into<'a>(statements: &mut Statements<'a>, table: &str, group: &'a ColumnarBatch) {
    let mut columns = Columns::of_all(&group.row);
    columns.of_each(group);
    columns.insert_into(statements, table);
}

/// Inserts new live tasks.
pub(in crate::postgres) fn insert<'a>(statements: &mut Statements<'a>, groups: &'a [ColumnarBatch]) {
    groups.iter().for_each(|group| insert_into(statements, "task", group));
}

/// Updates the columns that the start of an attempt changes.
pub(in crate::postgres) fn start<'a>(statements: &mut Statements<'a>, groups: &'a [ColumnarBatch]) {
    for group in groups {
        statements.send(
            "UPDATE {s}.task SET state = $2, session = $3, expires_at = $4, body = (SELECT $5::json) WHERE id = ANY($1)",
            vec![
                (Box::new(group.ids()), Type::INT8_ARRAY),
                (Box::new(group.row.state), Type::INT2),
                (Box::new(group.row.session), Type::INT8),
                (Box::new(group.row.expires_at), Type::INT8),
                (Box::new(group.row.body.as_str()), Type::TEXT),
            ],
        );
    }
}

/// Moves tasks that end to the history. Their payloads are small and are sent again: an `INSERT` of
/// values costs the server less than moving a row between tables.
pub(in crate::postgres) fn finish<'a>(statements: &mut Statements<'a>, groups: &'a [ColumnarBatch]) {
    groups.iter().for_each(|group| insert_into(statements, "history", group));
    let ids: Vec<i64> = groups.iter().flat_map(ColumnarBatch::ids).collect();
    if !ids.is_empty() {
        statements.send("DELETE FROM {s}.task WHERE id = ANY($1)", vec![(Box::new(ids), Type::INT8_ARRAY)]);
    }
}
