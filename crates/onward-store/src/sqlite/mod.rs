//! The SQLite store: one file, one writer at a time, and the writes of all callers in one commit.
//!
//! [`store`] is what callers see. A write goes through [`commit`], whose transaction calls one of
//! the [`verbs`]; a read goes to [`reads`]. [`ready`] finds tasks for a claim, within the
//! [`limits`]; [`row_cache`] saves it reads. [`processes`] knows about other processes on the file,
//! [`file_layer`] about the file itself.

mod columns;
mod commit;
#[cfg(feature = "postgres")]
mod copy;
mod file_layer;
mod limits;
mod migrations;
mod processes;
mod reads;
mod ready;
mod row_cache;
mod store;
mod verbs;

pub use commit::commit_counts::CommitCounts;
#[cfg(feature = "postgres")]
pub(crate) use copy::{SqliteSource, SqliteTarget};
pub use processes::write_lock::LockHolder;
pub use store::caller_transaction::SubmittedInTransaction;
pub use store::caller_writes::AppliedInTransaction;
pub use store::maintenance::{CheckReport, Compacted};
pub use store::open::SqliteOptions;
pub use store::read_only::SqliteReader;
pub use store::sqlite_store::SqliteStore;
