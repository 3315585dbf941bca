//! The bounds of schedules, and the effect of their firings.

use std::time::Duration;

use crate::api::name::Name;
use crate::api::outcome::{Refusal, Submitted};
use crate::api::schedule::{
    AfterFiring, FireSchedule, Firing, LastFiring, NewSchedule, Overlap, Recurrence, ScheduleError, ScheduleRecord,
    ScheduleSet, SetSchedule,
};
use crate::api::task::{NewTask, OnDuplicate, TaskId, TaskState, UniqueKey, When};
use crate::api::timestamp::Timestamp;
use crate::bounds;
use crate::rules::attempt::cut;

/// Checks a schedule before it is set. The caller that sets the schedule checks the cron expression
/// and the time zone.
///
/// # Errors
/// [`Refusal::Invalid`] for a value out of its range, and for an invalid task.
pub fn check(schedule: &NewSchedule, payload_limit: usize) -> Result<(), Refusal> {
    let wrong = |what: String| Err(Refusal::Invalid(format!("the schedule `{}` {what}", schedule.name)));
    match &schedule.recurrence {
        Recurrence::Every(interval) if !(bounds::INTERVAL_MINIMUM..=bounds::INTERVAL_MAXIMUM).contains(interval) => {
            return wrong(format!(
                "was to fire every {interval:?}, and an interval may be {:?} to 3660 days",
                bounds::INTERVAL_MINIMUM
            ));
        }
        Recurrence::Cron { expression, .. } if expression.len() > bounds::CRON_BYTES => {
            return wrong(format!("has a cron expression of more than {} bytes", bounds::CRON_BYTES));
        }
        Recurrence::Cron { zone, .. } if zone.len() > bounds::ZONE_BYTES => {
            return wrong(format!("names a time zone with more than {} bytes", bounds::ZONE_BYTES));
        }
        Recurrence::Every(_) | Recurrence::Cron { .. } => {}
    }
    if schedule.jitter > bounds::JITTER {
        return wrong(format!("was to have a jitter of {:?}, and a day is the most", schedule.jitter));
    }
    if let crate::api::schedule::CatchUp::All(limit) = schedule.catch_up
        && !(1..=bounds::FIRINGS).contains(&(limit as usize))
    {
        return wrong(format!("was to catch up with {limit} firings, and that may be 1 to {}", bounds::FIRINGS));
    }
    if let (Some(start), Some(end)) = (schedule.starts_at, schedule.ends_at)
        && start >= end
    {
        return wrong(format!("would end at {end}, which is not after its start at {start}"));
    }
    if matches!(schedule.task.when, When::At(_)) || schedule.task.deadline.is_some() {
        let remedy = "each of its tasks is due when it fires; give them a delay, a timeout or a time to live instead";
        return wrong(format!("has a task with a moment or a deadline of its own; {remedy}"));
    }
    // The task of a firing is checked, because its key may come from the name of the schedule.
    task(schedule, Timestamp::MIN).check(payload_limit).map_err(|error| Refusal::Invalid(error.to_string()))
}

/// Returns the refusal of one more schedule than [`bounds::SCHEDULES`].
#[must_use]
pub fn too_many(name: &Name) -> Refusal {
    let limit = bounds::SCHEDULES;
    Refusal::Invalid(format!(
        "the store holds {limit} schedules and takes no more; delete some before you add `{name}`"
    ))
}

/// Checks a firing before it is applied.
///
/// # Errors
/// [`Refusal::Invalid`] for more than [`bounds::FIRINGS`] times.
pub fn check_fire(fire: &FireSchedule) -> Result<(), Refusal> {
    if fire.firings.len() <= bounds::FIRINGS {
        return Ok(());
    }
    let (count, limit) = (fire.firings.len(), bounds::FIRINGS);
    Err(Refusal::Invalid(format!(
        "the schedule `{}` was to fire for {count} moments at once and the limit is {limit}; split them",
        fire.name
    )))
}

/// Returns the schedule after it was set, except for its revision, and whether it changed.
///
/// # Errors
/// [`Refusal::Invalid`] if the existing schedule has another provider than the new one.
pub fn set(
    existing: Option<&ScheduleRecord>,
    set: &SetSchedule,
    now: Timestamp,
) -> Result<(ScheduleSet, ScheduleRecord), Refusal> {
    let Some(existing) = existing else { return Ok((ScheduleSet::Created, created(set, now))) };
    let schedule = &set.schedule;
    if existing.schedule.provider != schedule.provider {
        return Err(Refusal::Invalid(belongs_elsewhere(&existing.schedule)));
    }
    if existing.schedule == *schedule {
        return Ok((ScheduleSet::Unchanged, existing.clone()));
    }
    let next = if existing.schedule.fires_as(schedule) { existing.next } else { set.next };
    Ok((ScheduleSet::Changed, ScheduleRecord { schedule: schedule.clone(), next, ..existing.clone() }))
}

