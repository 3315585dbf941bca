//! Forecasts of a running task: its progress, its rate and its remaining time, as pure functions.

use std::time::Duration;

use onward_store::{ByteProgress, KindStatistics, TaskRecord, TaskState, Timestamp};
use serde::Serialize;

/// The progress and the remaining time of a running task, from the reports of its handler, or else
/// from the run time of earlier tasks of its kind.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
#[non_exhaustive]
pub struct Forecast {
    /// The progress from 0.0 to 1.0: as the handler reports it, or else by its bytes, or else by
    /// time ([`is_estimated`](Self::is_estimated)).
    pub fraction: Option<f32>,
    /// The rate in bytes a second, if the handler counts bytes. It is smoothed over some seconds if
    /// this engine runs the task, and otherwise the mean since the attempt began.
    pub bytes_per_second: Option<f64>,
    /// The remaining time, in seconds.
    #[serde(serialize_with = "optional_seconds")]
    pub remaining: Option<Duration>,
    /// True if the handler reports nothing, and this is derived from the mean run time of completed
    /// tasks of its kind.
    pub is_estimated: bool,
}

fn optional_seconds<S: serde::Serializer>(duration: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
    duration.map(|duration| duration.as_secs_f64()).serialize(serializer)
}

/// The highest progress of an estimate.
const ESTIMATE_HIGHEST: f32 = 0.99;

/// The longest remaining time of a forecast.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 3600);

/// The progress that a handler has reported.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ReportedProgress {
    pub(crate) fraction: Option<f32>,
    pub(crate) bytes: Option<ByteProgress>,
    pub(crate) bytes_per_second: Option<f64>,
}

impl Forecast {
    /// Returns the forecast of a task as the store has it, whichever engine runs it, or `None` for
    /// a task that does not run. `statistics` are those of its kind.
    #[must_use]
    pub fn of_record(task: &TaskRecord, statistics: Option<&KindStatistics>, now: Timestamp) -> Option<Self> {
        let started = task.started_at.filter(|_| task.state == TaskState::Running)?;
        let progress = task.progress.as_ref().filter(|progress| progress.at >= started);
        let bytes = progress.and_then(|progress| progress.bytes);
        let reported = ReportedProgress {
            fraction: progress.and_then(|progress| progress.fraction),
            bytes,
            bytes_per_second: bytes
                .zip(progress)
                .and_then(|(bytes, reported)| mean_rate(bytes.done, reported.at - started)),
        };
        Some(Self::of(reported, now - started, mean_run(statistics)))
    }

    /// Returns the forecast from the reports of a handler and its run time, or else from the mean
    /// run time of its kind.
    pub(crate) fn of(reported: ReportedProgress, elapsed: Duration, mean: Option<Duration>) -> Self {
        let fraction = reported.fraction.or_else(|| reported.bytes.and_then(ByteProgress::fraction));
        let remaining = by_rate(reported).or_else(|| by_fraction(fraction?, elapsed));
        let reported = Self { fraction, bytes_per_second: reported.bytes_per_second, remaining, is_estimated: false };
        match mean {
            Some(mean) if fraction.is_none() => {
                Self { bytes_per_second: reported.bytes_per_second, ..estimated(elapsed, mean) }
            }
            _ => reported,
        }
    }
}

/// Returns the mean run time of the completed tasks of a kind.
pub(crate) fn mean_run(statistics: Option<&KindStatistics>) -> Option<Duration> {
    let statistics = statistics.filter(|statistics| statistics.ended.completed > 0)?;
    let tasks = u32::try_from(statistics.ended.completed).unwrap_or(u32::MAX);
    Some(statistics.run / tasks).filter(|mean| !mean.is_zero())
}

