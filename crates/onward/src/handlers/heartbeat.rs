//! Heartbeats of a handler.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use onward_store::Clock;

use super::context::Context;

/// The last heartbeat of an attempt's handler. Without a heartbeat timeout a heartbeat costs one
/// atomic load.
#[derive(Debug, Default)]
pub(crate) struct Heartbeat {
    /// The longest silence in microseconds; 0 for no limit.
    limit: AtomicU64,
    /// The last heartbeat, in microseconds of steady time.
    last: AtomicU64,
}

impl Heartbeat {
    /// Sets the longest silence of the handler from now on.
    pub(crate) fn listen(&self, limit: Duration, now: Duration) {
        self.last.store(microseconds(now), Ordering::Relaxed);
        self.limit.store(microseconds(limit).max(1), Ordering::Release);
    }

    pub(crate) fn beat(&self, clock: &dyn Clock) {
        if self.limit.load(Ordering::Relaxed) > 0 {
            self.last.store(microseconds(clock.steady()), Ordering::Relaxed);
        }
    }

    /// Returns the steady time at which the handler has been silent for too long without a further
    /// heartbeat, or `None` if there is no limit.
    pub(crate) fn silent_at(&self) -> Option<Duration> {
        let limit = self.limit()?;
        Some(Duration::from_micros(self.last.load(Ordering::Relaxed)).saturating_add(limit))
    }

    pub(crate) fn limit(&self) -> Option<Duration> {
        let limit = self.limit.load(Ordering::Acquire);
        (limit > 0).then(|| Duration::from_micros(limit))
    }
}

fn microseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

/// Long work whose handler may get stuck.
impl Context {
    /// Reports that the handler is alive. If the task or [its
    /// options](crate::HandlerOptions::heartbeat_timeout) set a heartbeat timeout, that time starts
    /// again. [`progress`](Self::progress) and [`checkpoint`](Self::checkpoint) count as heartbeats
    /// too.
    ///
    /// It costs a few nanoseconds (some tens with a heartbeat timeout), takes no lock and writes
    /// nothing.
    pub fn heartbeat(&self) {
        self.attempt.heartbeat.beat(&*self.run.inner.clock);
    }

    /// Returns how long the handler may be silent before this attempt fails, or `None` if there is
    /// no limit.
    #[must_use]
    pub fn heartbeat_timeout(&self) -> Option<Duration> {
        self.attempt.heartbeat.limit()
    }
}
