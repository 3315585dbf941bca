//! The store as callers see it: how it is opened, its methods, maintenance, and writes in
//! transactions of the caller's own.

pub(in crate::sqlite) mod caller_transaction;
pub(in crate::sqlite) mod caller_writes;
pub(in crate::sqlite) mod maintenance;
pub(in crate::sqlite) mod open;
pub(in crate::sqlite) mod read_only;
pub(in crate::sqlite) mod read_pool;
pub(in crate::sqlite) mod sqlite_errors;
pub(in crate::sqlite) mod sqlite_store;
