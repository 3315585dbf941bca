//! The parts of a workload that every program must make in the same way.

use serde::{Deserialize, Serialize};

use crate::scenario::Row;

/// The payload of the file rows: a JSON document of a fixed size.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    /// The number of the task in the run, from 0.
    pub number: u64,
    /// The submit time in nanoseconds of the monotonic clock; zero if it is not measured.
    pub submitted: u64,
    /// Filler that gives the document its size.
    pub note: String,
}

impl Order {
    /// Returns an order whose JSON has `bytes` bytes.
    ///
    /// # Errors
    /// Returns an error if `bytes` is too small for the fixed parts.
    pub fn new(number: u64, submitted: u64, bytes: usize) -> anyhow::Result<Self> {
        let mut order = Self { number, submitted, note: String::new() };
        let fixed = serde_json::to_vec(&order)?.len();
        anyhow::ensure!(fixed <= bytes, "a payload needs at least {fixed} bytes, not {bytes}");
        order.note = "n".repeat(bytes - fixed);
        Ok(order)
    }

    /// Returns the document.
    ///
    /// # Errors
    /// Returns the error of serde, which cannot occur: JSON can express every field.
    pub fn to_json(&self) -> anyhow::Result<Vec<u8>> {
        Ok(serde_json::to_vec(self)?)
    }

    /// Returns the order with another number and the same filler. It is cheap enough for the timed
    /// part. The size changes only by the digits.
    #[must_use]
    pub fn numbered(&self, number: u64) -> Self {
        Self { number, ..self.clone() }
    }
}

/// The concurrency limit of a group in the rows with groups. It is more than ever run at once.
pub const GROUP_LIMIT: u32 = 500;

/// The bytes that each task reports in the rows with byte progress: taskmill's figure.
pub const BYTES_TOTAL: u64 = 1_048_576;

/// The bytes in each report.
pub const BYTES_CHUNK: u64 = 1024;

/// Returns the group of a task if the row has groups. Consecutive tasks share a group: the first
/// ones the first group, and so on.
#[must_use]
pub fn group_of(row: &Row, number: usize) -> Option<String> {
    let each = row.count.checked_div(row.groups)?.max(1);
    Some(format!("grp-{}", (number / each).min(row.groups - 1)))
}

/// Returns the prefix of the keys of a workload, as in the taskmill suite.
#[must_use]
pub fn key_prefix(workload: &str) -> &'static str {
    match workload {
        "submit" => "s",
        "batch_submit" => "b",
        "concurrency" => "cs",
        "mixed_priority" => "mp",
        "permanent_failure" => "pf",
        "dead_letter" => "rf",
        "chain_dispatch" => "c",
        "peek" => "pk",
        "submit_with_tags" => "st",
        "query_ids_by_tags" | "count_by_tags" => "tq",
        "tag_values" => "tv",
        "history_query" | "history_by_type" | "history_stats" => "h",
        _ => "d",
    }
}

/// A back-off strategy of the rows that name one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BackoffName {
    /// 100 ms each time.
    Constant,
    /// 100 ms, then 50 ms more each time, at most 30 s.
    Linear,
    /// 100 ms doubling, at most 60 s.
    Exponential,
    /// 100 ms doubling, at most 60 s, with jitter.
    ExponentialJitter,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_has_the_size_asked_for() -> anyhow::Result<()> {
        assert_eq!(serde_json::to_vec(&Order::new(7, 0, 200)?)?.len(), 200);
        Ok(())
    }
}
