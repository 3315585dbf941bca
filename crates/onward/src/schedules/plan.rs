//! The action for a schedule at a moment.

use std::time::Duration;

use onward_store::{AfterFiring, CatchUp, NextFiring, ScheduleRecord, Timestamp};

use super::calendar::Calendar;
use crate::bounds;

/// The action for a schedule that is due.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Plan {
    /// The moments for which it fires, oldest first.
    pub(crate) firings: Vec<Timestamp>,
    /// The number of firings that were missed and are skipped.
    pub(crate) missed: u64,
    /// The state after the firings.
    pub(crate) then: AfterFiring,
}

/// Returns the action at `now`, or `None` if nothing is due.
///
/// A firing within a minute of its due time is on time. Of several due firings only the newest can
/// be on time; all earlier ones were missed, and the catch-up policy decides about them.
pub(crate) fn plan(calendar: &Calendar<'_>, record: &ScheduleRecord, now: Timestamp) -> Option<Plan> {
    let next = record.next?;
    let then = after(calendar, now);
    if is_ahead(record, now) && then != AfterFiring::Next(next) {
        return Some(Plan { firings: Vec::new(), missed: 0, then });
    }
    if next.due > now {
        return None;
    }
    // The next firing was computed by an earlier calendar. The zone's rules may have changed since,
    // but it stays due.
    let last = last_due(calendar, now).filter(|last| last.at >= next.at).unwrap_or(next);
    let on_time = now - last.due <= bounds::FIRING_DELAY;
    let firings = match record.schedule.catch_up {
        CatchUp::None if !on_time => Vec::new(),
        CatchUp::None | CatchUp::Last => vec![last.at],
        CatchUp::All(limit) => latest(calendar, next.at, last.at, limit as usize),
    };
    let due = count(calendar, next.at, last.at);
    Some(Plan { missed: due.saturating_sub(firings.len() as u64), firings, then: after(calendar, last.at) })
}

/// Returns true if the clock was set back so far that the next firing belongs to a time in which
/// the clock was wrong. After a smaller step back the schedule waits until the clock has caught up,
/// so that nothing fires twice.
fn is_ahead(record: &ScheduleRecord, now: Timestamp) -> bool {
    record.last.is_some_and(|last| last.fired_at - now > bounds::CLOCK_SET_BACK)
        && record.next.is_some_and(|next| next.at > now)
}

/// Returns the newest firing that is due. If the jitter of the newest moment is not over, that of
/// the one before is.
fn last_due(calendar: &Calendar<'_>, now: Timestamp) -> Option<NextFiring> {
    let newest = calendar.firing(calendar.last(now)?);
    if newest.due <= now {
        return Some(newest);
    }
    calendar.last(newest.at.minus(Duration::from_micros(1))).map(|at| calendar.firing(at))
}

fn after(calendar: &Calendar<'_>, at: Timestamp) -> AfterFiring {
    calendar.next_firing(at).map_or(AfterFiring::Over, AfterFiring::Next)
}

/// Returns the last `limit` moments from `first` to `last`.
fn latest(calendar: &Calendar<'_>, first: Timestamp, last: Timestamp, limit: usize) -> Vec<Timestamp> {
    let before = |at: &Timestamp| calendar.last(at.minus(Duration::from_micros(1))).filter(|at| *at >= first);
    let mut moments: Vec<Timestamp> = std::iter::successors(Some(last), before).take(limit).collect();
    moments.reverse();
    moments
}

/// Returns the number of moments from `first` to `last`, both included. It counts at most
/// [`bounds::MISSED_FIRINGS`] after the first.
fn count(calendar: &Calendar<'_>, first: Timestamp, last: Timestamp) -> u64 {
    1 + calendar.between(first, last, bounds::MISSED_FIRINGS).len() as u64
}

