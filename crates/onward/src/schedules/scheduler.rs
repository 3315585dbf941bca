//! Fires due schedules while an engine runs.

use std::collections::HashMap;
use std::future::pending;
use std::time::Duration;

use futures_util::future::select_all;
use onward_store::{
    AfterFiring, Clock, FireSchedule, Fired, Firing, Name, NextFiring, Outcome, Refusal, ScheduleRecord,
    ScheduleSelection, Store, StoreReads, TaskId, Timestamp, Write,
};
use tokio::time::Sleep;
use tokio_util::sync::CancellationToken;

use super::calendar::Calendar;
use super::plan::{Plan, plan};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::store_backoff::StoreBackoff;
use crate::{bounds, timer};

/// A loop over the store's schedules. It wakes when one is due, when one was changed and when a
/// held firing may be ready. It ends only with the run: neither an invalid schedule nor a transient
/// error of the store stops it.
pub(crate) struct Scheduler {
    engine: Engine,
    /// Schedules that could not be fired, with the steady time of the next try.
    broken: HashMap<Name, Duration>,
    /// The offset of wall time from steady time at the last look.
    drift: Option<i64>,
}

/// The events for which the scheduler waits after a look.
#[derive(Debug, Default)]
struct NextCheck {
    /// The time at which the next firing is due.
    due: Option<Timestamp>,
    /// The tasks behind which firings are held.
    behind: Vec<TaskId>,
}

impl Scheduler {
    pub(crate) fn new(engine: Engine) -> Self {
        Self { engine, broken: HashMap::new(), drift: None }
    }

    /// Fires due schedules until the run is over.
    pub(crate) async fn run(mut self, over: &CancellationToken) {
        let mut backoff = StoreBackoff::default();
        while !over.is_cancelled() {
            // Limits how often hints are followed.
            let not_before = tokio::time::sleep(bounds::SCHEDULE_INTERVAL);
            let wait = match self.check().await {
                Ok(next) => {
                    backoff.succeeded();
                    over.run_until_cancelled(self.wait(next, not_before)).await
                }
                // The dispatcher ends the run with this error and reports it.
                Err(error) if error.is_replaced() => return over.cancelled().await,
                Err(error) => {
                    tracing::warn!(%error, "schedules could not be fired; retrying after a pause");
                    self.engine.inner.telemetry.store_errors.increment(1);
                    over.run_until_cancelled(backoff.wait(self.clock())).await
                }
            };
            if wait.is_none() {
                return;
            }
        }
    }

    /// Fires every due schedule once. Errors are logged.
    pub(crate) async fn run_once(mut self) {
        if let Err(error) = self.check().await {
            tracing::warn!(%error, "schedules could not be fired");
        }
    }

    fn clock(&self) -> &dyn Clock {
        &*self.engine.inner.clock
    }

    fn store(&self) -> &dyn Store {
        &*self.engine.inner.store
    }

    /// Fires due and held firings, and returns the events to wait for.
    async fn check(&mut self) -> Result<NextCheck> {
        if !self.follow_the_clock().await? {
            return Ok(NextCheck::default());
        }
        let behind = self.fire_pending().await?;
        // One look reads a limited batch of schedules, so looks repeat until nothing is due.
        loop {
            let (fired, due) = self.fire_due().await?;
            if !fired {
                return Ok(NextCheck { due, behind });
            }
        }
    }

    /// Handles a clock that was set back: next firings may belong to a time in which the clock was
    /// wrong. Returns false if there are no schedules, as mostly at the start of a run; nothing
    /// more is read then.
    async fn follow_the_clock(&mut self) -> Result<bool> {
        let steady = i64::try_from(self.clock().steady().as_micros()).unwrap_or(i64::MAX);
        let now = self.clock().now();
        let drift = now.as_microseconds().saturating_sub(steady);
        let was_set_back = self.drift.is_none_or(|before| {
            before.saturating_sub(drift) > i64::try_from(bounds::CLOCK_SET_BACK.as_micros()).unwrap_or(i64::MAX)
        });
        self.drift = Some(self.drift.map_or(drift, |before| if was_set_back { drift } else { before.max(drift) }));
        if !was_set_back {
            return Ok(true);
        }
        let records = self.store().schedules(ScheduleSelection::All).await?;
        for record in &records {
            if record.next.is_some_and(|next| next.at > now) && !record.paused {
                self.fire_if_due(record, now).await?;
            }
        }
        Ok(!records.is_empty())
    }

    /// Fires firings held behind tasks that have ended, and returns the tasks that have not.
    async fn fire_pending(&mut self) -> Result<Vec<TaskId>> {
        let mut behind = Vec::new();
        for record in self.store().schedules(ScheduleSelection::Pending).await? {
            let Some(held) = record.pending_at else { continue };
            match self.active(&record).await? {
                Some(task) => behind.push(task),
                None => {
                    let plan = Plan { firings: vec![held], missed: 0, then: AfterFiring::AsBefore };
                    self.fire(&record, plan).await?;
                }
            }
        }
        Ok(behind)
    }

    /// Returns the task behind which a firing is held, if it has not ended.
    async fn active(&self, record: &ScheduleRecord) -> Result<Option<TaskId>> {
        let Some(last) = record.last else { return Ok(None) };
        let task = self.store().task(last.task).await?;
        Ok(task.filter(|task| !task.state.is_ended()).map(|task| task.id))
    }

