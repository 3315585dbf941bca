//! The settings of an engine.

use std::collections::HashMap;
use std::fmt;
use std::time::Duration;

use onward_store::rules::retry::RetryPolicy;
use onward_store::{Name, QueueMode, bounds as store_bounds};

use crate::bounds;
use crate::control::Retention;
use crate::error::{Error, Result};
use crate::limits::Preemption;
use crate::pressure::PressureSettings;

/// The settings of an engine.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub(crate) name: String,
    pub(crate) concurrency: usize,
    pub(crate) prefetch: usize,
    pub(crate) lease: Duration,
    pub(crate) grace: Duration,
    pub(crate) cleanup_limit: Duration,
    pub(crate) shutdown_limit: Duration,
    pub(crate) timeout: Option<Duration>,
    pub(crate) retry: RetryPolicy,
    pub(crate) queue_retry: HashMap<Name, RetryPolicy>,
    /// `None` for every queue.
    pub(crate) queues: Option<Vec<Name>>,
    /// `None` for the store's mode.
    pub(crate) queue_mode: Option<QueueMode>,
    pub(crate) preemption: Option<Preemption>,
    pub(crate) pressure: PressureSettings,
    pub(crate) retention: Retention,
    pub(crate) turns: usize,
    pub(crate) orchestrations_cached: usize,
    pub(crate) runs_workflows: bool,
    pub(crate) history_events: u64,
    pub(crate) history_bytes: u64,
    pub(crate) run_history_events: u64,
    pub(crate) run_history_bytes: u64,
    /// True if tasks start only within the credit of the engine.
    pub(crate) on_credit: bool,
    /// True if handlers may be of kinds that Onward reserves.
    pub(crate) serves_reserved: bool,
}

impl Default for Settings {
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            name: format!("process {}", std::process::id()),
            concurrency: cores.saturating_mul(4).min(bounds::CONCURRENCY),
            prefetch: 4096,
            lease: Duration::from_secs(10),
            grace: Duration::from_secs(5),
            cleanup_limit: Duration::from_secs(5),
            shutdown_limit: Duration::from_secs(30),
            timeout: None,
            retry: RetryPolicy::default(),
            queue_retry: HashMap::new(),
            queues: None,
            queue_mode: None,
            preemption: None,
            pressure: PressureSettings::default(),
            retention: Retention::default(),
            turns: 256,
            orchestrations_cached: 10_000,
            runs_workflows: false,
            history_events: 100_000,
            history_bytes: 64 << 20,
            run_history_events: bounds::RUN_HISTORY_EVENTS,
            run_history_bytes: bounds::RUN_HISTORY_BYTES,
            on_credit: false,
            serves_reserved: false,
        }
    }
}

impl Settings {
    pub(super) fn check(&self) -> Result<()> {
        if !(1..=bounds::CONCURRENCY).contains(&self.concurrency) {
            return Err(wrong("concurrency", self.concurrency, range(1, bounds::CONCURRENCY)));
        }
        if self.prefetch > bounds::PREFETCH {
            return Err(wrong("prefetch", self.prefetch, range(0, bounds::PREFETCH)));
        }
        if !(1..=bounds::TURNS).contains(&self.turns) {
            return Err(wrong("number of concurrent turns", self.turns, range(1, bounds::TURNS)));
        }
        if self.orchestrations_cached > bounds::ORCHESTRATIONS_CACHED {
            let remedy = range(0, bounds::ORCHESTRATIONS_CACHED);
            return Err(wrong("number of orchestrations to keep", self.orchestrations_cached, remedy));
        }
        let leases = store_bounds::LEASE_MINIMUM..=store_bounds::LEASE_MAXIMUM;
        if !leases.contains(&self.lease) {
            return Err(wrong("lease", self.lease, range(leases.start(), leases.end())));
        }
        if self.timeout.is_some_and(|timeout| timeout.is_zero()) {
            return Err(wrong("timeout", Duration::ZERO, "leave it out for no timeout".to_owned()));
        }
        if self.preemption.is_some_and(|preemption| preemption.levels == 0) {
            return Err(wrong("number of levels for pre-emption", 0, "it must be at least 1".to_owned()));
        }
        self.pressure.check()?;
        self.retry.check("*")?;
        self.queue_retry.iter().try_for_each(|(queue, policy)| policy.check(&format!("* in queue {queue}")))?;
        Ok(())
    }
}

fn range(from: impl fmt::Debug, to: impl fmt::Debug) -> String {
    format!("it must be from {from:?} to {to:?}")
}

#[cold]
fn wrong(what: &str, value: impl fmt::Debug, remedy: String) -> Error {
    Error::invalid(format!("the {what} of the engine is {value:?}; {remedy}"))
}
