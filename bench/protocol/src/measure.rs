//! Time, percentiles, and the resources of a run.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

use crate::Measurement;
use crate::scenario::Row;

/// Returns the time. The benchmarks read it only here.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "a benchmark measures time that passes on the machine")]
pub fn now() -> Instant {
    Instant::now()
}

/// Returns the nanoseconds of a clock that all processes of this machine share and that is never
/// set.
#[must_use]
pub fn monotonic_nanoseconds() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
}

/// Calls `arrive` `count` times, `rate` times a second, from this thread, without waiting for
/// earlier arrivals. A late arrival is not dropped; the following ones catch up.
#[expect(clippy::disallowed_methods, reason = "an open loop follows the machine's clock")]
pub fn pace(count: usize, rate: u32, mut arrive: impl FnMut(u64)) {
    let start = Instant::now();
    for number in 0..count {
        let due = start + Duration::from_secs_f64(number as f64 / f64::from(rate));
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        arrive(number as u64);
    }
}

/// Runs a row's timed part as often as the row asks for, after one repetition that does not count.
/// Returns the median figure with the latencies of all. Every repetition must observe the expected
/// facts.
///
/// # Errors
/// Returns an error if a repetition fails or observes something other than the row expects.
pub fn repeat(row: &Row, mut once: impl FnMut() -> Result<Measurement>) -> Result<Measurement> {
    if row.repetitions > 1 {
        once()?;
    }
    let mut all = (0..row.repetitions.max(1)).map(|_| once()).collect::<Result<Vec<_>>>()?;
    all.iter().try_for_each(|measurement| row.verify(&measurement.observed))?;
    let mut latencies = Latencies::default();
    all.iter_mut().filter_map(|measurement| measurement.latencies.take()).for_each(|each| latencies.merge(each));
    let lost = all.iter().map(|measurement| measurement.lost).sum();
    let duplicated = all.iter().map(|measurement| measurement.duplicated).sum();
    all.sort_by(|one, other| one.value.total_cmp(&other.value));
    let middle = all.swap_remove(all.len() / 2);
    let latencies = (latencies.count() > 0).then_some(latencies);
    Ok(Measurement { latencies, lost, duplicated, ..middle })
}

/// Returns the microseconds for each operation.
#[must_use]
pub fn microseconds_per(elapsed: Duration, operations: usize) -> f64 {
    elapsed.as_secs_f64() * 1e6 / operations.max(1) as f64
}

/// Latencies of single operations.
#[derive(Debug, Default, Clone)]
pub struct Latencies {
    nanoseconds: Vec<u64>,
}

impl Latencies {
    /// Returns an empty list with room for `count` latencies.
    #[must_use]
    pub fn with_capacity(count: usize) -> Self {
        Self { nanoseconds: Vec::with_capacity(count) }
    }

    /// Adds a latency.
    pub fn record(&mut self, latency: Duration) {
        self.nanoseconds.push(u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX));
    }

    /// Adds the latencies of another list.
    pub fn merge(&mut self, mut other: Self) {
        self.nanoseconds.append(&mut other.nanoseconds);
    }

    /// Returns the mean in microseconds, or zero if there are no latencies.
    #[must_use]
    pub fn mean(&self) -> f64 {
        let sum: f64 = self.nanoseconds.iter().map(|nanoseconds| *nanoseconds as f64).sum();
        sum / 1e3 / self.nanoseconds.len().max(1) as f64
    }

    /// Returns the number of latencies.
    #[must_use]
    pub fn count(&self) -> usize {
        self.nanoseconds.len()
    }

    /// Returns the latency in microseconds at or below which `fraction` of all lie (nearest rank),
    /// or zero if there are no latencies.
    pub fn percentile(&mut self, fraction: f64) -> f64 {
        self.nanoseconds.sort_unstable();
        let rank = (self.nanoseconds.len() as f64 * fraction).ceil() as usize;
        self.nanoseconds.get(rank.max(1) - 1).map_or(0.0, |nanoseconds| *nanoseconds as f64 / 1e3)
    }
}

/// A ledger of how often each numbered task ran to its end.
#[derive(Debug)]
pub struct Ledger {
    ran: Vec<AtomicU32>,
    total: AtomicU64,
}

