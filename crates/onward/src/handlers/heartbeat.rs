//! Signs of life of a handler.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use onward_store::Clock;

use super::context::Context;

/// When the handler of an attempt last gave a sign of life. Until somebody listens for one, a sign
/// costs a look at a number.
#[derive(Debug, Default)]
pub(crate) struct Heartbeat {
    /// How long it may be silent, in microseconds; 0: nobody listens.
    limit: AtomicU64,
    /// In microseconds of steady time.
    last: AtomicU64,
}

impl Heartbeat {
    /// From now on the handler must not be silent for so long.
    pub(crate) fn listen(&self, limit: Duration, now: Duration) {
        self.last.store(microseconds(now), Ordering::Relaxed);
        self.limit.store(microseconds(limit).max(1), Ordering::Release);
    }

    pub(crate) fn beat(&self, clock: &dyn Clock) {
        if self.limit.load(Ordering::Relaxed) > 0 {
            self.last.store(microseconds(clock.steady()), Ordering::Relaxed);
        }
    }

    /// When the handler has been silent for too long if no further sign comes, in steady time;
    /// `None` if it may be.
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
    /// Says that the handler is alive, where its task or [its
    /// options](crate::HandlerOptions::heartbeat_timeout) say how long it may be silent: that time
    /// begins anew. What it says of its [progress](Self::progress) and keeps by
    /// [`checkpoint`](Self::checkpoint) says so too.
    ///
    /// Costs a few nanoseconds (some tens where a sign is waited for), takes no lock and writes
    /// nothing.
    pub fn heartbeat(&self) {
        self.attempt.heartbeat.beat(&*self.run.inner.clock);
    }

    /// How long the handler may be silent until this attempt counts as failed; `None` if for ever.
    #[must_use]
    pub fn heartbeat_timeout(&self) -> Option<Duration> {
        self.attempt.heartbeat.limit()
    }
}
