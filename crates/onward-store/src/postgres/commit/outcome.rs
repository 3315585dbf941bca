//! How a transaction is committed, and what came of it.

use crate::api::error::Error;
use crate::postgres::commit::writer_state::CommitId;
use crate::postgres::working_set::applied::Applied;

/// How a transaction is committed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::postgres) enum SyncMode {
    /// Its commit waits for the disk.
    InCommit,
    /// A sync follows, which others wait for.
    AfterCommit,
    /// Nobody waits.
    Never,
}

/// What came of a transaction.
pub(in crate::postgres) enum CommitOutcome {
    Committed {
        applied: Applied,
        commit_id: CommitId,
        mode: SyncMode,
    },
    /// It did not happen. `again` if the same may go through now.
    Failed {
        error: Error,
        again: bool,
    },
    /// The connection was lost while it was committed.
    Unknown {
        applied: Applied,
        commit_id: CommitId,
        error: Error,
    },
}
