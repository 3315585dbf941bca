//! The protocol between the benchmark programs and their runner.
//!
//! The workload is data: [`Row`]s read from `bench/scenarios/*.toml`. A program gets one row
//! ([`Request`]), runs it once, and returns [`Measurement`]s. [`run`] checks them against the row's
//! expected facts and prints them as [`Line`]s, one JSON object each. This crate does not depend
//! on any database.

mod allocations;
mod grid;
mod in_flight;
mod line;
mod measure;
mod program;
mod rates;
mod scenario;
mod sockets;
mod step_times;
mod workload;

pub use allocations::count_allocations;
pub use in_flight::{Ends, Numbers};
pub use line::{CommitSizes, Line};
pub use measure::{Latencies, Ledger, Usage, microseconds_per, monotonic_nanoseconds, now, pace, repeat};
pub use program::{Arguments, Request, run};
pub use rates::{Arrival, Mode, Producer, Queues, Starts, Submitted, arrivals, queue_name};
pub use scenario::{Backlog, Better, DurabilityLevel, Entry, Expected, Row, load_scenarios};
pub use sockets::{Pair, Shape, Sockets, Transport};
pub use step_times::StepTimes;
pub use workload::{BYTES_CHUNK, BYTES_TOTAL, BackoffName, GROUP_LIMIT, Order, group_of, key_prefix};

/// The measurement of one row in one run.
#[derive(Debug, Default, Clone)]
pub struct Measurement {
    /// The figure of the row, in the row's unit.
    pub value: f64,
    /// Latencies of single operations, if the row has them.
    pub latencies: Option<Latencies>,
    /// The observed facts, by name. They must match the row's `expect`.
    pub observed: std::collections::BTreeMap<String, u64>,
    /// Tasks that were acknowledged and never ran to their end.
    pub lost: u64,
    /// Tasks that ran to their end more than once.
    pub duplicated: u64,
    /// The sizes of the run's commits, if they are known.
    pub commits: Option<CommitSizes>,
    /// The settings to print, if they say more than the requested ones.
    pub settings: Option<String>,
    /// Further figures, by name.
    pub extra: std::collections::BTreeMap<String, f64>,
}

impl Measurement {
    /// Returns a measurement with only a figure.
    #[must_use]
    pub fn of(value: f64) -> Self {
        Self { value, ..Self::default() }
    }

    /// Adds latencies of single operations.
    #[must_use]
    pub fn with_latencies(mut self, latencies: Latencies) -> Self {
        self.latencies = Some(latencies);
        self
    }

    /// Adds an observed fact.
    #[must_use]
    pub fn observed(mut self, name: &str, count: u64) -> Self {
        self.observed.insert(name.to_owned(), count);
        self
    }

    /// Adds a further figure.
    #[must_use]
    pub fn with(mut self, name: &str, value: f64) -> Self {
        self.extra.insert(name.to_owned(), value);
        self
    }
}
