//! Runs one suite of cases on every store and compares stores with each other. Also tests SQLite
//! against kills, damage and age.
#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a test fails by panicking, and the long ones say what they did"
)]

mod backlog;
mod broken;
mod callers;
mod child;
mod damage;
mod finish;
mod group_commit;
mod group_counts;
mod kill;
mod killed;
mod ledger;
mod limited_groups;
mod load;
mod memory;
mod model_based;
#[cfg(unix)]
mod nth_failure;
mod old_store;
mod outbox;
mod page_checksums;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(unix)]
mod power_loss;
mod queues;
mod refusing_table;
mod retained;
mod shared_limits;
mod sqlite;
mod steps;
mod survivors;
mod takeover;
mod upgrade;
#[cfg(unix)]
mod vfs_layer;
mod write_ahead_log;
