//! Even spacing of starts.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use onward_store::Clock;

use crate::values::Rate;

/// Reserves the moments of starts, an interval apart; the first is at once. At `10/s` a start comes
/// every 100 ms at most, also after a time without starts.
///
/// Unlike the token bucket of a store's rate limit, it reserves moments ahead, so a late wake-up
/// does not delay the starts after it.
#[derive(Debug)]
pub(super) struct Pacer {
    clock: Arc<dyn Clock>,
    interval: Duration,
    next: Mutex<Duration>,
}

impl Pacer {
    /// Creates a pacer whose first start is free at once.
    pub(super) fn new(rate: Rate, clock: Arc<dyn Clock>) -> Self {
        let next = Mutex::new(clock.steady());
        Self { clock, interval: rate.period / rate.starts, next }
    }

    /// Reserves the next moment and waits for it. The moment stays reserved if the future is
    /// dropped.
    pub(super) async fn wait(&self) {
        let now = self.clock.steady();
        let at = self.reserve(now);
        tokio::time::sleep(at.saturating_sub(now)).await;
    }

    /// Reserves the next free moment and returns it.
    fn reserve(&self, now: Duration) -> Duration {
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        let at = (*next).max(now);
        *next = at + self.interval;
        at
    }
}

#[cfg(test)]
mod tests {
    use onward_store::ManualClock;

    use super::*;

    fn pacer() -> Pacer {
        Pacer::new("10/s".parse().unwrap(), Arc::new(ManualClock::default()))
    }

    #[test]
    fn starts_are_spaced_evenly() {
        let (pacer, now) = (pacer(), Duration::from_secs(3600));
        let waits = [(); 3].map(|()| pacer.reserve(now) - now);
        assert_eq!(waits.map(|wait| wait.as_millis()), [0, 100, 200]);
    }

    #[test]
    fn time_without_starts_is_not_saved_up() {
        let (pacer, later) = (pacer(), Duration::from_secs(7200));
        let waits = [(); 2].map(|()| pacer.reserve(later) - later);
        assert_eq!(waits.map(|wait| wait.as_millis()), [0, 100]);
    }
}