fn estimated(elapsed: Duration, mean: Duration) -> Forecast {
    let fraction = elapsed.div_duration_f32(mean).min(ESTIMATE_HIGHEST);
    // A task that takes longer than usual may take any time.
    let remaining = mean.checked_sub(elapsed).filter(|remaining| !remaining.is_zero());
    Forecast { fraction: Some(fraction), bytes_per_second: None, remaining, is_estimated: true }
}

#[expect(clippy::cast_precision_loss, reason = "a forecast is for people")]
fn by_rate(reported: ReportedProgress) -> Option<Duration> {
    let bytes = reported.bytes?;
    let left = bytes.total?.saturating_sub(bytes.done);
    let rate = reported.bytes_per_second.filter(|rate| *rate > 0.0)?;
    Some(bounded(left as f64 / rate))
}

fn by_fraction(fraction: f32, elapsed: Duration) -> Option<Duration> {
    let fraction = f64::from(fraction);
    (fraction > 0.0).then(|| bounded(elapsed.as_secs_f64() * (1.0 - fraction) / fraction))
}

fn bounded(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).map_or(LONGEST, |duration| duration.min(LONGEST))
}

#[expect(clippy::cast_precision_loss, reason = "a forecast is for people")]
fn mean_rate(done: u64, elapsed: Duration) -> Option<f64> {
    (!elapsed.is_zero()).then(|| done as f64 / elapsed.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn bytes(done: u64, total: u64) -> ReportedProgress {
        let bytes = ByteProgress { done, total: Some(total) };
        ReportedProgress { bytes: Some(bytes), bytes_per_second: Some(10.0), ..ReportedProgress::default() }
    }

    #[test]
    fn bytes_and_their_rate_give_the_remaining_time() {
        let forecast = Forecast::of(bytes(50, 200), SECOND, None);
        assert_eq!((forecast.fraction, forecast.remaining), (Some(0.25), Some(SECOND * 15)));
    }

    #[test]
    fn a_fraction_and_its_time_give_the_remaining_time() {
        let reported = ReportedProgress { fraction: Some(0.25), ..ReportedProgress::default() };
        assert_eq!(Forecast::of(reported, SECOND * 10, None).remaining, Some(SECOND * 30));
    }

    #[test]
    fn a_fraction_goes_before_that_of_the_bytes() {
        let reported = ReportedProgress { fraction: Some(0.5), ..bytes(1, 4) };
        assert_eq!(Forecast::of(reported, SECOND, None).fraction, Some(0.5));
    }

    #[test]
    fn what_says_nothing_is_estimated_by_what_its_kind_took() {
        let forecast = Forecast::of(ReportedProgress::default(), SECOND * 3, Some(SECOND * 4));
        let expected =
            Forecast { fraction: Some(0.75), remaining: Some(SECOND), is_estimated: true, ..Forecast::default() };
        assert_eq!(forecast, expected);
    }

    #[test]
    fn an_estimate_is_never_done_and_promises_no_end_that_has_passed() {
        let forecast = Forecast::of(ReportedProgress::default(), SECOND * 9, Some(SECOND * 4));
        assert_eq!((forecast.fraction, forecast.remaining), (Some(0.99), None));
    }

    #[test]
    fn what_is_said_is_not_mixed_with_an_estimate() {
        assert!(!Forecast::of(bytes(1, 4), SECOND, Some(SECOND)).is_estimated);
    }

    #[test]
    fn nothing_is_estimated_from_nothing() {
        assert_eq!(Forecast::of(ReportedProgress::default(), SECOND, None), Forecast::default());
        assert_eq!(
            Forecast::of(ReportedProgress { fraction: Some(0.0), ..ReportedProgress::default() }, SECOND, None)
                .remaining,
            None
        );
    }

    #[test]
    fn a_rate_of_zero_gives_no_remaining_time() {
        let reported = ReportedProgress { bytes_per_second: Some(f64::MIN_POSITIVE), ..bytes(1, u64::MAX) };
        assert_eq!(Forecast::of(reported, SECOND, None).remaining, Some(LONGEST));
    }
}
