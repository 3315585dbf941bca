//! Writing tasks that are alike: what they have in common goes to the server once, and what that
//! makes of it is made once.

use tokio_postgres::types::{ToSql, Type};

use crate::postgres::commit::write_rows::{Statements, Values};
use crate::postgres::speculation::columnar_batch::ColumnarBatch;
use crate::postgres::working_set::task_row::TaskRow;

/// The columns of rows to be put into a table: each a value that all have in common, or one for
/// each row.
#[derive(Default)]
struct Columns<'a> {
    names: Vec<&'static str>,
    /// What is selected for each.
    sources: Vec<String>,
    /// Those that differ, and the parameters that they come in.
    differ: Vec<&'static str>,
    arrays: Vec<String>,
    values: Values<'a>,
}

impl<'a> Columns<'a> {
    /// Columns that all have in common. A body is read once, not for each row.
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

    fn parameter(&mut self, value: impl ToSql + Sync + Send + 'a, sort: Type) -> String {
        self.values.push((Box::new(value), sort));
        format!("${}", self.values.len())
    }

    fn column(&mut self, name: &'static str, source: String) {
        self.names.push(name);
        self.sources.push(source);
    }

    fn same(&mut self, name: &'static str, value: impl ToSql + Sync + Send + 'a, sort: Type) {
        let source = self.parameter(value, sort);
        self.column(name, source);
    }

    /// A column of values that are mostly not the same; where they are, one of them goes.
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

    fn array<T: ToSql + Sync + Send + 'a>(&mut self, name: &'static str, values: Vec<T>, array: Type) {
        let parameter = self.parameter(values, array);
        self.arrays.push(parameter);
        self.differ.push(name);
        self.column(name, format!("u.{name}"));
    }

    /// What tells the tasks of a lot apart.
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

fn insert_into<'a>(statements: &mut Statements<'a>, table: &str, group: &'a ColumnarBatch) {
    let mut columns = Columns::of_all(&group.row);
    columns.of_each(group);
    columns.insert_into(statements, table);
}

/// Puts new live tasks in.
pub(in crate::postgres) fn insert<'a>(statements: &mut Statements<'a>, groups: &'a [ColumnarBatch]) {
    groups.iter().for_each(|group| insert_into(statements, "task", group));
}

/// Changes what the beginning of an attempt changes.
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

/// Moves tasks that end. Their payloads are small and come along: to put a row into one table is
/// less work than to bring it there from another.
pub(in crate::postgres) fn finish<'a>(statements: &mut Statements<'a>, groups: &'a [ColumnarBatch]) {
    groups.iter().for_each(|group| insert_into(statements, "history", group));
    let ids: Vec<i64> = groups.iter().flat_map(ColumnarBatch::ids).collect();
    if !ids.is_empty() {
        statements.send("DELETE FROM {s}.task WHERE id = ANY($1)", vec![(Box::new(ids), Type::INT8_ARRAY)]);
    }
}
