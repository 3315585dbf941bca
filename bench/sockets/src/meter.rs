//! Measures the time and the processor time of repetitions.

use std::time::{Duration, Instant};

use anyhow::Result;
use bench_protocol::{Measurement, Row, Usage, now};

/// A meter of the repetitions of a row. The first repetition does not count.
#[derive(Debug)]
pub struct Meter {
    count: usize,
    left: usize,
    begun: Option<(Instant, Duration)>,
    /// Seconds and CPU seconds of each repetition.
    all: Vec<(f64, f64)>,
}

impl Meter {
    /// Returns a meter for this row.
    #[must_use]
    pub fn new(row: &Row) -> Self {
        Self { count: row.count, left: row.repetitions.max(1) + 1, begun: None, all: Vec::new() }
    }

    /// Ends a repetition, and starts the next one if there is one. Returns whether there is.
    ///
    /// # Errors
    /// Returns an error if the processor time of the process cannot be read.
    pub fn next(&mut self) -> Result<bool> {
        if let Some((start, cpu)) = self.begun.take() {
            let elapsed = start.elapsed().as_secs_f64();
            self.all.push((elapsed, (Usage::read()?.cpu.saturating_sub(cpu)).as_secs_f64()));
        }
        if self.left == 0 {
            return Ok(false);
        }
        self.left -= 1;
        self.begun = Some((now(), Usage::read()?.cpu));
        Ok(true)
    }

    /// Returns the messages a second and the CPU time for each, of the median repetition.
    #[must_use]
    pub fn messages_per_second(mut self) -> Measurement {
        if self.all.len() > 1 {
            self.all.remove(0);
        }
        self.all.sort_by(|one, other| one.0.total_cmp(&other.0));
        let (seconds, cpu) = self.all.get(self.all.len() / 2).copied().unwrap_or((f64::INFINITY, 0.0));
        let count = self.count as f64;
        Measurement::of(count / seconds).with("cpu_us", cpu * 1e6 / count).observed("received", self.count as u64)
    }
}
