//! The rate tests: the arrival of tasks in queues, and their starts.

use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};

use crate::Measurement;
use crate::measure::{Latencies, monotonic_nanoseconds};
use crate::scenario::Row;

/// The queues of a row, and which of them get tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Queues {
    /// One queue.
    Alone,
    /// Five queues of weight 1 to 5, of which only the heaviest is used.
    Single,
    /// Five queues of weight 1 to 5; each arrival is a task for each of them.
    All,
}

/// The way in which a worker chooses among queues.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// The heaviest queue first.
    Strict,
    /// At random, by weight.
    Lenient,
    /// Interleaved weighted round robin.
    Interleaved,
}

/// The process of the producer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Producer {
    /// The process that runs the tasks.
    #[default]
    Inside,
    /// A process of its own.
    Outside,
}

/// Returns the name of the queue of a weight.
#[must_use]
pub fn queue_name(weight: u32) -> String {
    format!("weight-{weight}")
}

impl Row {
    /// Returns the weights of all queues.
    ///
    /// # Errors
    /// Returns an error if the row has no queues.
    pub fn weights(&self) -> Result<Vec<u32>> {
        let queues = self.queues.with_context(|| format!("row {}: which queues?", self.name))?;
        Ok(if queues == Queues::Alone { vec![5] } else { (1..=5).collect() })
    }

    /// Returns the weights of the queues that get tasks at each arrival, in that order. A queue
    /// full of a runnable backlog gets no other tasks, because they would wait behind it.
    ///
    /// # Errors
    /// Returns the errors of [`weights`](Self::weights).
    pub fn used_weights(&self) -> Result<Vec<u32>> {
        let least = if self.backlog.runnable > 0 { 2 } else { 1 };
        let least = if self.queues == Some(Queues::All) { least } else { 5 };
        Ok(self.weights()?.into_iter().filter(|weight| *weight >= least).collect())
    }
}

/// An arrival of a task in an open loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    /// The number of the task in the run, from 0.
    pub number: u64,
    /// The weight of its queue.
    pub weight: u32,
    /// The time at which the task is due to be submitted, in nanoseconds of the monotonic clock.
    pub due: u64,
}

/// Calls `arrive` for all tasks of a row at the times of a fixed schedule, from this thread: `rate`
/// arrivals a second, each with a task for every queue in use. A late arrival is not dropped, and
/// does not delay the following ones.
///
/// # Errors
/// Returns an error if the row has no queues or no rate.
#[expect(clippy::disallowed_methods, reason = "an open loop follows the machine's clock")]
pub fn arrivals(row: &Row, mut arrive: impl FnMut(Arrival)) -> Result<()> {
    let weights = row.used_weights()?;
    anyhow::ensure!(row.rate > 0, "row {}: at which rate?", row.name);
    let start = monotonic_nanoseconds() + 1_000_000;
    for number in 0..row.count {
        let tick = (number / weights.len()) as u64;
        let due = start + tick * 1_000_000_000 / u64::from(row.rate);
        std::thread::sleep(Duration::from_nanos(due.saturating_sub(monotonic_nanoseconds())));
        arrive(Arrival { number: number as u64, weight: weights[number % weights.len()], due });
    }
    Ok(())
}

/// A task that the producer submitted and the store accepted. As text: `number weight due
/// returned`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Submitted {
    /// The task.
    pub arrival: Arrival,
    /// The time at which its submit returned, in nanoseconds of the monotonic clock.
    pub returned: u64,
}

impl Submitted {
    /// Returns the record of a submit that returned now.
    #[must_use]
    pub fn now(arrival: Arrival) -> Self {
        Self { arrival, returned: monotonic_nanoseconds() }
    }
}

impl fmt::Display for Submitted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {} {}", self.arrival.number, self.arrival.weight, self.arrival.due, self.returned)
    }
}

impl FromStr for Submitted {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        let numbers: Vec<u64> = text.split(' ').map(str::parse).collect::<Result<_, _>>()?;
        let &[number, weight, due, returned] = numbers.as_slice() else { anyhow::bail!("`{text}` is no submit") };
        Ok(Self { arrival: Arrival { number, weight: weight.try_into()?, due }, returned })
    }
}

/// The times at which the handlers of tasks started.
#[derive(Debug)]
pub struct Starts {
    /// Nanoseconds of the monotonic clock; zero for a task that has not started.
    at: Vec<AtomicU64>,
    started: AtomicU64,
    again: AtomicU64,
}

impl Starts {
    /// Returns a record for tasks numbered from 0 to `count` - 1.
    #[must_use]
    pub fn new(count: usize) -> Self {
        let at = (0..count).map(|_| AtomicU64::new(0)).collect();
        Self { at, started: AtomicU64::new(0), again: AtomicU64::new(0) }
    }