/// Returns the record of a new schedule, which has not fired.
fn created(set: &SetSchedule, now: Timestamp) -> ScheduleRecord {
    ScheduleRecord {
        schedule: set.schedule.clone(),
        revision: 0,
        paused: false,
        next: set.next,
        pending_at: None,
        last: None,
        error: None,
        fired: 0,
        skipped: 0,
        missed: 0,
        failed: 0,
        created_at: now,
    }
}

/// Returns the text of the refusal to change a schedule that another owner set.
fn belongs_elsewhere(schedule: &NewSchedule) -> String {
    let NewSchedule { name, provider, .. } = schedule;
    match provider {
        Some(provider) => format!("the schedule `{name}` comes from the provider `{provider}`; change it there"),
        None => format!(
            "the schedule `{name}` was set by hand and comes from no provider; delete it or choose another name"
        ),
    }
}

/// Returns the task of a firing.
#[must_use]
pub fn task(schedule: &NewSchedule, at: Timestamp) -> NewTask {
    let mut task = schedule.task.clone();
    task.scheduled_at = Some(at);
    task.unique.get_or_insert_with(|| UniqueKey {
        key: key(&schedule.name, at),
        on_duplicate: OnDuplicate::Skip,
        keep_for: Duration::ZERO,
    });
    task
}

/// Returns the key of a firing's task that has none of its own.
#[must_use]
pub fn key(name: &Name, at: Timestamp) -> String {
    format!("schedule:{name}:{at}")
}

/// The state of the task of the previous firing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Previous {
    /// The task does not exist, or has ended.
    Ended,
    /// The task has not started.
    Waiting(TaskId),
    /// The task runs.
    Running(TaskId),
}

impl Previous {
    /// Returns the state of a task; `None` stands for a task that no longer exists.
    #[must_use]
    pub fn of(task: TaskId, state: Option<TaskState>) -> Self {
        match state {
            Some(TaskState::Scheduled | TaskState::Waiting) => Self::Waiting(task),
            Some(TaskState::Running) => Self::Running(task),
            _ => Self::Ended,
        }
    }
}

/// The effect of a firing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// Submit its task.
    Submit,
    /// Skip it because of a task.
    Skip(TaskId),
    /// Hold it until a task has ended.
    Defer(TaskId),
    /// Cancel a task that has not started, and submit.
    Replace(TaskId),
    /// Ask a task to stop, and hold the firing until it has ended.
    Cancel(TaskId),
}

/// Decides the effect of a firing. `is_one_pending` states whether another firing is already held.
#[must_use]
pub fn decide(overlap: Overlap, previous: Previous, is_one_pending: bool) -> Decision {
    match (overlap, previous) {
        (_, Previous::Ended) | (Overlap::Allow, _) => Decision::Submit,
        (Overlap::Skip, Previous::Waiting(task) | Previous::Running(task)) => Decision::Skip(task),
        (Overlap::QueueOne, Previous::Waiting(task) | Previous::Running(task)) if is_one_pending => {
            Decision::Skip(task)
        }
        (Overlap::QueueOne, Previous::Waiting(task) | Previous::Running(task)) => Decision::Defer(task),
        (Overlap::CancelRunning, Previous::Waiting(task)) => Decision::Replace(task),
        (Overlap::CancelRunning, Previous::Running(task)) => Decision::Cancel(task),
    }
}

/// Returns the result of a firing from the outcome of its submit.
#[must_use]
pub fn firing(submitted: Submitted) -> Firing {
    match submitted {
        Submitted::Inserted { id: task }
        | Submitted::Superseded { id: task, .. }
        | Submitted::Requeued { id: task } => Firing::Submitted { task },
        Submitted::Duplicate { id } | Submitted::Rejected { id } | Submitted::PriorityRaised { id } => {
            Firing::Failed { message: format!("its task was not submitted, because task {id} has its key") }
        }
    }
}

/// Begins the firing of a time. If a firing of this time was held until now, it is held no longer.
pub fn begin(record: &mut ScheduleRecord, at: Timestamp) {
    record.pending_at = record.pending_at.filter(|pending| *pending != at);
}

/// Records the result of the firing of a time.
pub fn note(record: &mut ScheduleRecord, overlap: Overlap, at: Timestamp, firing: &Firing, now: Timestamp) {
    match firing {
        Firing::Submitted { task } => {
            record.fired += 1;
            record.error = None;
            // An extra firing that may overlap must not become the previous firing, because it
            // would hold the schedule's own firings back.
            if overlap != Overlap::Allow || record.schedule.overlap == Overlap::Allow {
                record.last = Some(LastFiring { at, fired_at: now, task: *task });
            }
        }
        Firing::Skipped { .. } => record.skipped += 1,
        // A held firing that this one replaces is skipped.
        Firing::Pending { .. } => record.skipped += u64::from(record.pending_at.replace(at).is_some()),
        Firing::Failed { message } => {
            record.failed += 1;
            record.error = Some(error(message, now));
        }
    }
}

