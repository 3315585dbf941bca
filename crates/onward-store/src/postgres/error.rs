//! What an error of the server means.

use tokio_postgres::error::SqlState;

use crate::error::Error;

/// The store's error for one of the driver's. What may pass by itself is transient.
pub(super) fn classified(error: tokio_postgres::Error) -> Error {
    let Some(database) = error.as_db_error() else {
        return Error::io(format!("the connection to PostgreSQL failed: {error}")).caused_by(error);
    };
    let (code, message) = (database.code(), format!("PostgreSQL: {} ({})", database.message(), database.code().code()));
    if *code == SqlState::INSUFFICIENT_PRIVILEGE {
        // Nothing that was typed is wrong.
        return Error::read_only(format!("{message}; `onward doctor` says which rights the role lacks"))
            .caused_by(error);
    }
    let kind = match code.code().get(..2) {
        Some("53") if *code == SqlState::DISK_FULL => Error::full,
        Some("40" | "55" | "53" | "57") => Error::busy,
        Some("28" | "42" | "3D") => Error::invalid,
        Some("XX") => Error::corrupt,
        _ if *code == SqlState::READ_ONLY_SQL_TRANSACTION => Error::read_only,
        _ => Error::io,
    };
    kind(message).caused_by(error)
}

/// Whether the same transaction may go through when it is tried again at once, without anything having been repaired.
pub(super) fn is_to_be_repeated(error: &tokio_postgres::Error) -> bool {
    let again = [
        SqlState::T_R_SERIALIZATION_FAILURE,
        SqlState::T_R_DEADLOCK_DETECTED,
        SqlState::LOCK_NOT_AVAILABLE,
        // A plan of before a migration.
        SqlState::FEATURE_NOT_SUPPORTED,
    ];
    error.is_closed() || is_lost(error) || is_plan_gone(error) || error.code().is_some_and(|code| again.contains(code))
}

/// Whether an error is none of the writes' doing, so that it is no use to try them one by one.
pub(super) fn concerns_everyone(error: &Error) -> bool {
    error.is_full()
        || error.is_read_only()
        || driver_error(error).is_some_and(|it| is_lost(it) || is_to_be_repeated(it))
}

/// The driver's error beneath one of the store's.
pub(super) fn driver_error(error: &Error) -> Option<&tokio_postgres::Error> {
    std::error::Error::source(error).and_then(|source| source.downcast_ref())
}

/// Whether the connection is gone: no answer came, or the server says that it ends.
pub(super) fn is_lost(error: &tokio_postgres::Error) -> bool {
    match error.code() {
        Some(code) => {
            matches!(code.code(), "57P01" | "57P02" | "57P03" | "57P05" | "25P03") || code.code().starts_with("08")
        }
        None => true,
    }
}

/// Whether the server process does not know a statement that was prepared, or knows another of its name.
pub(super) fn is_plan_gone(error: &tokio_postgres::Error) -> bool {
    let gone = [SqlState::INVALID_SQL_STATEMENT_NAME, SqlState::DUPLICATE_PSTATEMENT];
    error.code().is_some_and(|code| gone.contains(code))
}
