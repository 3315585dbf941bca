//! Numbers given last, and the time.

use std::time::Duration;

use crate::api::timestamp::Timestamp;

/// The numbers given last.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Counters {
    pub(crate) last_task: i64,
    pub(crate) last_session: i64,
    pub(crate) ends: i64,
    pub(crate) last_entry: i64,
}

/// Wall time and steady time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Now {
    pub(crate) wall: Timestamp,
    pub(crate) steady: Duration,
}
