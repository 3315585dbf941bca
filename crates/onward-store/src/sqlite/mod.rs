//! The SQLite store: one file, one writer at a time, and the writes of all callers in one commit.
//!
//! [`store`] has the interface. A write goes through [`commit`]: it joins the writes of other
//! callers in a queue, one thread takes them all, and one transaction applies them with the
//! functions of [`verbs`], one function a kind of write. The caller gets its outcomes after
//! `COMMIT`. A submitted task is then a row of `task`, and durable. The index by which a claim
//! finds it may still be in memory: it is made again from the rows after a restart. A read goes to
//! [`reads`], on a connection of its own.
//!
//! A claim finds tasks in [`ready`], which also defines *sub-queue*, *ready list*, *head list*,
//! *sort key* and *fair-share tag*. [`limits`] has the counts and tokens that a claim must not
//! exceed. [`row_cache`] holds rows of tasks that the next write is likely to need. [`processes`]
//! handles other processes on the file, and [`file_layer`] the file itself.

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
