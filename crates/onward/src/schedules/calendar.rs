//! The moments of a recurrence.

use std::str::FromStr;
use std::time::Duration;

use croner::Cron;
use croner::errors::CronError;
use jiff::Zoned;
use jiff::tz::TimeZone;
use onward_store::{NewSchedule, NextFiring, Recurrence, Timestamp};

use super::jitter::jitter;
use crate::error::{Error, Result};

const MICROSECOND: Duration = Duration::from_micros(1);

/// The time around a moment in which a change of the zone's offset can make the cron search fail.
const TRANSITION: Duration = Duration::from_secs(48 * 3600);

/// A parsed recurrence of a schedule.
///
/// A cron expression follows the wall clock of its zone. A moment that the clock skips fires when
/// the clock continues. Of a moment that occurs twice the first fires, or both if the expression
/// names no fixed time (such as `*/15 * * * *`).
#[derive(Debug)]
pub(crate) struct Calendar<'a> {
    schedule: &'a NewSchedule,
    pattern: Pattern,
}

#[derive(Debug)]
enum Pattern {
    Every { interval: i64, anchor: i64 },
    Cron { cron: Box<Cron>, zone: TimeZone },
}

impl<'a> Calendar<'a> {
    /// Parses a recurrence.
    ///
    /// # Errors
    /// [`is_invalid`](Error::is_invalid) for an invalid cron expression, an unknown time zone or an
    /// interval of zero.
    pub(crate) fn of(schedule: &'a NewSchedule) -> Result<Self> {
        let pattern = match &schedule.recurrence {
            Recurrence::Every(interval) => every(*interval, schedule)?,
            Recurrence::Cron { expression, zone } => {
                Pattern::Cron { cron: Box::new(cron(expression, schedule)?), zone: time_zone(zone, schedule)? }
            }
        };
        Ok(Self { schedule, pattern })
    }

    /// Returns the first moment after `at`, or `None` if there is none.
    pub(crate) fn next(&self, at: Timestamp) -> Option<Timestamp> {
        let from = self.schedule.starts_at.map_or(at, |start| at.max(start.minus(MICROSECOND)));
        let next = match &self.pattern {
            Pattern::Every { interval, anchor } => {
                let turns = (from.as_microseconds() - anchor).div_euclid(*interval) + 1;
                Some(moment(anchor.saturating_add(turns.saturating_mul(*interval))))
            }
            Pattern::Cron { cron, zone } => next_of(cron, zone, from),
        };
        next.filter(|next| *next > from && self.schedule.ends_at.is_none_or(|end| *next < end))
    }

    /// Returns the last moment up to and including `at`, or `None` if there is none.
    pub(crate) fn last(&self, at: Timestamp) -> Option<Timestamp> {
        let until = self.schedule.ends_at.map_or(at, |end| at.min(end.minus(MICROSECOND)));
        let last = match &self.pattern {
            Pattern::Every { interval, anchor } => {
                let turns = (until.as_microseconds() - anchor).div_euclid(*interval);
                Some(moment(anchor.saturating_add(turns.saturating_mul(*interval))))
            }
            Pattern::Cron { cron, zone } => last_of(cron, zone, until),
        };
        last.filter(|last| *last <= until && self.schedule.starts_at.is_none_or(|start| *last >= start))
    }

    /// Returns the first firing after `at`.
    pub(crate) fn next_firing(&self, at: Timestamp) -> Option<NextFiring> {
        self.next(at).map(|at| self.firing(at))
    }

    /// Returns the firing of a moment, delayed by its jitter, which never reaches the next moment.
    pub(crate) fn firing(&self, at: Timestamp) -> NextFiring {
        if self.schedule.jitter.is_zero() {
            return NextFiring { at, due: at };
        }
        let room = self.next(at).map_or(Duration::MAX, |next| next - at);
        NextFiring { at, due: at.plus(jitter(&self.schedule.name, at, self.schedule.jitter.min(room))) }
    }

