//! The interface of the store: opening, its methods, maintenance, and writes in transactions of the
//! caller.

pub(super) mod caller_transaction;
pub(super) mod caller_writes;
pub(super) mod connect;
mod file_reads;
pub(super) mod maintenance;
pub(super) mod open;
pub(super) mod read_only;
mod read_pool;
pub(super) mod sqlite_errors;
pub(super) mod sqlite_store;
