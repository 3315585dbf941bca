//! A schedule that is being described.

use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::time::Duration;

use onward_store::{CatchUp, Name, NewSchedule, NewTask, Overlap, Recurrence, ScheduleSet, Timestamp};

use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::submit::{Task, new_task};

/// A schedule that is being described; `.await` sets it and answers whether that made or changed
/// anything. What is wrong with the description is told then, and nothing is changed.
///
/// It needs to be told when ([`every`](Self::every) or [`cron`](Self::cron)) and what
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

    /// It fires at every whole multiple of the interval since its [start](Self::starts_at), or
    /// since 1970-01-01T00:00:00Z: every quarter of an hour means at the quarters of each hour,
    /// whenever it was set. 100 ms to 3660 days.
    pub fn every(self, interval: Duration) -> Self {
        Self { recurrence: Some(Recurrence::Every(interval)), ..self }
    }

    /// It fires at the moments of a cron expression by the wall clock of a zone of the IANA
    /// database, such as `Europe/Berlin` or `UTC`.
    ///
    /// Five fields: minute, hour, day of month, month, day of week (0 or 7 is Sunday); with seconds
    /// before them, six; with years behind them, seven. Lists (`1,15`), ranges (`9-17`), steps
    /// (`*/5`), names (`MON`, `JAN`), `L` for the last day of a month, `5#2` for the second Friday,
    /// `15W` for the weekday nearest to the 15th, and `@hourly`, `@daily`, `@weekly`, `@monthly`,
    /// `@yearly`. Where both a day of month and a day of week are given, either will do.
    ///
    /// A moment that the clock skips in spring is taken when the clock goes on. A fixed time that
    /// comes twice in autumn is taken the first time only; `*/15 * * * *` and its like go on
    /// through both hours.
    pub fn cron(self, expression: impl Into<String>, zone: impl Into<String>) -> Self {
        Self { recurrence: Some(Recurrence::Cron { expression: expression.into(), zone: zone.into() }), ..self }
    }

    /// It submits this task. Without a key of its own each firing's task gets the key
    /// `schedule:NAME:MOMENT`.
    pub fn task(self, task: NewTask) -> Self {
        Self { task: Some(Ok(task)), ..self }
    }

    /// It submits this typed task.
    pub fn run<T: Task>(self, task: &T) -> Self {
        Self { task: Some(new_task(task)), ..self }
    }

    /// What to do when a firing comes while the task of the one before is active. Default: it is
    /// left out.
    pub fn overlap(self, overlap: Overlap) -> Self {
        Self { overlap, ..self }
    }

    /// What becomes of firings that were missed, because nobody ran when they were due. Default:
    /// the last of them fires.
    pub fn catch_up(self, catch_up: CatchUp) -> Self {
        Self { catch_up, ..self }
    }

    /// Each firing is put off by a part of this, at most a day, that depends on the schedule's name
    /// and the moment, and never up to the next moment. Default: none.
    pub fn jitter(self, jitter: Duration) -> Self {
        Self { jitter, ..self }
    }

    /// No firing is before this moment; intervals count from it.
    pub fn starts_at(self, moment: Timestamp) -> Self {
        Self { starts_at: Some(moment), ..self }
    }

    /// No firing is at or after this moment.
    pub fn ends_at(self, moment: Timestamp) -> Self {
        Self { ends_at: Some(moment), ..self }
    }

    /// The schedule as described, for a [provider](crate::ScheduleProvider) or to be set later.
    ///
    /// # Errors
    /// [`is_invalid`](Error::is_invalid) if its name or its typed task cannot be used, or it was
    /// not said when or what.
    pub fn build(self) -> Result<NewSchedule> {
        let name = self.name?;
        let missing = |what: &str| Error::invalid(format!("the schedule `{name}` was not told {what}"));
        let recurrence = self.recurrence.ok_or_else(|| missing("when to fire; say `every` or `cron`"))?;
        let task = self.task.ok_or_else(|| missing("what to submit; say `task` or `run`"))??;
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