/// Records the missed times and the error of a firing, which belong to none of its times.
pub fn finish(record: &mut ScheduleRecord, fire: &FireSchedule, now: Timestamp) {
    record.missed += fire.missed;
    if let Some(message) = &fire.error {
        record.error = Some(error(message, now));
    }
    match fire.then {
        AfterFiring::AsBefore => {}
        AfterFiring::Next(next) => record.next = Some(next),
        AfterFiring::Over => record.next = None,
    }
}

/// Returns an error of a schedule, cut to the stored length.
fn error(message: &str, at: Timestamp) -> ScheduleError {
    ScheduleError { at, message: cut(message.to_owned(), bounds::ERROR_BYTES) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::schedule::{CatchUp, NextFiring};

    const RUNNING: Previous = Previous::Running(TaskId(7));
    const WAITING: Previous = Previous::Waiting(TaskId(7));

    fn schedule() -> NewSchedule {
        let every = Recurrence::Every(Duration::from_secs(60));
        NewSchedule::new(Name::new("nightly").unwrap(), every, NewTask::new("report").unwrap())
    }

    fn next(at: i64) -> Option<NextFiring> {
        let at = Timestamp::from_microseconds(at);
        Some(NextFiring { at, due: at })
    }

    fn record() -> ScheduleRecord {
        created(&SetSchedule { schedule: schedule(), next: next(5) }, Timestamp::MIN)
    }

    #[test]
    fn each_policy_has_its_way_with_a_running_task() {
        let decided = Overlap::ALL.map(|overlap| decide(overlap, RUNNING, false));
        let task = TaskId(7);
        assert_eq!(decided, [Decision::Skip(task), Decision::Submit, Decision::Defer(task), Decision::Cancel(task)]);
    }

    #[test]
    fn an_ended_task_holds_nothing_back() {
        assert!(Overlap::ALL.iter().all(|overlap| decide(*overlap, Previous::Ended, true) == Decision::Submit));
    }

    #[test]
    fn one_is_held_and_no_second() {
        assert_eq!(decide(Overlap::QueueOne, WAITING, true), Decision::Skip(TaskId(7)));
    }

    #[test]
    fn a_task_that_has_not_started_is_replaced_at_once() {
        assert_eq!(decide(Overlap::CancelRunning, WAITING, false), Decision::Replace(TaskId(7)));
    }

    #[test]
    fn what_is_out_of_range_is_refused_and_named() {
        let wrong = |change: fn(&mut NewSchedule), part: &str| {
            let mut schedule = schedule();
            change(&mut schedule);
            let text = check(&schedule, 1000).unwrap_err().to_string();
            assert!(text.contains(part), "{text}");
        };
        wrong(|it| it.recurrence = Recurrence::Every(Duration::ZERO), "every 0ns");
        wrong(|it| it.jitter = Duration::MAX, "jitter");
        wrong(|it| it.catch_up = CatchUp::All(0), "1 to 1000");
        wrong(|it| it.catch_up = CatchUp::All(1001), "1 to 1000");
        wrong(|it| (it.starts_at, it.ends_at) = (Some(Timestamp::MAX), Some(Timestamp::MAX)), "not after its start");
        wrong(|it| it.task.when = When::At(Timestamp::MAX), "moment or a deadline");
        wrong(|it| it.task.deadline = Some(Timestamp::MAX), "moment or a deadline");
        wrong(|it| it.task.payload = vec![0; 1001].into(), "1001 bytes");
    }

    #[test]
    fn a_change_of_the_task_leaves_what_is_due() {
        let mut changed = schedule();
        changed.task.payload = "other".into();
        let (what, after) =
            set(Some(&record()), &SetSchedule { schedule: changed, next: next(9) }, Timestamp::MAX).unwrap();
        assert_eq!((what, after.next), (ScheduleSet::Changed, next(5)));
    }

    #[test]
    fn a_change_of_the_moments_makes_another_one_due() {
        let changed = NewSchedule { jitter: Duration::from_secs(1), ..schedule() };
        let (_, after) =
            set(Some(&record()), &SetSchedule { schedule: changed, next: next(9) }, Timestamp::MAX).unwrap();
        assert_eq!(after.next, next(9));
    }

    #[test]
    fn a_schedule_of_a_provider_is_not_changed_by_others() {
        let provided = NewSchedule { provider: Some(Name::new("reports").unwrap()), ..schedule() };
        let record = ScheduleRecord { schedule: provided, ..record() };
        let refusal =
            set(Some(&record), &SetSchedule { schedule: schedule(), next: None }, Timestamp::MIN).unwrap_err();
        assert!(refusal.to_string().contains("`reports`"), "{refusal}");
    }

    #[test]
    fn a_key_of_the_tasks_own_is_kept() {
        let mut schedule = schedule();
        let at = Timestamp::from_microseconds(0);
        assert_eq!(task(&schedule, at).unique.unwrap().key, "schedule:nightly:1970-01-01T00:00:00Z");
        let own = UniqueKey { key: "own".into(), on_duplicate: OnDuplicate::Reject, keep_for: Duration::ZERO };
        schedule.task.unique = Some(own.clone());
        assert_eq!(task(&schedule, at).unique, Some(own));
    }
}
