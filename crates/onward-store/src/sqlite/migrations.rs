//! The schema and its history.

use rusqlite::Connection;

use crate::error::{Error, Result};

/// Marks a file as a store of ours (`PRAGMA application_id`): "OnWd".
pub(super) const APPLICATION: i32 = 0x4f6e_5764;

/// The migrations in order; the first makes schema 1. Never changed once released: a change is a new one.
const MIGRATIONS: &[&str] = &[
    include_str!("migrations/0001.sql"),
    include_str!("migrations/0002.sql"),
    include_str!("migrations/0003.sql"),
    include_str!("migrations/0004.sql"),
    include_str!("migrations/0005.sql"),
    include_str!("migrations/0006.sql"),
    include_str!("migrations/0007.sql"),
    include_str!("migrations/0008.sql"),
    include_str!("migrations/0009.sql"),
    include_str!("migrations/0010.sql"),
    include_str!("migrations/0011.sql"),
    include_str!("migrations/0012.sql"),
    include_str!("migrations/0013.sql"),
    include_str!("migrations/0014.sql"),
    include_str!("migrations/0015.sql"),
    include_str!("migrations/0016.sql"),
    include_str!("migrations/0017.sql"),
    include_str!("migrations/0018.sql"),
    include_str!("migrations/0019.sql"),
    include_str!("migrations/0020.sql"),
    include_str!("migrations/0021.sql"),
];

/// The schema that this version writes.
pub(super) const SCHEMA: u32 = MIGRATIONS.len() as u32;

/// The schema of a file; zero for an empty one.
///
/// # Errors
/// If the file is somebody else's database.
pub(super) fn schema_of(connection: &Connection) -> Result<u32> {
    let application: i32 = connection.query_row("PRAGMA application_id", [], |row| row.get(0))?;
    let schema: u32 = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    if application == APPLICATION {
        return Ok(schema);
    }
    let tables: i64 = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    if application == 0 && schema == 0 && tables == 0 {
        return Ok(0);
    }
    Err(Error::corrupt(
        "the file is another program's database, not a store; choose another path, or move the file away",
    ))
}

/// The schema of a file that this program can work on; zero for an empty one. Only reads.
///
/// # Errors
/// If the file is somebody else's database, or newer than this program.
pub(super) fn check_schema(connection: &Connection) -> Result<u32> {
    let schema = schema_of(connection)?;
    if schema > SCHEMA {
        return Err(Error::version(format!(
            "the store has schema {schema} and this program knows schemas up to {SCHEMA}; use the newer program that \
             made it"
        )));
    }
    Ok(schema)
}

/// Brings the schema up to date in one transaction; answers what it was and what it is.
///
/// # Errors
/// If the store is newer than this program, or a statement fails; then nothing was changed.
pub(super) fn migrate(connection: &mut Connection) -> Result<(u32, u32)> {
    let transaction = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    let from = check_schema(&transaction)?;
    for migration in MIGRATIONS.iter().skip(from as usize) {
        transaction.execute_batch(migration)?;
    }
    if from < SCHEMA {
        transaction.pragma_update(None, "application_id", APPLICATION)?;
        transaction.pragma_update(None, "user_version", SCHEMA)?;
    }
    transaction.commit()?;
    Ok((from, SCHEMA))
}
