//! Converts SQLite's errors to errors of this crate.

use std::fmt;

use rusqlite::ErrorCode;
use rustix::io::Errno;

use crate::api::error::Error;

/// An error of SQLite as the cause of ours. Its text appears once; SQLite's own chain of causes
/// would repeat it with a number.
#[derive(Debug)]
struct Reported(rusqlite::Error);

impl fmt::Display for Reported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            rusqlite::Error::SqliteFailure(error, Some(text)) => {
                write!(f, "{text} (SQLite's error {})", error.extended_code)
            }
            failure => failure.fmt(f),
        }
    }
}

impl std::error::Error for Reported {}

/// Converts an error of SQLite to ours, with the remedy. A caller that knows the path adds it.
impl From<rusqlite::Error> for Error {
    fn from(failure: rusqlite::Error) -> Self {
        let error = match failure.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => Self::full(FULL),
            _ if is_full_for_shared_memory(&failure) => Self::full(FULL),
            Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => {
                Self::read_only("the store may not be written; check the permissions of the file and its directory")
            }
            _ if has_wrong_checksum(&failure) => Self::corrupt(WRONG_CHECKSUM),
            Some(ErrorCode::TooBig) => Self::invalid(TOO_BIG),
            Some(ErrorCode::DatabaseCorrupt) => Self::corrupt(DAMAGED),
            _ if is_unfit_schema(&failure) => Self::corrupt(UNFIT_SCHEMA),
            _ if is_impossible(&failure) => Self::corrupt(DAMAGED),
            Some(ErrorCode::NotADatabase) => {
                Self::corrupt("the file is not a store; choose another path, or move the file away")
            }
            Some(ErrorCode::DatabaseBusy) if is_outdated(&failure) => Self::busy(OUTDATED),
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
                Self::busy("another process has kept the store locked; try again, or see who with `onward doctor`")
            }
            Some(ErrorCode::CannotOpen) if is_out_of_files() => Self::io(OUT_OF_FILES),
            Some(ErrorCode::CannotOpen) => {
                Self::not_found("the store cannot be opened; check that its directory exists")
            }
            _ => return Self::io(format!("the store reported: {}", Reported(failure))),
        };
        error.caused_by(Reported(failure))
    }
}

/// Adds the name of the file to an error about the file. An error about the request stays as it is.
#[cold]
pub(in crate::sqlite) fn in_file(connection: &rusqlite::Connection, error: Error) -> Error {
    match connection.path() {
        // An error about another file at the path already names the path.
        Some(path) if !path.is_empty() && !error.is_invalid() && !error.is_replaced() && error.refusal().is_none() => {
            error.about(path)
        }
        _ => error,
    }
}

/// The message for a process that has too many files open.
const OUT_OF_FILES: &str =
    "the store cannot be opened, since this process may have hardly any more files open (ulimit -n); raise that limit";

/// The number of free file descriptors below which SQLite may fail to open its files: the database,
/// its log, and temporary files.
const FILES_OF_SQLITE: u64 = 8;

/// Returns true if this process is near its limit of open files. SQLite does not report this
/// reason.
fn is_out_of_files() -> bool {
    let Some(limit) = rustix::process::getrlimit(rustix::process::Resource::Nofile).current else { return false };
    match std::fs::read_dir("/dev/fd") {
        Ok(open) => (open.count() as u64).saturating_add(FILES_OF_SQLITE) > limit,
        Err(error) => matches!(Errno::from_io_error(&error), Some(Errno::MFILE | Errno::NFILE)),
    }
}

/// The message for a value above SQLite's limit.
const TOO_BIG: &str =
    "a value is larger than SQLite stores; nothing was changed; keep it elsewhere and pass a reference";

/// The message for a full disk.
const FULL: &str = "the disk of the store is full; nothing was changed; make room and work goes on";

/// Returns true if the file `x.db-shm` could not be extended. SQLite reports this as a failed
/// write.
fn is_full_for_shared_memory(failure: &rusqlite::Error) -> bool {
    failure.sqlite_error().is_some_and(|error| error.extended_code == rusqlite::ffi::SQLITE_IOERR_SHMSIZE)
}

/// Returns true if a transaction read first, and tried to write after another connection had
/// written. Only a caller's transaction can fail so, because ours begin as writers.
fn is_outdated(failure: &rusqlite::Error) -> bool {
    failure.sqlite_error().is_some_and(|error| error.extended_code == rusqlite::ffi::SQLITE_BUSY_SNAPSHOT)
}

/// The message for a caller's transaction that read before it wrote.
const OUTDATED: &str = "the transaction has read before another connection wrote, so it cannot write any more; roll it back and do it \
    again, begun with `BEGIN IMMEDIATE`";

/// The message for a damaged file.
const DAMAGED: &str = "the store is damaged; stop its processes and restore a backup with `onward store restore`, or see what \
    can be read with `onward doctor`";

/// Returns true if the layer below SQLite has read a page with a wrong checksum.
fn has_wrong_checksum(failure: &rusqlite::Error) -> bool {
    failure.sqlite_error().is_some_and(|error| error.extended_code == rusqlite::ffi::SQLITE_IOERR_DATA)
}

