//! A smoothed rate of growth.

use std::time::Duration;

/// The time constant of the smoothing: a sample's weight falls to 37 % after this time.
const WINDOW: Duration = Duration::from_secs(5);

/// The shortest time between two samples: over a shorter time a rate has little meaning.
const SHORTEST: Duration = Duration::from_millis(200);

/// A rate with exponential smoothing over irregular samples. A sample is weighted by the time since
/// the one before.
#[derive(Debug, Default)]
pub(crate) struct RateMeter {
    last: Option<Sample>,
    rate: Option<f64>,
}

#[derive(Debug, Clone, Copy)]
struct Sample {
    at: Duration,
    count: u64,
}

impl RateMeter {
    /// Returns the rate per second when the count is `count` at `at`, in steady time, or `None`
    /// before any time has passed. The first sample counts from `begin`, when the count was `base`.
    pub(crate) fn sample(&mut self, begin: Duration, base: u64, at: Duration, count: u64) -> Option<f64> {
        let last = *self.last.get_or_insert(Sample { at: begin, count: base });
        let Some(grown) = count.checked_sub(last.count) else {
            // The count has started again.
            *self = Self { last: Some(Sample { at, count }), rate: None };
            return None;
        };
        let elapsed = at.saturating_sub(last.at);
        if elapsed < SHORTEST {
            return self.rate.or_else(|| per_second(grown, elapsed));
        }
        self.last = Some(Sample { at, count });
        let recent = per_second(grown, elapsed)?;
        let weight = 1.0 - (-elapsed.div_duration_f64(WINDOW)).exp();
        self.rate = Some(self.rate.map_or(recent, |rate| rate + weight * (recent - rate)));
        self.rate
    }
}

#[expect(clippy::cast_precision_loss, reason = "a rate is for people")]
fn per_second(count: u64, elapsed: Duration) -> Option<f64> {
    (!elapsed.is_zero()).then(|| count as f64 / elapsed.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(meter: &mut RateMeter, seconds: u64, count: u64) -> Option<f64> {
        meter.sample(Duration::ZERO, 0, Duration::from_secs(seconds), count)
    }

    #[test]
    fn the_first_look_returns_the_mean_since_the_beginning() {
        assert_eq!(sample(&mut RateMeter::default(), 4, 100), Some(25.0));
    }

    #[test]
    fn a_steady_count_has_a_steady_rate() {
        let mut meter = RateMeter::default();
        for second in 1..20 {
            let rate = sample(&mut meter, second, second * 10).unwrap();
            assert!((rate - 10.0).abs() < 1e-9, "{rate}");
        }
    }

    #[test]
    fn a_change_of_pace_is_followed_within_the_window() {
        let mut meter = RateMeter::default();
        sample(&mut meter, 100, 1000);
        let soon = sample(&mut meter, 101, 1100).unwrap();
        assert!((10.0..50.0).contains(&soon), "{soon}");
        let later =
            (102..130).filter_map(|second| sample(&mut meter, second, 1100 + (second - 101) * 100)).last().unwrap();
        assert!((95.0..=100.0).contains(&later), "{later}");
    }

    #[test]
    fn looks_that_are_too_close_do_not_count() {
        let mut meter = RateMeter::default();
        sample(&mut meter, 10, 100);
        let rate = meter.sample(Duration::ZERO, 0, Duration::from_millis(10_001), 5000);
        assert_eq!(rate, Some(10.0));
    }

    #[test]
    fn a_count_that_decreases_starts_again() {
        let mut meter = RateMeter::default();
        sample(&mut meter, 10, 100);
        assert_eq!(sample(&mut meter, 11, 0), None);
        assert_eq!(sample(&mut meter, 12, 7), Some(7.0));
    }

    #[test]
    fn no_time_is_no_rate() {
        assert_eq!(sample(&mut RateMeter::default(), 0, 100), None);
    }
}
