//! Commits: batches of calls become transactions.
//!
//! The [`writer`] takes a batch of calls. [`transaction`] loads the rows that the batch reads,
//! decides it, and writes the change set with [`write_rows`] and [`write_tasks`]; [`begin`] is its
//! first round trip. The [`flusher`] waits for the disk after the commits, so that the next
//! transaction does not. Two other ways lead to a write. [`caller`] applies writes in a transaction
//! of the caller. [`inbox`] and [`completions`] process the rows of the SQL functions
//! `onward_submit` and `onward_complete`.

pub(super) mod begin;
pub(super) mod caller;
pub(super) mod completions;
pub(super) mod flusher;
pub(super) mod inbox;
pub(super) mod outcome;
pub(super) mod server_numbers;
pub(super) mod transaction;
mod write_documents;
pub(super) mod write_rows;
pub(super) mod write_tasks;
pub(super) mod writer;
pub(super) mod writer_state;
