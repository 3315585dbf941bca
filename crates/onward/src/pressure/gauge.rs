//! The pressure at the last sample.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use onward_store::{Io, IoKind, Priority};
use serde::Serialize;

use super::bandwidth::{Backlog, Bandwidth};
use super::source::PressureSource;
use super::throttle::Throttle;
use crate::bounds;
use crate::error::{Error, Result};

/// The pressure settings of an engine.
#[derive(Debug, Clone, Default)]
pub(crate) struct PressureSettings {
    pub(crate) sources: Vec<Arc<dyn PressureSource>>,
    pub(crate) throttle: Throttle,
    /// Bytes a second; 0 for unlimited.
    bandwidth: Io,
    /// A kind that was set to a bandwidth of zero.
    none_of: Option<IoKind>,
}

impl PressureSettings {
    pub(crate) fn set_bandwidth(&mut self, kind: IoKind, bytes_per_second: u64) {
        self.bandwidth.set(kind, bytes_per_second);
        self.none_of = self.none_of.filter(|none| *none != kind).or((bytes_per_second == 0).then_some(kind));
    }

    pub(crate) fn check(&self) -> Result<()> {
        if let Some(kind) = self.none_of {
            return Err(Error::invalid(format!(
                "the bandwidth of the engine for {} is 0 bytes a second; leave it out for no limit",
                kind.name()
            )));
        }
        self.throttle.check()
    }
}

/// The pressure at the last sample. It is empty for an engine without sources.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[non_exhaustive]
pub struct Pressure {
    /// The highest pressure of all sources, from 0.0 to 1.0.
    pub highest: f32,
    /// The lowest priority of a task that may start; `None` if every task may.
    pub least: Option<Priority>,
    /// The reading of each source.
    pub sources: Vec<PressureReading>,
}

/// The reading of one source of pressure.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct PressureReading {
    /// The name of the source.
    pub name: String,
    /// The pressure, from 0.0 to 1.0.
    pub pressure: f32,
}

impl Pressure {
    /// Returns the source with the highest pressure.
    #[must_use]
    pub fn highest_source(&self) -> Option<&PressureReading> {
        self.sources.iter().max_by(|one, other| one.pressure.total_cmp(&other.pressure))
    }
}

/// A gauge that samples the sources and keeps the last sample.
#[derive(Debug)]
pub(crate) struct Gauge {
    sources: Vec<Arc<dyn PressureSource>>,
    throttle: Throttle,
    pub(crate) bandwidth: Bandwidth,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The time of the last sample, in steady time.
    sampled: Option<Duration>,
    backlog: Backlog,
    pressure: Pressure,
}

impl Gauge {
    pub(crate) fn new(settings: &PressureSettings) -> Self {
        Self {
            sources: settings.sources.clone(),
            throttle: settings.throttle.clone(),
            bandwidth: Bandwidth::new(settings.bandwidth),
            state: Mutex::default(),
        }
    }

    /// Returns true if there is anything to sample.
    pub(crate) fn has_sources(&self) -> bool {
        !self.sources.is_empty() || self.bandwidth.is_limited()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the last sample.
    pub(crate) fn pressure(&self) -> Pressure {
        self.lock().pressure.clone()
    }

    /// Returns the lowest priority of a task that may be claimed.
    pub(crate) fn least(&self) -> Option<Priority> {
        if self.has_sources() { self.lock().pressure.least } else { None }
    }

    /// Returns the time of the next sample, in steady time.
    pub(crate) fn next_sample(&self) -> Duration {
        self.lock().sampled.map_or(Duration::ZERO, |sampled| sampled.saturating_add(bounds::PRESSURE_INTERVAL))
    }

    /// Samples every source.
    pub(crate) fn sample(&self, now: Duration) {
        // The sources run without the lock, because they may take a moment.
        let mut sources: Vec<PressureReading> = self.sources.iter().map(|source| reading(&**source)).collect();
        let mut state = self.lock();
        let elapsed = state.sampled.map_or(Duration::ZERO, |sampled| now.saturating_sub(sampled));
        let moved = self.bandwidth.sample(&mut state.backlog, elapsed);
        sources.extend(moved.into_iter().map(|(name, pressure)| PressureReading { name: name.to_owned(), pressure }));
        let highest = sources.iter().map(|reading| reading.pressure).fold(0.0, f32::max);
        state.pressure = Pressure { highest, least: self.throttle.least(highest), sources };
        state.sampled = Some(now);
    }
}

/// Returns the reading of a source. A panic or an invalid value counts as no pressure or is
/// clamped.
fn reading(source: &dyn PressureSource) -> PressureReading {
    let name = source.name().to_owned();
    let pressure = catch_unwind(AssertUnwindSafe(|| source.pressure())).unwrap_or_else(|_| {
        tracing::warn!(name, "the source of pressure panicked; it counts as none");
        0.0
    });
    PressureReading { name, pressure: if pressure.is_nan() { 0.0 } else { pressure.clamp(0.0, 1.0) } }
}

#[cfg(test)]
mod tests {
    use super::super::source::PressureFn;
    use super::*;

    fn gauge(sources: Vec<PressureFn>) -> Gauge {
        let sources = sources.into_iter().map(|source| Arc::new(source) as Arc<dyn PressureSource>).collect();
        Gauge::new(&PressureSettings { sources, ..PressureSettings::default() })
    }

    #[test]
    fn the_highest_source_counts() {
        let gauge =
            gauge(vec![PressureFn::new("a", || 0.2), PressureFn::new("b", || 0.8), PressureFn::new("c", || 0.6)]);
        gauge.sample(Duration::ZERO);
        let pressure = gauge.pressure();
        assert_eq!((pressure.highest, pressure.least), (0.8, Some(Priority::HIGH)));
        assert_eq!(pressure.highest_source().map(|reading| reading.name.as_str()), Some("b"));
    }

    #[test]
    fn a_source_that_says_nonsense_harms_nothing() {
        let panics = PressureFn::new("panics", || panic!("no such file"));
        let gauge = gauge(vec![panics, PressureFn::new("nan", || f32::NAN), PressureFn::new("much", || 7.0)]);
        gauge.sample(Duration::ZERO);
        let readings: Vec<f32> = gauge.pressure().sources.iter().map(|reading| reading.pressure).collect();
        assert_eq!(readings, [0.0, 0.0, 1.0]);
    }
}
