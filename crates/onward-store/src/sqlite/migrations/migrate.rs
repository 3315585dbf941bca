//! The schema of a file: how it is identified, and how it is migrated.

use rusqlite::Connection;

use crate::api::error::{Error, Result};
use crate::migrations::Migrations;

/// The `PRAGMA application_id` of a store of a released version: "Onwd".
const APPLICATION: i32 = 0x4f6e_7764;

/// The `application_id` of development versions: "OnWd". They numbered their schemas from 1, as
/// released versions do.
const DEVELOPMENT: i32 = 0x4f6e_5764;

/// The scripts in order. A released script never changes. A change of the tables is a new script,
/// `migrations/0002.sql`.
pub(in crate::sqlite) const MIGRATIONS: Migrations = Migrations::new(include_str!("schema.sql"), &[]);

/// The name of the store in messages, which add the path.
const STORE: &str = "the store";

/// Returns the schema number of a file; zero for an empty one. It only reads.
///
/// # Errors
/// If the file is another program's database, or a development version made it.
pub(in crate::sqlite) fn schema_of(connection: &Connection) -> Result<u32> {
    let application: i32 = connection.query_row("PRAGMA application_id", [], |row| row.get(0))?;
    let schema: u32 = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    match application {
        APPLICATION => return Ok(schema),
        DEVELOPMENT => return Err(MIGRATIONS.development_store(STORE, schema)),
        _ => {}
    }
    let tables: i64 = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    if application == 0 && schema == 0 && tables == 0 {
        return Ok(0);
    }
    Err(Error::corrupt(
        "the file is another program's database, not a store; choose another path, or move the file away",
    ))
}

/// Returns the schema number of a file, if this program supports it; zero for an empty one. It only
/// reads.
///
/// # Errors
/// As [`schema_of`], and if a newer version made the file.
pub(in crate::sqlite) fn check_schema(connection: &Connection, migrations: Migrations) -> Result<u32> {
    let schema = schema_of(connection)?;
    migrations.check(STORE, schema)?;
    Ok(schema)
}

/// Migrates the schema in one transaction. Returns its number before and after.
///
/// # Errors
/// As [`check_schema`], and if a statement fails. The file is then unchanged.
pub(in crate::sqlite) fn migrate(connection: &mut Connection, migrations: Migrations) -> Result<(u32, u32)> {
    // Another process that migrates the same file waits here, and then has nothing to do.
    let transaction = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    let (from, to) = (check_schema(&transaction, migrations)?, migrations.newest());
    for script in migrations.after(from) {
        transaction.execute_batch(script)?;
    }
    if from < to {
        transaction.pragma_update(None, "application_id", APPLICATION)?;
        transaction.pragma_update(None, "user_version", to)?;
    }
    transaction.commit()?;
    Ok((from, to))
}
