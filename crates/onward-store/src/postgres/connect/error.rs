//! The meaning of the server's errors.

use tokio_postgres::error::{DbError, Severity, SqlState};

use crate::api::error::Error;
use crate::postgres::connect::encryption;

/// Returns the store's error for one of the driver's. An error that may pass without a repair is
/// transient.
pub(in crate::postgres) fn classified(error: tokio_postgres::Error) -> Error {
    let Some(database) = error.as_db_error() else {
        let causes = with_causes(&error);
        if causes.ends_with(NO_PASSWORD) {
            let message = format!("the connection to PostgreSQL failed: {causes}; {GIVE_PASSWORD}");
            // Without the cause, which would count as a lost connection and be tried again.
            return Error::denied(message);
        }
        let remedy = encryption::remedy(&error).unwrap_or(CHECK);
        return Error::io(format!("the connection to PostgreSQL failed: {causes}; {remedy}")).caused_by(error);
    };
    let code = database.code().code();
    let message = format!("PostgreSQL: {} ({code}){}", database.message(), remedy(code));
    if *database.code() == SqlState::INSUFFICIENT_PRIVILEGE {
        // The caller's input is not at fault, so this is not an invalid argument.
        return Error::read_only(message).caused_by(error);
    }
    let stored = match code.get(..2) {
        _ if *database.code() == SqlState::DISK_FULL => Error::full(message),
        // A standby may become the primary, and an operator who made a database read-only will make
        // it writable again.
        _ if *database.code() == SqlState::READ_ONLY_SQL_TRANSACTION => Error::read_only(message).passing(),
        _ if matches!(code, "XX001" | "XX002") => Error::corrupt(message),
        Some("40" | "55" | "53" | "57") => Error::busy(message),
        // A wrong password is no wrong usage: the store cannot be used, as without a password.
        Some("28") => Error::denied(message),
        Some("3D") => Error::not_found(message),
        // A table, a column or a function of the store is gone.
        _ if matches!(code, "42P01" | "42703" | "42883") => Error::corrupt(message),
        Some("42") => Error::invalid(message),
        _ => Error::io(message),
    };
    stored.caused_by(error)
}

/// The remedy for a connection that failed for no known reason.
const CHECK: &str = "check that it runs, and that it is reached from here at this address";

/// The end of the driver's error for a server that asks for a password where there is none. The
/// driver has no type for it.
const NO_PASSWORD: &str = "password missing";

/// The remedy for a missing password.
const GIVE_PASSWORD: &str = "the server asks for one: put it into PGPASSWORD, ~/.pgpass or the URL";

/// The error for a reply without a row to a statement that always returns one.
#[cold]
pub(in crate::postgres) fn nothing_said() -> Error {
    Error::io("PostgreSQL returned no row for the state of the store")
}

/// Returns the remedy for an error of the server, to append to its message.
fn remedy(code: &str) -> &'static str {
    match code {
        "25006" => {
            "; the server is a standby, or the database or role is set to read only: name the primary, \
             or all servers and `target_session_attrs=read-write`, in the URL, or make it writable"
        }
        "28000" | "28P01" => {
            "; check user and password in the URL, and what the server's pg_hba.conf says of them and of encryption (`sslmode`)"
        }
        "3D000" => "; make the database (`createdb`), or name another in the URL",
        "42501" => "; give the role the rights that `onward doctor` finds missing",
        "53100" => "; make room on the server's disk, and work goes on by itself",
        "53200" => "; give the server more memory, or let it use less (`work_mem`, fewer connections)",
        "53300" => "; raise the server's `max_connections`, or put a pooler before it",
        "57014" => "; raise `statement_timeout` of the role if this happens again",
        _ => "",
    }
}

/// Returns an error with its causes, which the driver's own text leaves out.
fn with_causes(error: &tokio_postgres::Error) -> String {
    let first = std::error::Error::source(error);
    let causes = std::iter::successors(first, |cause| cause.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}

/// Returns true if the same transaction may succeed on a new connection without any repair.
pub(in crate::postgres) fn is_retryable(error: &tokio_postgres::Error) -> bool {
    let again = [
        SqlState::T_R_SERIALIZATION_FAILURE,
        SqlState::T_R_DEADLOCK_DETECTED,
        SqlState::LOCK_NOT_AVAILABLE,
        // This passes when other connections end, or when the standby is the primary.
        SqlState::TOO_MANY_CONNECTIONS,
        SqlState::READ_ONLY_SQL_TRANSACTION,
        // The plan is from before a migration.
        SqlState::FEATURE_NOT_SUPPORTED,
    ];
    let crashes = severity(error) == Some(Severity::Panic);
    crashes || is_lost(error) || is_plan_gone(error) || error.code().is_some_and(|code| again.contains(code))
}

/// Returns true if an error does not depend on the writes, so that committing the calls one by one
/// is of no use.
pub(in crate::postgres) fn concerns_everyone(error: &Error) -> bool {
    error.is_full() || driver_error(error).is_some_and(is_retryable)
}

/// Returns true if the server will reject a value every time: data exceptions, violated constraints
/// and exceeded limits.
pub(in crate::postgres) fn is_of_values(error: &Error) -> bool {
    let code = driver_error(error).and_then(tokio_postgres::Error::code);
    code.is_some_and(|code| matches!(code.code().get(..2), Some("22" | "23" | "54")))
}

/// Returns the driver's error under one of the store's.
pub(in crate::postgres) fn driver_error(error: &Error) -> Option<&tokio_postgres::Error> {
    std::error::Error::source(error).and_then(|source| source.downcast_ref())
}

/// Returns true if the connection is lost: no reply came, or the server announced its end.
fn is_lost(error: &tokio_postgres::Error) -> bool {
    match error.code() {
        Some(code) => {
            matches!(code.code(), "57P01" | "57P02" | "57P03" | "57P05" | "25P03") || code.code().starts_with("08")
        }
        None => true,
    }
}

/// Returns true if a commit with this error may have happened. The server process ended during the
/// commit, and what it had written by then counts after recovery.
pub(in crate::postgres) fn leaves_commit_unknown(error: &tokio_postgres::Error) -> bool {
    is_lost(error) || matches!(severity(error), Some(Severity::Fatal | Severity::Panic))
}

/// Returns the severity that the server reported.
fn severity(error: &tokio_postgres::Error) -> Option<Severity> {
    error.as_db_error().and_then(DbError::parsed_severity)
}

/// Returns true if the server process lacks a prepared statement, or has another one under its
/// name. Both happen only behind a pooler.
pub(super) fn is_plan_gone(error: &tokio_postgres::Error) -> bool {
    let gone = [SqlState::INVALID_SQL_STATEMENT_NAME, SqlState::DUPLICATE_PSTATEMENT];
    error.code().is_some_and(|code| gone.contains(code))
}
