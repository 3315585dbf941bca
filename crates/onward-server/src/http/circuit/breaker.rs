//! The decisions of a circuit breaker, without clock and I/O.

use std::time::Duration;

use crate::http::bounds;

/// A circuit breaker. It is closed while calls succeed. [`bounds::STORE_FAILURES`] failures in a
/// row open it; then it admits one call as a trial after [`bounds::STORE_PAUSE`], and doubles the
/// pause after each trial that fails. A call that succeeds closes it.
#[derive(Debug, Default)]
pub(super) struct Breaker {
    failures: u32,
    open: Option<Open>,
}

#[derive(Debug, Clone, Copy)]
struct Open {
    pause: Duration,
    /// The time from which the next trial is admitted.
    until: Duration,
}

/// An admitted call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Admitted {
    /// A call of the closed breaker.
    Normal,
    /// The trial of the open breaker.
    Trial,
}

/// The change of a breaker by the end of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    /// The breaker has opened, or stays open after a trial, for this time.
    Opened(Duration),
    /// The breaker has closed.
    Closed,
}

impl Breaker {
    /// Returns the time until the next trial; `None` if a call is admitted now.
    pub(super) fn wait(&self, now: Duration) -> Option<Duration> {
        self.open.and_then(|open| open.until.checked_sub(now)).filter(|wait| !wait.is_zero())
    }

    /// Admits a call, or returns the time until the next trial.
    pub(super) fn admit(&mut self, now: Duration) -> Result<Admitted, Duration> {
        if let Some(wait) = self.wait(now) {
            return Err(wait);
        }
        let Some(open) = &mut self.open else { return Ok(Admitted::Normal) };
        // A trial whose end is never noted is followed by another one after the pause.
        open.until = now.saturating_add(open.pause);
        Ok(Admitted::Trial)
    }

    /// Notes that a call succeeded.
    pub(super) fn succeeded(&mut self) -> Option<Change> {
        self.failures = 0;
        self.open.take().map(|_| Change::Closed)
    }

    /// Notes that a call failed.
    pub(super) fn failed(&mut self, admitted: Admitted, now: Duration) -> Option<Change> {
        let pause = match self.open {
            Some(open) if admitted == Admitted::Trial => open.pause.saturating_mul(2).min(bounds::STORE_PAUSE_MAXIMUM),
            // A call from before the breaker opened shows nothing new.
            Some(_) => return None,
            None => {
                self.failures += 1;
                if self.failures < bounds::STORE_FAILURES {
                    return None;
                }
                bounds::STORE_PAUSE
            }
        };
        self.open = Some(Open { pause, until: now.saturating_add(pause) });
        Some(Change::Opened(pause))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn opened() -> Breaker {
        let mut breaker = Breaker::default();
        for _ in 0..bounds::STORE_FAILURES {
            breaker.failed(Admitted::Normal, Duration::ZERO);
        }
        breaker
    }

    #[test]
    fn a_success_between_failures_keeps_it_closed() {
        let mut breaker = Breaker::default();
        for _ in 0..20 {
            for _ in 1..bounds::STORE_FAILURES {
                assert_eq!(breaker.failed(Admitted::Normal, Duration::ZERO), None);
            }
            assert_eq!(breaker.succeeded(), None);
        }
        assert_eq!(breaker.admit(Duration::ZERO), Ok(Admitted::Normal));
    }

    #[test]
    fn only_one_trial_is_admitted_at_a_time() {
        let mut breaker = opened();
        assert_eq!(breaker.admit(SECOND / 2), Err(SECOND / 2));
        assert_eq!(breaker.admit(SECOND), Ok(Admitted::Trial));
        assert_eq!(breaker.admit(SECOND), Err(SECOND));
        // The end of the first trial was never noted.
        assert_eq!(breaker.admit(2 * SECOND), Ok(Admitted::Trial));
    }

    #[test]
    fn the_pause_doubles_up_to_its_maximum() {
        let (mut breaker, mut now, mut pauses) = (opened(), SECOND, Vec::new());
        for _ in 0..7 {
            assert_eq!(breaker.admit(now), Ok(Admitted::Trial));
            let Some(Change::Opened(pause)) = breaker.failed(Admitted::Trial, now) else { panic!("it is not open") };
            pauses.push(pause.as_secs());
            now += pause;
        }
        assert_eq!(pauses, [2, 4, 8, 16, 30, 30, 30]);
    }

    #[test]
    fn a_late_failure_of_an_earlier_call_does_not_lengthen_the_pause() {
        let mut breaker = opened();
        assert_eq!(breaker.failed(Admitted::Normal, SECOND / 2), None);
        assert_eq!(breaker.admit(SECOND), Ok(Admitted::Trial));
    }

    #[test]
    fn a_trial_that_succeeds_closes_it() {
        let mut breaker = opened();
        breaker.admit(SECOND).unwrap();
        assert_eq!(breaker.succeeded(), Some(Change::Closed));
        assert_eq!(breaker.admit(SECOND), Ok(Admitted::Normal));
        assert_eq!(breaker.failed(Admitted::Normal, SECOND), None);
    }
}
