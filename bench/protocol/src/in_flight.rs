//! Things that are started and awaited, so many in flight.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Result, ensure};

use crate::Measurement;
use crate::measure::{Latencies, now};
use crate::scenario::Row;

/// Hands out numbers from 0 to `count` - 1 to starters, each once; clones share them.
#[derive(Debug, Clone)]
pub struct Numbers {
    next: Arc<AtomicUsize>,
    count: usize,
}

impl Numbers {
    /// None handed out yet.
    #[must_use]
    pub fn new(count: usize) -> Self {
        Self { next: Arc::default(), count }
    }

    /// The next; none if all are handed out.
    #[must_use]
    pub fn take(&self) -> Option<usize> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        (number < self.count).then_some(number)
    }
}

/// What came of what one starter started, or all.
#[derive(Debug, Default)]
pub struct Ends {
    latencies: Latencies,
    completed: usize,
    failed: usize,
}

impl Ends {
    /// One starter: does one after the other as long as there are numbers. `one` answers whether it
    /// ended as it should.
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

    /// Takes those of another starter in.
    pub fn merge(&mut self, other: Self) {
        self.latencies.merge(other.latencies);
        self.completed += other.completed;
        self.failed += other.failed;
    }

    /// The figure in the row's unit: so many a second, steps where the row is about them; what a
    /// step takes; or the median latency. What ended otherwise than it should is lost.
    ///
    /// # Errors
    /// If none completed.
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
