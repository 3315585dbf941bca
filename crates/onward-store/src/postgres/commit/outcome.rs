//! The ways to commit a transaction, and its outcome.

use crate::api::error::Error;
use crate::postgres::commit::writer_state::CommitId;
use crate::postgres::working_set::applied::Applied;

/// The point at which a transaction waits for the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::postgres) enum SyncMode {
    /// The commit itself waits for the disk.
    InCommit,
    /// The commit does not wait. The [flusher](crate::postgres::commit::flusher) syncs afterwards,
    /// before callers get their outcomes.
    AfterCommit,
    /// Nothing waits for the disk: the store was opened with a durability below `full`.
    Never,
}

/// The outcome of a transaction.
pub(in crate::postgres) enum CommitOutcome {
    /// The transaction has committed; with [`SyncMode::AfterCommit`] it may not be on disk yet.
    Committed { applied: Applied, commit_id: CommitId, mode: SyncMode },
    /// The transaction did not happen. `again` is true if a retry may succeed.
    Failed { error: Error, again: bool },
    /// The connection was lost during the commit, so the transaction may or may not have happened.
    Unknown { applied: Applied, commit_id: CommitId, error: Error },
}