    /// Returns the moments after `after` and up to and including `until`, at most `limit`, oldest
    /// first.
    pub(crate) fn between(&self, after: Timestamp, until: Timestamp, limit: usize) -> Vec<Timestamp> {
        let moments = std::iter::successors(self.next(after), |at| self.next(*at));
        moments.take_while(|at| *at <= until).take(limit).collect()
    }
}

fn every(interval: Duration, schedule: &NewSchedule) -> Result<Pattern> {
    let anchor = schedule.starts_at.map_or(0, Timestamp::as_microseconds);
    match i64::try_from(interval.as_micros()) {
        Ok(interval) if interval > 0 => Ok(Pattern::Every { interval, anchor }),
        _ => Err(wrong(
            schedule,
            format!("was to fire every {interval:?}; give it an interval from 100 ms to 3660 days"),
        )),
    }
}

fn cron(expression: &str, schedule: &NewSchedule) -> Result<Cron> {
    let help = "write minute, hour, day of month, month and day of week, such as `0 3 * * *`, or six fields with seconds first";
    Cron::from_str(expression).map_err(|error| {
        let what = match error {
            CronError::EmptyPattern => "nothing is there".to_owned(),
            CronError::InvalidPattern(what) | CronError::IllegalCharacters(what) | CronError::ComponentError(what) => {
                what
            }
            other => other.to_string(),
        };
        wrong(schedule, format!("has the cron expression `{expression}`, which cannot be read ({what}); {help}"))
    })
}

fn time_zone(zone: &str, schedule: &NewSchedule) -> Result<TimeZone> {
    TimeZone::get(zone).map_err(|_| {
        let help = "use a name of the IANA database, such as `Europe/Berlin` or `UTC`";
        wrong(schedule, format!("is in the time zone `{zone}`, which is not known here; {help}"))
    })
}

#[cold]
fn wrong(schedule: &NewSchedule, what: String) -> Error {
    Error::invalid(format!("the schedule `{}` {what}", schedule.name))
}

fn moment(microseconds: i64) -> Timestamp {
    Timestamp::from_microseconds(microseconds)
}

/// Returns the whole second at or before a moment, in a zone.
fn zoned(at: Timestamp, zone: &TimeZone) -> Option<Zoned> {
    let second = jiff::Timestamp::from_second(at.as_microseconds().div_euclid(1_000_000)).ok()?;
    Some(second.to_zoned(zone.clone()))
}

fn timestamp(zoned: &Zoned) -> Timestamp {
    moment(zoned.timestamp().as_microsecond())
}

fn next_of(cron: &Cron, zone: &TimeZone, after: Timestamp) -> Option<Timestamp> {
    let from = zoned(after, zone)?;
    let found = cron.find_next_occurrence(&from, false).ok().or_else(|| {
        // The search fails at days that a zone skipped, such as one in Samoa in 2011, so it
        // continues behind them.
        let transition = zone.following(from.timestamp()).next()?.timestamp();
        let near = transition.duration_since(from.timestamp()).unsigned_abs() <= TRANSITION;
        let behind = near.then(|| transition.to_zoned(zone.clone()))?;
        cron.find_next_occurrence(&behind, true).ok()
    });
    found.as_ref().map(timestamp)
}

fn last_of(cron: &Cron, zone: &TimeZone, until: Timestamp) -> Option<Timestamp> {
    let from = zoned(until, zone)?;
    let found = cron.find_previous_occurrence(&from, true).ok().or_else(|| {
        let transition = zone.preceding(from.timestamp()).next()?.timestamp();
        let near = from.timestamp().duration_since(transition).unsigned_abs() <= TRANSITION;
        let before = near.then(|| transition.to_zoned(zone.clone()))?;
        cron.find_previous_occurrence(&before, false).ok()
    });
    found.as_ref().map(timestamp)
}

#[cfg(test)]
mod tests {
    use onward_store::{Name, NewTask};
    use proptest::prelude::*;
    use proptest::sample::select;

    use super::*;

    fn schedule(recurrence: Recurrence) -> NewSchedule {
        NewSchedule::new(Name::new("s").unwrap(), recurrence, NewTask::new("k").unwrap())
    }