    /// Fires one batch of due schedules. Returns true if it fired any, and otherwise the time of
    /// the next firing.
    async fn fire_due(&mut self) -> Result<(bool, Option<Timestamp>)> {
        let steady = self.clock().steady();
        self.broken.retain(|_, until| *until > steady);
        // Schedules that could not be fired are due and come first, so the limit must not count
        // them.
        let limit = bounds::SCHEDULE_BATCH + self.broken.len();
        let records = self.store().schedules(ScheduleSelection::Next { limit }).await?;
        let now = self.clock().now();
        let mut fired = false;
        for record in
            records.iter().filter(|record| !self.broken.contains_key(&record.schedule.name)).collect::<Vec<_>>()
        {
            let Some(NextFiring { due, .. }) = record.next else { continue };
            if due > now {
                return Ok((fired, Some(self.retry_at(now).map_or(due, |retry| due.min(retry)))));
            }
            fired |= self.fire_if_due(record, now).await?;
        }
        Ok((fired, self.retry_at(now)))
    }

    /// Returns the time of the next try of schedules that could not be planned.
    fn retry_at(&self, now: Timestamp) -> Option<Timestamp> {
        let until = self.broken.values().min()?;
        Some(now.plus(until.saturating_sub(self.clock().steady())))
    }

    /// Fires a schedule if it is due, and returns true if it was.
    async fn fire_if_due(&mut self, record: &ScheduleRecord, now: Timestamp) -> Result<bool> {
        let planned = Calendar::of(&record.schedule).map(|calendar| plan(&calendar, record, now));
        match planned {
            Ok(Some(plan)) => self.fire(record, plan).await.map(|()| true),
            Ok(None) => Ok(false),
            Err(error) => self.suspend(record, &error).await.map(|()| true),
        }
    }

    /// Records the error of a schedule that this process cannot plan, and tries again later. Its
    /// time zone database may be older than that of the process that set the schedule.
    async fn suspend(&mut self, record: &ScheduleRecord, error: &Error) -> Result<()> {
        let (name, message) = (record.schedule.name.clone(), error.to_string());
        tracing::warn!(schedule = name.as_str(), %error, "a schedule cannot be fired; it is tried again");
        let until = self.clock().steady().saturating_add(bounds::SCHEDULE_RETRY_DELAY);
        let is_known = record.error.as_ref().is_some_and(|known| known.message == message);
        // An error that the record has already needs no further write.
        self.broken.insert(name, until);
        if is_known {
            return Ok(());
        }
        let plan = Plan { firings: Vec::new(), missed: 0, then: AfterFiring::AsBefore };
        self.apply(FireSchedule { error: Some(message), ..write(record, plan) }).await
    }

    async fn fire(&mut self, record: &ScheduleRecord, plan: Plan) -> Result<()> {
        self.apply(write(record, plan)).await
    }

    async fn apply(&mut self, fire: FireSchedule) -> Result<()> {
        let (name, missed) = (fire.name.clone(), fire.missed);
        match self.engine.apply(Write::FireSchedule(Box::new(fire))).await {
            Ok(Outcome::ScheduleFired(fired)) => {
                self.record(&name, missed, &fired);
                Ok(())
            }
            Ok(_) => Err(Error::unexpected("a firing")),
            Err(error) => match error.refusal() {
                // Another engine was faster, or the schedule was changed in the meantime.
                Some(Refusal::ScheduleChanged(_) | Refusal::ScheduleNotFound(_)) => Ok(()),
                Some(_) => {
                    let until = self.clock().steady().saturating_add(bounds::SCHEDULE_RETRY_DELAY);
                    tracing::warn!(schedule = name.as_str(), %error, "a schedule was not fired; it is tried again");
                    self.broken.insert(name, until);
                    Ok(())
                }
                None => Err(error),
            },
        }
    }

    fn record(&self, name: &Name, missed: u64, fired: &Fired) {
        let telemetry = &self.engine.inner.telemetry.schedules;
        telemetry.missed.increment(missed);
        for firing in &fired.firings {
            telemetry.count(firing);
            if let Firing::Failed { message } = firing {
                tracing::warn!(schedule = name.as_str(), message, "the task of a schedule could not be submitted");
            }
        }
    }

    /// Waits until there may be something to do.
    async fn wait(&self, next: NextCheck, not_before: Sleep) {
        let changed = async {
            self.engine.inner.schedules_changed.notified().await;
            not_before.await;
        };
        tokio::select! {
            biased;
            () = self.until(next.due) => {}
            () = self.ended(next.behind) => {}
            () = changed => {}
        }
    }

    async fn until(&self, due: Option<Timestamp>) {
        let Some(due) = due else { return pending().await };
        let (wall, steady) = (self.clock().now(), self.clock().steady());
        timer::tick(self.clock(), steady.saturating_add(due - wall)).await;
    }

    /// Waits until one of the tasks may have ended.
    async fn ended(&self, tasks: Vec<TaskId>) {
        if tasks.is_empty() {
            return pending().await;
        }
        let waits = tasks.into_iter().map(|task| Box::pin(self.engine.wait(task)));
        if let (Err(error), ..) = select_all(waits).await
            && !error.is_not_found()
            && !error.is_replaced()
        {
            tracing::warn!(%error, "a task that a schedule awaits could not be read; retrying after a pause");
            let at = self.clock().steady().saturating_add(bounds::STORE_RETRY_LONGEST);
            timer::reached(self.clock(), at).await;
        }
    }
}

fn write(record: &ScheduleRecord, plan: Plan) -> FireSchedule {
    FireSchedule {
        name: record.schedule.name.clone(),
        revision: record.revision,
        firings: plan.firings,
        overlap: None,
        missed: plan.missed,
        error: None,
        then: plan.then,
    }
}
