//! The delay before the next attempt to connect.

use std::time::Duration;

use crate::socket::bounds::RECONNECT_SHORTEST;
use crate::socket::options::policies::Reconnect;

/// The state of the delay, which grows with each failed attempt.
#[derive(Debug)]
pub(super) struct Backoff {
    reconnect: Reconnect,
    next: Duration,
}

impl Backoff {
    pub(super) fn new(reconnect: Reconnect) -> Self {
        let Reconnect { first, longest } = reconnect;
        let reconnect = Reconnect { first: first.max(RECONNECT_SHORTEST), longest: longest.max(RECONNECT_SHORTEST) };
        Self { reconnect, next: reconnect.first }
    }

    /// Resets the delay after a connection that lasted at least as long as the next delay. A peer
    /// that closes shortly after each handshake therefore does not cause a reconnect at the highest
    /// rate for ever.
    pub(super) fn connection_lasted(&mut self, lasted: Duration) {
        if lasted >= self.next {
            self.next = self.reconnect.first;
        }
    }

    /// Returns the delay for the next attempt. `random` is from 0 to 1.
    pub(super) fn delay(&mut self, random: f64) -> Duration {
        let seconds = self.next.min(self.reconnect.longest).as_secs_f64() * (0.5 + random.clamp(0.0, 1.0));
        let delay = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
        self.next = self.next.saturating_mul(2).min(self.reconnect.longest);
        delay
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn backoff() -> Backoff {
        Backoff::new(Reconnect { first: Duration::from_millis(100), longest: Duration::from_secs(1) })
    }

    #[test]
    fn the_delay_doubles_up_to_the_longest() {
        let mut backoff = backoff();
        let delays: Vec<u128> = (0..6).map(|_| backoff.delay(0.5).as_millis()).collect();
        assert_eq!(delays, [100, 200, 400, 800, 1000, 1000]);
    }

    #[test]
    fn the_delay_is_spread_from_half_to_one_and_a_half() {
        assert_eq!(backoff().delay(0.0), Duration::from_millis(50));
        assert_eq!(backoff().delay(1.0), Duration::from_millis(150));
    }

    #[test]
    fn the_backoff_restarts_after_a_connection_that_lasted() {
        let mut backoff = backoff();
        backoff.delay(0.5);
        backoff.delay(0.5);
        backoff.connection_lasted(Duration::from_millis(400));
        assert_eq!(backoff.delay(0.5), Duration::from_millis(100));
    }

    #[test]
    fn after_a_connection_that_was_soon_over_it_does_not() {
        let mut backoff = backoff();
        backoff.delay(0.5);
        backoff.delay(0.5);
        backoff.connection_lasted(Duration::from_millis(399));
        assert_eq!(backoff.delay(0.5), Duration::from_millis(400));
    }

    #[test]
    fn a_first_time_of_zero_is_no_reason_to_try_without_a_pause() {
        for longest in [Duration::ZERO, Duration::from_secs(1)] {
            let mut backoff = Backoff::new(Reconnect { first: Duration::ZERO, longest });
            assert!((0..4).all(|_| !backoff.delay(0.0).is_zero()));
            backoff.connection_lasted(Duration::from_secs(1));
            assert!(!backoff.delay(0.0).is_zero());
        }
    }

    #[test]
    fn the_longest_time_there_is_does_not_overflow() {
        let mut backoff = Backoff::new(Reconnect { first: Duration::MAX, longest: Duration::MAX });
        for _ in 0..4 {
            backoff.delay(1.0);
        }
    }
}
