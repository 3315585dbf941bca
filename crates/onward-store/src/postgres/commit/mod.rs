//! Commits: batches of calls become transactions.

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
