//! Operations that are started and awaited, with a number of them in flight.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Result, ensure};

use crate::Measurement;
use crate::measure::{Latencies, now};
use crate::scenario::Row;

/// A counter that gives each number from 0 to `count` - 1 to one starter. Clones share it.
#[derive(Debug, Clone)]
pub struct Numbers {
    next: Arc<AtomicUsize>,
    count: usize,
}

impl Numbers {
    /// Returns a counter that has given out no number yet.
    #[must_use]
    pub fn new(count: usize) -> Self {
        Self { next: Arc::default(), count }
    }

    /// Returns the next number, or `None` if all are given out.
    #[must_use]
    pub fn take(&self) -> Option<usize> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        (number < self.count).then_some(number)
    }
}

/// The ends of the operations of one starter, or of all.
#[derive(Debug, Default)]
pub struct Ends {
    latencies: Latencies,
    completed: usize,
    failed: usize,
}

impl Ends {
    /// Runs a starter: it does one operation after the other while there are numbers. `one` returns
    /// whether the operation ended as expected.
    pub async fn of_starter<F: Future<Output = bool>>(numbers: Numbers, mut one: impl FnMut(usize) -> F) -> Self {
        let mut ends = Self::default();
        while let Some(number) = numbers.take() {
            let before = now();
            let good = one(number).await;
            ends.latencies.record(before.elapsed());
            ends.completed += usize::from(good);
            ends.failed += usize::from(!good);
        }
        ends
    }

    /// Adds the ends of another starter.
    pub fn merge(&mut self, other: Self) {
        self.latencies.merge(other.latencies);
        self.completed += other.completed;
        self.failed += other.failed;
    }

    /// Returns the figure in the row's unit: operations a second (steps in rows of steps), the time
    /// of a step, or the median latency. Operations that did not end as expected count as lost.
    ///
    /// # Errors
    /// Returns an error if no operation completed.
    pub fn measurement(mut self, row: &Row, elapsed: Duration) -> Result<Measurement> {
        ensure!(self.completed > 0, "none of {} completed", row.count);
        let each = if row.workload == "steps" { row.steps } else { 1 };
        let per_second = (self.completed * each) as f64 / elapsed.as_secs_f64();
        let value = match row.unit.as_str() {
            "us/step" => 1e6 / per_second,
            "us p50" => self.latencies.percentile(0.5),
            _ => per_second,
        };
        let measurement = Measurement::of(value)
            .with("per_second", per_second)
            .with("failed", self.failed as f64)
            .with_latencies(self.latencies)
            .observed("ended", (self.completed + self.failed) as u64);
        Ok(Measurement { lost: row.count.saturating_sub(self.completed) as u64, ..measurement })
    }
}