impl Ledger {
    /// Returns a ledger for tasks numbered from 0 to `count` - 1.
    #[must_use]
    pub fn new(count: usize) -> Self {
        Self { ran: (0..count).map(|_| AtomicU32::new(0)).collect(), total: AtomicU64::new(0) }
    }

    /// Records that task `number` ran to its end. A number beyond the ledger counts only in the
    /// total.
    pub fn ran(&self, number: u64) {
        self.total.fetch_add(1, Ordering::Relaxed);
        if let Some(runs) = usize::try_from(number).ok().and_then(|number| self.ran.get(number)) {
            runs.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Returns the number of runs of all tasks.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.total.load(Ordering::Relaxed)
    }

    /// Returns the number of runs of each task, in the order of their numbers.
    pub fn runs(&self) -> impl Iterator<Item = u32> {
        self.ran.iter().map(|runs| runs.load(Ordering::Relaxed))
    }

    /// Returns how many of the first `acknowledged` tasks never ran to their end.
    #[must_use]
    pub fn lost(&self, acknowledged: usize) -> u64 {
        self.ran.iter().take(acknowledged).filter(|runs| runs.load(Ordering::Relaxed) == 0).count() as u64
    }

    /// Returns how many tasks ran to their end more than once.
    #[must_use]
    pub fn duplicated(&self) -> u64 {
        self.ran.iter().filter(|runs| runs.load(Ordering::Relaxed) > 1).count() as u64
    }
}

/// The resources that this process has used so far, as reported by Linux.
#[derive(Debug, Clone, Copy)]
pub struct Usage {
    /// User and system time of all threads.
    pub cpu: Duration,
    /// Bytes that are resident now.
    pub resident: u64,
    /// The most bytes that were ever resident.
    pub peak: u64,
    /// Bytes that the process caused to be written to a disk.
    pub written: u64,
}

impl Usage {
    /// Reads the resources.
    ///
    /// # Errors
    /// Returns an error if `/proc/self` cannot be read. Only Linux has it.
    pub fn read() -> Result<Self> {
        let status = std::fs::read_to_string("/proc/self/status").context("this benchmark needs Linux's /proc")?;
        let input_output = std::fs::read_to_string("/proc/self/io")?;
        Ok(Self {
            cpu: cpu_time()?,
            resident: field(&status, "VmRSS:")? * 1024,
            peak: field(&status, "VmHWM:")? * 1024,
            written: field(&input_output, "write_bytes:")?,
        })
    }
}

/// Returns the CPU time. Sums the threads' nanosecond counters, which are finer than the 10 ms
/// ticks of `stat`; threads that ended are only in `stat`.
fn cpu_time() -> Result<Duration> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let after_name = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let ticks: Vec<u64> = after_name.split_whitespace().skip(11).take(2).filter_map(|tick| tick.parse().ok()).collect();
    let mut live = 0;
    for thread in std::fs::read_dir("/proc/self/task")? {
        let path = thread?.path().join("schedstat");
        live += std::fs::read_to_string(path).ok().and_then(|text| text.split(' ').next()?.parse().ok()).unwrap_or(0);
    }
    Ok(Duration::from_nanos(live).max(Duration::from_millis(ticks.iter().sum::<u64>() * 10)))
}

fn field(text: &str, name: &str) -> Result<u64> {
    let line =
        text.lines().find_map(|line| line.strip_prefix(name)).with_context(|| format!("/proc has no `{name}`"))?;
    let number = line.split_whitespace().next().with_context(|| format!("/proc has no number for `{name}`"))?;
    Ok(number.parse()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_the_nearest_rank() {
        let mut latencies = Latencies::default();
        (1..=100).for_each(|microseconds| latencies.record(Duration::from_micros(microseconds)));
        assert_eq!([0.5, 0.99, 1.0].map(|fraction| latencies.percentile(fraction)), [50.0, 99.0, 100.0]);
    }

    #[test]
    fn a_ledger_counts_losses_and_duplicates() {
        let ledger = Ledger::new(4);
        [0, 0, 2].into_iter().for_each(|number| ledger.ran(number));
        assert_eq!((ledger.lost(3), ledger.duplicated()), (1, 1));
    }
}
