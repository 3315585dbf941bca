//! A token bucket: at most `burst + rate × time` starts.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use onward_store::Clock;

use crate::values::Rate;

/// A bucket that spaces starts evenly. Each start takes the next free moment, and the first is free
/// at once.
///
/// The burst is one, so `10/s` means a start every 100 ms, also after a pause.
#[derive(Debug)]
pub(super) struct TokenBucket {
    clock: Arc<dyn Clock>,
    interval: Duration,
    next: Mutex<Duration>,
}

impl TokenBucket {
    /// Creates a bucket with one token.
    pub(super) fn new(rate: Rate, clock: Arc<dyn Clock>) -> Self {
        let next = Mutex::new(clock.steady());
        Self { clock, interval: rate.period / rate.starts, next }
    }

    /// Takes a token, and waits until it is available. The token is taken even if the future is
    /// dropped.
    pub(super) async fn take(&self) {
        let now = self.clock.steady();
        let at = self.reserve(now);
        tokio::time::sleep(at.saturating_sub(now)).await;
    }

    /// Takes the next token and returns its moment.
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

    fn bucket() -> TokenBucket {
        TokenBucket::new("10/s".parse().unwrap(), Arc::new(ManualClock::default()))
    }

    #[test]
    fn starts_are_spaced_evenly() {
        let (bucket, now) = (bucket(), Duration::from_secs(3600));
        let waits = [(); 3].map(|()| bucket.reserve(now) - now);
        assert_eq!(waits.map(|wait| wait.as_millis()), [0, 100, 200]);
    }

    #[test]
    fn time_without_starts_is_not_saved_up() {
        let (bucket, later) = (bucket(), Duration::from_secs(7200));
        let waits = [(); 2].map(|()| bucket.reserve(later) - later);
        assert_eq!(waits.map(|wait| wait.as_millis()), [0, 100]);
    }
}