    fn cron_in(expression: &str, zone: &str) -> NewSchedule {
        schedule(Recurrence::Cron { expression: expression.into(), zone: zone.into() })
    }

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    /// Returns the next moments, as UTC.
    fn moments(schedule: &NewSchedule, after: &str, count: usize) -> Vec<String> {
        let calendar = Calendar::of(schedule).unwrap();
        calendar.between(at(after), Timestamp::MAX, count).iter().map(Timestamp::to_string).collect()
    }

    /// Shows: T5
    #[test]
    fn a_daily_moment_follows_the_wall_clock_over_a_change_to_summer_time() {
        let found = moments(&cron_in("0 3 * * *", "Europe/Berlin"), "2026-03-27T12:00:00Z", 3);
        assert_eq!(found, ["2026-03-28T02:00:00Z", "2026-03-29T01:00:00Z", "2026-03-30T01:00:00Z"]);
    }

    /// Shows: T5
    #[test]
    fn a_moment_that_the_clock_skips_is_taken_when_it_goes_on() {
        let found = moments(&cron_in("30 2 * * *", "Europe/Berlin"), "2026-03-28T12:00:00Z", 2);
        assert_eq!(found, ["2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"]);
    }

    /// Shows: T5
    #[test]
    fn a_fixed_moment_that_comes_twice_is_taken_once() {
        let found = moments(&cron_in("30 2 * * *", "Europe/Berlin"), "2026-10-24T12:00:00Z", 2);
        assert_eq!(found, ["2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"]);
    }

    /// Shows: T5
    #[test]
    fn every_quarter_of_an_hour_goes_on_through_the_hour_that_comes_twice() {
        let found = moments(&cron_in("*/15 * * * *", "Europe/Berlin"), "2026-10-25T00:00:00Z", 8);
        let minutes: Vec<i64> =
            found.iter().map(|text| (at(text) - at("2026-10-25T00:00:00Z")).as_secs() as i64 / 60).collect();
        assert_eq!(minutes, [15, 30, 45, 60, 75, 90, 105, 120]);
    }

    #[test]
    fn a_day_that_a_zone_leaves_out_ends_nothing() {
        let found = moments(&cron_in("0 0 * * *", "Pacific/Apia"), "2011-12-29T11:00:00Z", 2);
        assert_eq!(found, ["2011-12-30T10:00:00Z", "2011-12-31T10:00:00Z"]);
    }

    #[test]
    fn the_last_day_of_a_month_and_leap_days_come_when_they_are_there() {
        let found = moments(&cron_in("0 0 L * *", "UTC"), "2027-12-31T00:00:00Z", 2);
        assert_eq!(found, ["2028-01-31T00:00:00Z", "2028-02-29T00:00:00Z"]);
        let found = moments(&cron_in("0 0 31 * *", "UTC"), "2026-01-31T00:00:00Z", 2);
        assert_eq!(found, ["2026-03-31T00:00:00Z", "2026-05-31T00:00:00Z"]);
        let found = moments(&cron_in("0 0 29 2 *", "UTC"), "2024-02-29T00:00:00Z", 1);
        assert_eq!(found, ["2028-02-29T00:00:00Z"]);
    }

    /// Shows: T5
    #[test]
    fn an_interval_does_not_depend_on_who_asks_when() {
        let quarter = schedule(Recurrence::Every(Duration::from_secs(900)));
        assert_eq!(moments(&quarter, "2026-01-01T00:07:00Z", 1), ["2026-01-01T00:15:00Z"]);
        assert_eq!(moments(&quarter, "2026-01-01T00:15:00Z", 1), ["2026-01-01T00:30:00Z"]);
        let from_start = NewSchedule { starts_at: Some(at("2026-01-01T00:07:00Z")), ..quarter };
        assert_eq!(moments(&from_start, "2020-01-01T00:00:00Z", 2), ["2026-01-01T00:07:00Z", "2026-01-01T00:22:00Z"]);
    }

