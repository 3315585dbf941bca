//! How tasks ended, by day.

use serde::{Deserialize, Serialize};

use crate::api::name::Name;
use crate::api::store::EndedCounts;
use crate::api::timestamp::Timestamp;

/// How many tasks of a queue ended on a day. What is pruned, purged or tried again later is counted
/// all the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueDay {
    /// The day, in UTC: its first moment.
    pub day: Timestamp,
    /// The queue.
    pub queue: Name,
    /// How they ended.
    pub ended: EndedCounts,
}
