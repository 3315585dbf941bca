//! The SQLite store: one file, one writer at a time, everybody's writes in one commit.
//!
//! [`writer`] gathers callers and [`core`] commits them as one [`transaction`], whose [`verbs`] are
//! the writes. [`index`] and [`cache`] are what is kept in memory between transactions.
//! [`presence`] and [`housekeeping`] know about other processes, [`callers`] about transactions
//! that are not ours.

mod cache;
mod callers;
mod commit_sizes;
mod connection;
#[cfg(feature = "postgres")]
mod copy;
mod core;
mod dependents;
mod failure;
mod file_layer;
mod filter;
mod finish;
mod flow;
mod fresh_tasks;
mod group_heads;
mod group_lines;
mod group_ranks;
mod heads;
mod held_tasks;
mod history;
mod housekeeping;
mod identity;
mod index;
mod instance_column;
mod leases;
mod lock_wait;
mod log;
mod log_owner;
mod maintenance;
mod migrations;
mod names;
mod new_tags;
mod open;
mod options_column;
mod own_file;
mod parked_tasks;
mod pauses;
mod presence;
mod queues;
mod reader;
mod readers;
mod reads;
mod retained;
mod schedules;
mod series;
mod series_lines;
mod served_column;
mod shares;
mod sizes;
mod statements;
mod store;
mod told_tasks;
mod transaction;
mod turnstile;
mod unsaved_groups;
mod verbs;
mod write_lock;
mod writer;

pub use callers::SubmittedInTransaction;
pub use commit_sizes::CommitCounts;
#[cfg(feature = "postgres")]
pub(crate) use copy::{SqliteSource, SqliteTarget};
pub use finish::AppliedInTransaction;
pub use maintenance::{CheckReport, Compacted};
pub use open::SqliteOptions;
pub use reader::SqliteReader;
pub use store::SqliteStore;
pub use write_lock::LockHolder;
