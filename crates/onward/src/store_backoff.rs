//! The back-off of calls of the store that fail.

use std::time::Duration;

use onward_store::Clock;

use crate::{bounds, timer};

/// The pause before a failed call is repeated. It doubles with each failure in a row, from
/// [`bounds::STORE_RETRY_FIRST`] to [`bounds::STORE_RETRY_LONGEST`].
#[derive(Debug)]
pub(crate) struct StoreBackoff {
    next: Duration,
}

impl Default for StoreBackoff {
    fn default() -> Self {
        Self { next: bounds::STORE_RETRY_FIRST }
    }
}

impl StoreBackoff {
    /// Records a failure, and returns the pause after it.
    pub(crate) fn failed(&mut self) -> Duration {
        let pause = self.next;
        self.next = pause.saturating_mul(2).min(bounds::STORE_RETRY_LONGEST);
        pause
    }

    /// Records a success: the pause after the next failure is the first one again.
    pub(crate) fn succeeded(&mut self) {
        *self = Self::default();
    }

    /// Records a failure, and waits for the pause after it. Cancel-safe, but the failure counts.
    pub(crate) async fn wait(&mut self, clock: &dyn Clock) {
        let until = clock.steady().saturating_add(self.failed());
        timer::reached(clock, until).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pauses(backoff: &mut StoreBackoff, failures: usize) -> Vec<Duration> {
        (0..failures).map(|_| backoff.failed()).collect()
    }

    #[test]
    fn pauses_double_up_to_the_longest() {
        let pauses = pauses(&mut StoreBackoff::default(), 9);
        assert_eq!(pauses[..3], [50, 100, 200].map(Duration::from_millis));
        assert_eq!(pauses[7..], [Duration::from_secs(5); 2]);
    }

    #[test]
    fn a_success_brings_the_first_pause_back() {
        let mut backoff = StoreBackoff::default();
        pauses(&mut backoff, 3);
        backoff.succeeded();
        assert_eq!(backoff.failed(), bounds::STORE_RETRY_FIRST);
    }
}