    /// Records that the handler of task `number` starts now. Ignores numbers beyond the last task.
    pub fn start(&self, number: u64) {
        let Some(at) = usize::try_from(number).ok().and_then(|number| self.at.get(number)) else { return };
        let first = at.compare_exchange(0, monotonic_nanoseconds(), Ordering::Relaxed, Ordering::Relaxed).is_ok();
        let counter = if first { &self.started } else { &self.again };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the number of tasks that started.
    #[must_use]
    pub fn started(&self) -> u64 {
        self.started.load(Ordering::Relaxed)
    }

    /// Returns the latencies of a run. The figure is the 99th percentile of the queue in which it
    /// is highest. The extra figures are in microseconds: those of each queue, of all, and of all
    /// from their due times.
    ///
    /// # Errors
    /// Returns an error if no task was submitted, or if the row has no queues.
    pub fn measurement(&self, row: &Row, submitted: &[Submitted]) -> Result<Measurement> {
        let mut worst: f64 = 0.0;
        let mut extra = Vec::new();
        for weight in row.used_weights()? {
            let of_queue = submitted.iter().filter(|each| each.arrival.weight == weight);
            let mut latencies = self.latencies(of_queue, |each| each.returned);
            worst = worst.max(latencies.percentile(0.99));
            extra.extend(figures(&format!("weight_{weight}"), &mut latencies));
        }
        let mut latencies = self.latencies(submitted.iter(), |each| each.returned);
        extra.extend(figures("all", &mut latencies));
        extra.extend(figures("due", &mut self.latencies(submitted.iter(), |each| each.arrival.due)));
        extra.push(("per_second".to_owned(), achieved(row, submitted)?));
        let mut measurement = Measurement::of(worst).with_latencies(latencies).observed("started", self.started());
        measurement.extra.extend(extra);
        measurement.lost = (submitted.len() as u64).saturating_sub(self.started());
        measurement.duplicated = self.again.load(Ordering::Relaxed);
        Ok(measurement)
    }

    /// Returns the latencies from a moment to the start, or zero for a task that started before it.
    fn latencies<'a>(
        &self,
        submitted: impl Iterator<Item = &'a Submitted>,
        from: impl Fn(&Submitted) -> u64,
    ) -> Latencies {
        let mut latencies = Latencies::default();
        for each in submitted {
            let at = usize::try_from(each.arrival.number).ok().and_then(|number| self.at.get(number));
            if let Some(at) = at.map(|at| at.load(Ordering::Relaxed)).filter(|at| *at > 0) {
                latencies.record(Duration::from_nanos(at.saturating_sub(from(each))));
            }
        }
        latencies
    }
}

fn figures(of: &str, latencies: &mut Latencies) -> [(String, f64); 4] {
    [
        (format!("{of}_avg_us"), latencies.mean()),
        (format!("{of}_p50_us"), latencies.percentile(0.5)),
        (format!("{of}_p99_us"), latencies.percentile(0.99)),
        (format!("{of}_max_us"), latencies.percentile(1.0)),
    ]
}

/// Returns the accepted tasks a second, from the first due time to the return of the last submit.
fn achieved(row: &Row, submitted: &[Submitted]) -> Result<f64> {
    let first = submitted.iter().map(|each| each.arrival.due).min().context("nothing was submitted")?;
    let last = submitted.iter().map(|each| each.returned).max().context("nothing was submitted")?;
    let seconds = last.saturating_sub(first) as f64 / 1e9 + 1.0 / f64::from(row.rate);
    Ok(submitted.len() as f64 / seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn submitted(number: u64, weight: u32, due: u64, returned: u64) -> Submitted {
        Submitted { arrival: Arrival { number, weight, due }, returned }
    }

    #[test]
    fn a_submit_is_read_as_it_is_written() -> Result<()> {
        let one = submitted(3, 5, 1_000_000_007, 1_000_009_000);
        assert_eq!(one.to_string().parse::<Submitted>()?, one);
        Ok(())
    }

    #[test]
    fn a_task_that_started_twice_is_a_duplicate_and_one_that_did_not_is_lost() {
        let starts = Starts::new(2);
        [1, 1, 7].into_iter().for_each(|number| starts.start(number));
        assert_eq!((starts.started(), starts.again.load(Ordering::Relaxed)), (1, 1));
        let all = [submitted(0, 5, 1, 2), submitted(1, 5, 1, 2)];
        assert_eq!(starts.latencies(all.iter(), |each| each.returned).count(), 1);
    }

    #[test]
    fn a_start_before_the_submit_returned_took_no_time() {
        let starts = Starts::new(1);
        starts.start(0);
        let mut latencies = starts.latencies([submitted(0, 5, 1, u64::MAX)].iter(), |each| each.returned);
        assert!(latencies.percentile(1.0) <= 0.0);
    }
}
