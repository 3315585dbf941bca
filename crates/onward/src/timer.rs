//! Waits by a store's clock.

use std::pin::Pin;
use std::time::Duration;

use onward_store::Clock;
use tokio::time::{Sleep, sleep};

use crate::bounds::CLOCK_CHECK;

/// Completes when the clock's steady time may have reached `at`, or when the clock may have been
/// set. Without such a cause it completes at most once every [`CLOCK_CHECK`]. The caller looks at
/// the clock again. Cancel-safe.
pub(crate) async fn tick(clock: &dyn Clock, at: Duration) {
    let left = at.saturating_sub(clock.steady());
    match clock.moved() {
        None => sleep(left.min(CLOCK_CHECK)).await,
        Some(_) if left.is_zero() => {}
        Some(mut moved) => {
            moved.mark_unchanged();
            if clock.steady() < at && moved.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }
}

/// Completes when the clock's steady time has reached `at`. Cancel-safe.
pub(crate) async fn reached(clock: &dyn Clock, at: Duration) {
    while clock.steady() < at {
        tick(clock, at).await;
    }
}

/// A timer for repeated waits, each mostly for a later moment than the one before. Moving a timer
/// of the runtime to an earlier time wakes one of its threads, so a set timer is kept until it
/// fires or is too late.
#[derive(Debug, Default)]
pub(crate) struct Alarm {
    set: Option<Pin<Box<Sleep>>>,
}

impl Alarm {
    /// Completes as [`tick`] does; it may also complete because the time of an earlier wait is
    /// over.
    pub(crate) async fn tick(&mut self, clock: &dyn Clock, at: Duration) {
        if clock.moved().is_some() {
            return tick(clock, at).await;
        }
        self.set(sleep(at.saturating_sub(clock.steady()).min(CLOCK_CHECK))).await;
    }

    fn set(&mut self, sleep: Sleep) -> Pin<&mut Sleep> {
        let is_early_enough = |set: &Pin<Box<Sleep>>| !set.is_elapsed() && set.deadline() <= sleep.deadline();
        let set = match self.set.take().filter(is_early_enough) {
            Some(set) => set,
            None => Box::pin(sleep),
        };
        self.set.insert(set).as_mut()
    }
}

#[cfg(test)]
mod tests {
    use onward_store::SystemClock;
    use tokio::time::{Instant, timeout};

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// Abandons an alarm for a moment this far away, and returns how long an alarm for another
    /// moment takes then.
    async fn after(given_up: Duration, wanted: Duration) -> Duration {
        let (clock, mut alarm) = (SystemClock, Alarm::default());
        let steady = clock.steady();
        timeout(Duration::from_millis(1), alarm.tick(&clock, steady + given_up)).await.unwrap_err();
        let began = Instant::now();
        alarm.tick(&clock, steady + wanted).await;
        began.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn an_alarm_that_was_set_for_later_goes_off_when_it_is_wanted() {
        let taken = after(SECOND * 30, SECOND * 5).await;
        assert!(taken > SECOND * 4 && taken < SECOND * 6, "{taken:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn an_alarm_is_not_put_off_by_who_waits_longer() {
        let taken = after(SECOND * 5, SECOND * 30).await;
        assert!(taken > SECOND * 4 && taken < SECOND * 6, "{taken:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn an_alarm_that_has_fired_is_set_again() {
        let (clock, mut alarm) = (SystemClock, Alarm::default());
        alarm.tick(&clock, clock.steady() + SECOND).await;
        let began = Instant::now();
        alarm.tick(&clock, clock.steady() + SECOND * 5).await;
        assert!(began.elapsed() > SECOND * 4, "{:?}", began.elapsed());
    }
}
