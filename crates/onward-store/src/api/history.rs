//! Counts of ended tasks per day.

use serde::{Deserialize, Serialize};

use crate::api::name::Name;
use crate::api::store::EndedCounts;
use crate::api::timestamp::Timestamp;

/// The number of tasks of a queue that ended on one day. The counts include tasks that were pruned,
/// purged or retried later.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueDay {
    /// The first moment of the day in UTC.
    pub day: Timestamp,
    /// The queue.
    pub queue: Name,
    /// The number of tasks that ended in each state.
    pub ended: EndedCounts,
}