#[cfg(test)]
mod tests {
    use onward_store::{LastFiring, Name, NewSchedule, NewTask, Recurrence, TaskId};
    use proptest::prelude::*;
    use proptest::sample::select;

    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);
    const HOUR: Duration = Duration::from_secs(3600);
    const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);

    fn hour(number: i64) -> Timestamp {
        Timestamp::from_microseconds(1_767_225_600_000_000 + number * 3_600_000_000)
    }

    /// Returns an hourly schedule whose next firing is that of hour 1.
    fn hourly(catch_up: CatchUp) -> ScheduleRecord {
        let schedule = NewSchedule::new(Name::new("s").unwrap(), Recurrence::Every(HOUR), NewTask::new("k").unwrap());
        record(NewSchedule { catch_up, ..schedule }, hour(0))
    }

    /// Returns a schedule that was set at a moment.
    fn record(schedule: NewSchedule, at: Timestamp) -> ScheduleRecord {
        let next = Calendar::of(&schedule).unwrap().next_firing(at);
        ScheduleRecord {
            schedule,
            revision: 1,
            paused: false,
            next,
            pending_at: None,
            last: None,
            error: None,
            fired: 0,
            skipped: 0,
            missed: 0,
            failed: 0,
            created_at: at,
        }
    }

    fn planned(record: &ScheduleRecord, now: Timestamp) -> Option<Plan> {
        plan(&Calendar::of(&record.schedule).unwrap(), record, now)
    }

    fn next(number: i64) -> AfterFiring {
        AfterFiring::Next(NextFiring { at: hour(number), due: hour(number) })
    }

    /// Applies the plan, and returns the moments that fired.
    fn fire(record: &mut ScheduleRecord, now: Timestamp) -> Vec<Timestamp> {
        let Some(plan) = planned(record, now) else { return Vec::new() };
        match plan.then {
            AfterFiring::Next(next) => record.next = Some(next),
            AfterFiring::Over => record.next = None,
            AfterFiring::AsBefore => {}
        }
        for at in &plan.firings {
            record.last = Some(LastFiring { at: *at, fired_at: now, task: TaskId(1) });
        }
        plan.firings
    }

    #[test]
    fn nothing_is_done_before_it_is_due() {
        assert_eq!(planned(&hourly(CatchUp::Last), hour(1).minus(Duration::from_micros(1))), None);
    }

    #[test]
    fn a_firing_on_time_needs_no_catching_up() {
        let expected = Plan { firings: vec![hour(1)], missed: 0, then: next(2) };
        for catch_up in [CatchUp::None, CatchUp::Last, CatchUp::All(3)] {
            assert_eq!(planned(&hourly(catch_up), hour(1).plus(MINUTE)), Some(expected.clone()), "{catch_up}");
        }
    }

    /// Shows: T5
    #[test]
    fn missed_firings_are_left_out_or_caught_up_with_as_the_policy_says() {
        let late = hour(5).plus(10 * MINUTE);
        let firings = |catch_up| planned(&hourly(catch_up), late).map(|plan| (plan.firings, plan.missed));
        assert_eq!(firings(CatchUp::None), Some((vec![], 5)));
        assert_eq!(firings(CatchUp::Last), Some((vec![hour(5)], 4)));
        assert_eq!(firings(CatchUp::All(3)), Some((vec![hour(3), hour(4), hour(5)], 2)));
        assert_eq!(firings(CatchUp::All(100)).map(|(firings, missed)| (firings.len(), missed)), Some((5, 0)));
        assert_eq!(planned(&hourly(CatchUp::Last), late).map(|plan| plan.then), Some(next(6)));
    }

    #[test]
    fn a_schedule_is_over_behind_its_end() {
        let mut record = hourly(CatchUp::Last);
        record.schedule.ends_at = Some(hour(3));
        let expected = Plan { firings: vec![hour(2)], missed: 1, then: AfterFiring::Over };
        assert_eq!(planned(&record, hour(9)), Some(expected));
    }

    /// Shows: T5
    #[test]
    fn a_clock_set_back_by_an_hour_fires_nothing_twice_and_loses_nothing() {
        let mut record = hourly(CatchUp::Last);
        assert_eq!(fire(&mut record, hour(1)), [hour(1)]);
        assert_eq!(fire(&mut record, hour(0)), []);
        assert_eq!(fire(&mut record, hour(1)), []);
        assert_eq!(fire(&mut record, hour(2)), [hour(2)]);
    }

    /// Shows: T5
    #[test]
    fn a_clock_that_was_a_year_ahead_does_not_silence_a_schedule_for_a_year() {
        let mut record = hourly(CatchUp::Last);
        fire(&mut record, hour(1).plus(YEAR));
        assert_eq!(fire(&mut record, hour(2).plus(MINUTE)), []);
        assert_eq!(fire(&mut record, hour(3)), [hour(3)]);
    }

    #[test]
    fn a_year_of_seconds_is_planned_at_once() {
        let mut schedule = hourly(CatchUp::All(1000)).schedule;
        schedule.recurrence = Recurrence::Cron { expression: "* * * * * *".into(), zone: "Europe/Berlin".into() };
        let planned = planned(&record(schedule, hour(0)), hour(0).plus(YEAR)).unwrap();
        assert_eq!((planned.firings.len(), planned.firings.last()), (1000, Some(&hour(0).plus(YEAR))));
    }

    fn schedules() -> impl Strategy<Value = NewSchedule> {
        let expressions = ["*/7 * * * *", "30 2 * * *", "0 0,12 * * *", "15 1-3 * * *"];
        let cron = (select(expressions.to_vec()), select(vec!["UTC", "Europe/Berlin", "America/New_York"]))
            .prop_map(|(expression, zone)| Recurrence::Cron { expression: expression.into(), zone: zone.into() });
        let every = (60..10_000u64).prop_map(|seconds| Recurrence::Every(Duration::from_secs(seconds)));
        let jitter = select(vec![Duration::ZERO, Duration::from_secs(30), HOUR]);
        (prop_oneof![cron, every], jitter).prop_map(|(recurrence, jitter)| {
            let schedule = NewSchedule::new(Name::new("s").unwrap(), recurrence, NewTask::new("k").unwrap());
            NewSchedule { jitter, catch_up: CatchUp::All(1000), ..schedule }
        })
    }

    proptest! {
        /// Shows: T5
        #[test]
        fn every_moment_fires_once_and_in_order_whenever_a_process_looks(
            schedule in schedules(),
            start in select(vec!["2026-03-28T20:00:00Z", "2026-10-24T20:00:00Z", "2026-07-01T00:00:00Z"]),
            looks in prop::collection::vec((1..7200u64, 0..4000u64), 1..40),
        ) {
            let start: Timestamp = start.parse().unwrap();
            let mut record = record(schedule.clone(), start);
            let (mut now, mut latest, mut fired) = (start, start, Vec::new());
            for (forward, back) in looks {
                // The clock moves forward, and is sometimes set back by up to an hour.
                now = now.plus(Duration::from_secs(forward));
                if back < 3600 {
                    now = now.minus(Duration::from_secs(back));
                }
                latest = latest.max(now);
                fired.extend(fire(&mut record, now));
            }
            let all = Calendar::of(&schedule).unwrap().between(start, latest, usize::MAX);
            prop_assert!(all.starts_with(&fired), "fired {fired:?} of {all:?}");
            prop_assert!(all.len() <= fired.len() + usize::from(!schedule.jitter.is_zero()), "fired {fired:?} of {all:?}");
        }
    }
}
