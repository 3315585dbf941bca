//! Samples the sources of pressure and reacts to a change.

use std::time::Duration;

use super::dispatcher::Dispatcher;
use crate::pressure::Pressure;

impl Dispatcher {
    /// Samples the sources of pressure, if it is time and anything runs or waits.
    pub(super) fn sample_pressure(&mut self, now: Duration) {
        let gauge = &self.run.inner.gauge;
        if !gauge.has_sources() || gauge.next_sample() > now || !(self.deadlines.may_claim || self.is_busy()) {
            return;
        }
        let before = gauge.least();
        gauge.sample(now);
        let after = gauge.least();
        self.deadlines.may_claim |= self.is_limited_by_pressure && after < before;
        if after != before {
            log_pressure(&gauge.pressure());
        }
    }

    /// Returns the time of the next sample; `None` while nothing runs or waits.
    pub(super) fn next_sample(&self) -> Option<Duration> {
        let gauge = &self.run.inner.gauge;
        (gauge.has_sources() && !self.shutdown.is_stopping() && self.is_busy()).then(|| gauge.next_sample())
    }

    fn is_busy(&self) -> bool {
        self.is_limited_by_pressure || !self.run.state.occupancy().is_empty()
    }
}

/// Logs which tasks start from now on, and which source is the reason.
fn log_pressure(pressure: &Pressure) {
    let source = pressure.highest_source().map(|source| source.name.as_str());
    match pressure.least {
        Some(least) => tracing::info!(
            source,
            pressure = pressure.highest,
            least = least.0,
            "only tasks of this priority and above start"
        ),
        None => tracing::info!(source, pressure = pressure.highest, "tasks of every priority start again"),
    }
}