    /// Shows: T5
    #[test]
    fn nothing_fires_before_the_start_or_from_the_end_on() {
        let bounds = (Some(at("2026-01-02T00:00:00Z")), Some(at("2026-01-04T00:00:00Z")));
        let daily = NewSchedule { starts_at: bounds.0, ends_at: bounds.1, ..cron_in("0 0 * * *", "UTC") };
        assert_eq!(moments(&daily, "2025-01-01T00:00:00Z", 9), ["2026-01-02T00:00:00Z", "2026-01-03T00:00:00Z"]);
        let calendar = Calendar::of(&daily).unwrap();
        assert_eq!(calendar.last(at("2030-01-01T00:00:00Z")), Some(at("2026-01-03T00:00:00Z")));
        assert_eq!(calendar.last(at("2026-01-01T12:00:00Z")), None);
    }

    #[test]
    fn what_cannot_be_read_is_named_with_the_remedy() {
        let text = |schedule: NewSchedule| Calendar::of(&schedule).unwrap_err().to_string();
        assert!(text(cron_in("0 25 * * *", "UTC")).contains("`0 25 * * *`"));
        assert!(text(cron_in("", "UTC")).contains("nothing is there"));
        assert!(text(cron_in("0 3 * * *", "Europe/Berln")).contains("`Europe/Berln`"));
        assert!(text(schedule(Recurrence::Every(Duration::ZERO))).contains("100 ms"));
    }

    fn schedules() -> impl Strategy<Value = NewSchedule> {
        let expressions = [
            "* * * * *",
            "*/7 * * * *",
            "30 2 * * *",
            "0 0 * * *",
            "15 1-3 * * *",
            "0 0 1 * *",
            "0 12 L * *",
            "59 23 31 12 *",
            "0 3 * * 0",
            "*/20 30 1,2 * * *",
        ];
        let zones =
            ["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu", "America/Sao_Paulo"];
        let cron = (select(expressions.to_vec()), select(zones.to_vec())).prop_map(|(text, zone)| cron_in(text, zone));
        let every = (1..100_000_000u64).prop_map(|millis| schedule(Recurrence::Every(Duration::from_millis(millis))));
        prop_oneof![4 => cron, 1 => every]
    }

    /// Moments of 2010 to 2030, many of them near a change of the clocks.
    fn anytime() -> impl Strategy<Value = Timestamp> {
        let changes = [
            "2026-03-29T01:00:00Z",
            "2026-10-25T01:00:00Z",
            "2026-03-08T07:00:00Z",
            "2026-11-01T06:00:00Z",
            "2026-04-04T15:00:00Z",
        ];
        let near = (select(changes.to_vec()), -10_800_000_000..10_800_000_000i64)
            .prop_map(|(change, off)| moment(at(change).as_microseconds() + off));
        prop_oneof![near, (1_262_304_000_000_000..1_893_456_000_000_000i64).prop_map(moment)]
    }

    proptest! {
        #[test]
        fn the_next_moment_is_later_and_the_last_one_before_it_is_not(schedule in schedules(), at in anytime()) {
            let calendar = Calendar::of(&schedule).unwrap();
            let next = calendar.next(at).unwrap();
            prop_assert!(next > at);
            prop_assert!(calendar.last(at).is_none_or(|last| last <= at));
        }

        #[test]
        fn no_moment_lies_between_two_that_follow_each_other(schedule in schedules(), at in anytime()) {
            let calendar = Calendar::of(&schedule).unwrap();
            let next = calendar.next(at).unwrap();
            prop_assert_eq!(calendar.last(next), Some(next));
            let last = calendar.last(next.minus(MICROSECOND)).unwrap();
            prop_assert!(last <= at, "{last} lies between {at} and {next}");
            prop_assert_eq!(calendar.next(last), Some(next));
        }

        #[test]
        fn jitter_puts_off_but_never_past_the_next_moment(schedule in schedules(), at in anytime(), seconds in 0..100_000u64) {
            let schedule = NewSchedule { jitter: Duration::from_secs(seconds), ..schedule };
            let calendar = Calendar::of(&schedule).unwrap();
            let firing = calendar.next_firing(at).unwrap();
            prop_assert!(firing.due >= firing.at && firing.due - firing.at <= schedule.jitter);
            prop_assert!(calendar.next(firing.at).is_none_or(|next| firing.due < next));
        }
    }
}
