//! Queries for a single value: a number in `meta`, or the existence of a row.

use crate::api::error::Result;
use crate::sqlite::commit::connection::Database;

/// Returns a number from `meta`.
pub(in crate::sqlite) fn meta(connection: &Database<'_>, name: &str) -> Result<i64> {
    Ok(connection.prepare_cached("SELECT value FROM meta WHERE name = ?")?.query_row([name], |row| row.get(0))?)
}

/// Returns the value of a `SELECT EXISTS` query.
pub(in crate::sqlite) fn exists(connection: &Database<'_>, sql: &'static str) -> Result<bool> {
    Ok(connection.prepare_cached(sql)?.query_row([], |row| row.get(0))?)
}