/// The message for a page with a wrong checksum.
const WRONG_CHECKSUM: &str = "a page of the store is not what its checksum says: the disk has damaged it, or a program other than \
    Onward has written to the file; stop its processes and restore a backup with `onward store restore`, or, if it was a program, take \
    the file as it is with `onward store rebuild`";

const UNFIT_SCHEMA: &str = "the table definitions of the store are damaged; stop its processes and restore a backup with \
    `onward store restore`, or see what can be read with `onward doctor`";

/// Returns true if SQLite rejected a statement. All statements are constant and tested, so the
/// stored definitions of tables and indexes are wrong.
///
/// SQLite reports this as its general error, with many texts: `no such column`, `no query
/// solution`, `near "x": syntax error`. A text that begins with `cannot` is about the state of the
/// transaction and not about the file.
fn is_unfit_schema(failure: &rusqlite::Error) -> bool {
    match failure {
        rusqlite::Error::SqlInputError { .. } => true,
        rusqlite::Error::SqliteFailure(error, Some(text)) => {
            error.extended_code == rusqlite::ffi::SQLITE_ERROR && text != MALFORMED_JSON && !text.starts_with("cannot ")
        }
        _ => false,
    }
}

const MALFORMED_JSON: &str = "malformed JSON";

/// Returns true if a read found a value that no store writes: one of another type or range, or a
/// missing row.
fn is_impossible(failure: &rusqlite::Error) -> bool {
    match failure {
        rusqlite::Error::SqliteFailure(_, Some(text)) => text == MALFORMED_JSON,
        rusqlite::Error::FromSqlConversionFailure(..)
        | rusqlite::Error::IntegralValueOutOfRange(..)
        | rusqlite::Error::InvalidColumnType(..)
        | rusqlite::Error::QueryReturnedNoRows
        | rusqlite::Error::Utf8Error(..) => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use rusqlite::ffi;

    use super::*;

    #[test]
    fn options_that_are_no_json_are_damage() {
        let connection = rusqlite::Connection::open_in_memory().unwrap();
        let read = connection.query_row("SELECT '{\"affinity\":' ->> 'affinity'", [], |row| row.get::<_, String>(0));
        let error = Error::from(read.unwrap_err());
        assert!(error.is_corrupt(), "{error}");
    }

    /// Returns the error of a valid query after an edit of the stored table definitions.
    fn error_after(edit: &str, query: &str) -> Error {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("damaged.db");
        let connection = rusqlite::Connection::open(&path).unwrap();
        let schema = "CREATE TABLE task(id INTEGER PRIMARY KEY, kind TEXT); CREATE INDEX by_kind ON task(kind);
            PRAGMA writable_schema = ON;";
        connection.execute_batch(&format!("{schema} {edit}")).unwrap();
        drop(connection);
        let connection = rusqlite::Connection::open(&path).unwrap();
        let failure = connection.query_row(query, [], |row| row.get::<_, i64>(0)).unwrap_err();
        in_file(&connection, failure.into())
    }

    #[test]
    fn a_table_definition_that_lost_a_column_is_damage() {
        let edit = "DELETE FROM sqlite_schema WHERE name = 'by_kind';
            UPDATE sqlite_schema SET sql = replace(sql, 'kind', 'kinf')";
        let error = error_after(edit, "SELECT id FROM task WHERE kind = 'a'");
        assert!(error.is_corrupt() && error.to_string().contains("damaged.db: the table definitions"), "{error}");
    }

    #[test]
    fn a_table_definition_that_is_gone_is_damage() {
        let edit = "DELETE FROM sqlite_schema";
        let error = error_after(edit, "SELECT id FROM task");
        assert!(error.is_corrupt() && error.to_string().contains("damaged.db: the table definitions"), "{error}");
    }

    #[test]
    fn an_index_that_a_statement_names_and_that_is_gone_is_damage() {
        let edit = "DELETE FROM sqlite_schema WHERE name = 'by_kind'";
        let error = error_after(edit, "SELECT id FROM task INDEXED BY by_kind WHERE kind = 'a'");
        assert!(error.is_corrupt(), "{error}");
    }

    /// SQLite reports `no query solution` where an index that the statement names lost its use.
    #[test]
    fn an_index_that_a_statement_names_and_that_covers_another_column_is_damage() {
        let edit =
            "UPDATE sqlite_schema SET sql = 'CREATE INDEX by_kind ON task(kind) WHERE id > 5' WHERE name = 'by_kind'";
        let error = error_after(edit, "SELECT id FROM task INDEXED BY by_kind WHERE kind = 'a'");
        assert!(error.is_corrupt(), "{error}");
    }

    #[test]
    fn a_transaction_in_the_wrong_state_is_no_damage() {
        let connection = rusqlite::Connection::open_in_memory().unwrap();
        let error = Error::from(connection.execute_batch("COMMIT").unwrap_err());
        assert!(!error.is_corrupt(), "{error}");
    }

    #[test]
    fn a_value_that_is_too_large_stays_so() {
        let failure = rusqlite::Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_TOOBIG), None);
        let error = Error::from(failure);
        assert!(error.is_invalid() && !error.is_transient(), "{error}");
    }
}
