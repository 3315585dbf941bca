//! A builder of schedules.

use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::time::Duration;

use onward_store::{CatchUp, Name, NewSchedule, NewTask, Overlap, Recurrence, ScheduleSet, Timestamp};

use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::submit::{Task, new_task};

/// A builder of a schedule. `.await` sets it and returns whether that created or changed anything.
/// Errors in the settings are reported then, and nothing is changed.
///
/// It needs a recurrence ([`every`](Self::every) or [`cron`](Self::cron)) and a task
/// ([`task`](Self::task) or [`run`](Self::run)).
#[derive(Debug)]
#[must_use = "nothing is set until it is awaited"]
pub struct ScheduleBuilder {
    engine: Engine,
    name: Result<Name>,
    recurrence: Option<Recurrence>,
    task: Option<Result<NewTask>>,
    overlap: Overlap,
    catch_up: CatchUp,
    jitter: Duration,
    starts_at: Option<Timestamp>,
    ends_at: Option<Timestamp>,
}

impl ScheduleBuilder {
    pub(crate) fn new(engine: Engine, name: &str) -> Self {
        Self {
            engine,
            name: Name::new(name).map_err(Into::into),
            recurrence: None,
            task: None,
            overlap: Overlap::default(),
            catch_up: CatchUp::default(),
            jitter: Duration::ZERO,
            starts_at: None,
            ends_at: None,
        }
    }

    /// Fires at every whole multiple of the interval since its [start](Self::starts_at), or since
    /// 1970-01-01T00:00:00Z. An interval of 15 minutes fires at the quarters of each hour, whenever
    /// the schedule was set. 100 ms to 3660 days.
    pub fn every(self, interval: Duration) -> Self {
        Self { recurrence: Some(Recurrence::Every(interval)), ..self }
    }

    /// Fires at the moments of a cron expression by the wall clock of an IANA time zone, such as
    /// `Europe/Berlin` or `UTC`.
    ///
    /// Five fields: minute, hour, day of month, month, day of week (0 or 7 is Sunday). Six fields
    /// begin with seconds, and seven end with years.
    ///
    /// A field may have lists (`1,15`), ranges (`9-17`), steps (`*/5`) and names (`MON`, `JAN`).
    /// `L` is the last day of a month, `5#2` the second Friday, and `15W` the weekday nearest to
    /// the 15th. `@hourly`, `@daily`, `@weekly`, `@monthly` and `@yearly` are short forms. If both
    /// a day of month and a day of week are given, either matches.
    ///
    /// A moment that the clock skips in spring fires when the clock continues. A fixed time that
    /// occurs twice in autumn fires the first time only; `*/15 * * * *` and similar expressions
    /// fire in both hours.
    pub fn cron(self, expression: impl Into<String>, zone: impl Into<String>) -> Self {
        Self { recurrence: Some(Recurrence::Cron { expression: expression.into(), zone: zone.into() }), ..self }
    }

    /// Submits this task. Without its own key each firing's task gets the key
    /// `schedule:NAME:MOMENT`.
    pub fn task(self, task: NewTask) -> Self {
        Self { task: Some(Ok(task)), ..self }
    }

    /// Submits this typed task.
    pub fn run<T: Task>(self, task: &T) -> Self {
        Self { task: Some(new_task(task)), ..self }
    }

    /// Sets what happens to a firing while the task of the one before is active. Default: it is
    /// skipped.
    pub fn overlap(self, overlap: Overlap) -> Self {
        Self { overlap, ..self }
    }

    /// Sets what happens to firings that were missed because no engine ran when they were due.
    /// Default: the last of them fires.
    pub fn catch_up(self, catch_up: CatchUp) -> Self {
        Self { catch_up, ..self }
    }

    /// Delays each firing by a part of this, at most a day. The delay depends on the schedule's
    /// name and the moment, and never reaches the next moment. Default: none.
    pub fn jitter(self, jitter: Duration) -> Self {
        Self { jitter, ..self }
    }

    /// Sets the first moment of a firing. Intervals count from it.
    pub fn starts_at(self, moment: Timestamp) -> Self {
        Self { starts_at: Some(moment), ..self }
    }

    /// Sets an end: no firing is at or after this moment.
    pub fn ends_at(self, moment: Timestamp) -> Self {
        Self { ends_at: Some(moment), ..self }
    }

    /// Returns the schedule, for a [provider](crate::schedules::ScheduleProvider) or to be set
    /// later.
    ///
    /// # Errors
    /// [`is_invalid`](Error::is_invalid) if its name or its typed task is invalid, or if the
    /// recurrence or the task is missing.
    pub fn build(self) -> Result<NewSchedule> {
        let name = self.name?;
        let missing = |what: &str| Error::invalid(format!("the schedule `{name}` has no {what}"));
        let recurrence = self.recurrence.ok_or_else(|| missing("recurrence; set one with `every` or `cron`"))?;
        let task = self.task.ok_or_else(|| missing("task; set one with `task` or `run`"))??;
        Ok(NewSchedule {
            overlap: self.overlap,
            catch_up: self.catch_up,
            jitter: self.jitter,
            starts_at: self.starts_at,
            ends_at: self.ends_at,
            ..NewSchedule::new(name, recurrence, task)
        })
    }
}

impl IntoFuture for ScheduleBuilder {
    type Output = Result<ScheduleSet>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let engine = self.engine.clone();
            engine.set_schedule(self.build()?).await
        })
    }
}
