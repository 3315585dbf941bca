//! How a transaction is committed, and what came of it.

use crate::api::error::Error;
use crate::postgres::commit::writer_state::Marker;
use crate::postgres::working_set::applied::Ran;

/// How a transaction is committed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::postgres) enum Mode {
    /// Its commit waits for the disk.
    Synced,
    /// A sync follows, which others wait for.
    SyncedLater,
    /// Nobody waits.
    NeverSynced,
}

/// What came of a transaction.
pub(in crate::postgres) enum Fate {
    Committed {
        ran: Ran,
        marker: Marker,
        mode: Mode,
    },
    /// It did not happen. `again` if the same may go through now.
    Failed {
        error: Error,
        again: bool,
    },
    /// The connection was lost while it was committed.
    Unknown {
        ran: Ran,
        marker: Marker,
        error: Error,
    },
}
