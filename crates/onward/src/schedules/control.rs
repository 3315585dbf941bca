//! Control of schedules by people and programs.

use onward_store::{
    AfterFiring, FireSchedule, Fired, Firing, Name, NewSchedule, NextFiring, Outcome, Overlap, Refusal, ScheduleRecord,
    ScheduleSelection, ScheduleSet, SetSchedule, StoreReads, Timestamp, Write, bounds as store_bounds,
};

use super::builder::ScheduleBuilder;
use super::calendar::Calendar;
use crate::bounds;
use crate::engine::Engine;
use crate::error::{Error, Result};

/// Schedules: recurring tasks. The store keeps them, and every engine on it that
/// [runs](Engine::run) fires them; each firing is made by one engine.
///
/// [`Context::scheduled_at`](crate::Context::scheduled_at) gives a task the moment of its firing. A
/// schedule continues whatever happens to its tasks. If a task cannot be submitted, the error is in
/// the schedule's [record](ScheduleRecord::error), and the schedule fires again at its next moment.
impl Engine {
    /// Returns a builder of a schedule; `.await` sets it. Setting an unchanged schedule again
    /// changes nothing, so a program may do so at every start.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), onward::Error> {
    /// use onward::schedules::Overlap;
    /// use onward::{Engine, NewTask};
    ///
    /// let engine = Engine::builder().memory().open().await?;
    /// let report = NewTask::new("report")?;
    /// let schedule = engine.schedule("nightly-report").cron("0 3 * * *", "Europe/Berlin");
    /// schedule.task(report).overlap(Overlap::Skip).await?;
    /// # Ok(()) }
    /// ```
    pub fn schedule(&self, name: impl AsRef<str>) -> ScheduleBuilder {
        ScheduleBuilder::new(self.clone(), name.as_ref())
    }

    /// Creates a schedule, or changes the one of that name. Its next firing is the first after now.
    /// If only its task or its policies change, a due firing stays due. A paused schedule stays
    /// paused.
    ///
    /// # Errors
    /// [`is_invalid`](Error::is_invalid) for an invalid cron expression, time zone, interval,
    /// policy or task, for a schedule that never fires, and for one that belongs to a provider; the
    /// store's error if it could not keep the schedule.
    pub async fn set_schedule(&self, schedule: NewSchedule) -> Result<ScheduleSet> {
        let next = Calendar::of(&schedule)?.next_firing(self.inner.clock.now());
        if next.is_none() {
            let what = "never fires from now on; look at its days, its year, its start and its end";
            return Err(Error::invalid(format!("the schedule `{}` {what}", schedule.name)));
        }
        match self.apply(Write::SetSchedule(Box::new(SetSchedule { schedule, next }))).await? {
            Outcome::ScheduleSet(set) => Ok(set),
            _ => Err(Error::unexpected("a schedule")),
        }
    }

    /// Returns every schedule, by name.
    ///
    /// # Errors
    /// The store's error if it could not be read.
    pub async fn schedules(&self) -> Result<Vec<ScheduleRecord>> {
        Ok(self.inner.store.schedules(ScheduleSelection::All).await?)
    }

    /// Returns one schedule.
    ///
    /// # Errors
    /// [`is_not_found`](Error::is_not_found); the store's error if it could not be read.
    pub async fn find_schedule(&self, name: &Name) -> Result<ScheduleRecord> {
        let found = self.inner.store.schedules(ScheduleSelection::Named(name.clone())).await?.pop();
        found.ok_or_else(|| Refusal::ScheduleNotFound(name.clone()).into())
    }

    /// Pauses a schedule until it is resumed, also across restarts. Tasks that it has submitted
    /// continue.
    ///
    /// # Errors
    /// [`is_not_found`](Error::is_not_found); the store's error if it could not keep the pause.
    pub async fn pause_schedule(&self, name: &Name) -> Result<()> {
        self.done(Write::PauseSchedule { schedule: name.clone() }).await
    }

    /// Resumes a paused schedule, from its first moment after now. Moments during the pause are
    /// skipped; see [`backfill_schedule`](Self::backfill_schedule).
    ///
    /// # Errors
    /// [`is_not_found`](Error::is_not_found); the store's error if it could not keep the change.
    pub async fn resume_schedule(&self, name: &Name) -> Result<()> {
        let resume = |record: &ScheduleRecord| {
            let next = Calendar::of(&record.schedule)?.next_firing(self.inner.clock.now());
            Ok(Write::ResumeSchedule { schedule: name.clone(), revision: record.revision, next })
        };
        self.apply_to_schedule(name, resume).await.map(drop)
    }

    /// Deletes a schedule. The tasks that it has submitted stay.
    ///
    /// # Errors
    /// [`is_not_found`](Error::is_not_found); the store's error if it could not keep the change.
    pub async fn delete_schedule(&self, name: &Name) -> Result<()> {
        self.done(Write::DeleteSchedule { schedule: name.clone() }).await
    }

    /// Fires a schedule once, now, in addition to its moments, even if it is paused or over.
    /// `overlap` replaces its own policy.
    ///
    /// # Errors
    /// [`is_not_found`](Error::is_not_found); the store's error if it could not keep the firing.
    pub async fn trigger_schedule(&self, name: &Name, overlap: Option<Overlap>) -> Result<Firing> {
        let now = self.inner.clock.now();
        let firings = self.fire_extra(name, overlap, |_| Ok(vec![now])).await?;
        firings.into_iter().next().map(|(_, firing)| firing).ok_or_else(|| Error::unexpected("a firing"))
    }

    /// Fires a schedule for its past (or future) moments from `from` up to, but not including,
    /// `until`: at most 1000, in one commit. Returns the result of each. With [`Overlap::Allow`]
    /// every task is submitted, and none of them holds back a regular firing.
    ///
    /// # Errors
    /// [`is_not_found`](Error::is_not_found); [`is_invalid`](Error::is_invalid) if there are more
    /// than 1000; the store's error if it could not keep the firings.
    pub async fn backfill_schedule(
        &self,
        name: &Name,
        from: Timestamp,
        until: Timestamp,
        overlap: Overlap,
    ) -> Result<Vec<(Timestamp, Firing)>> {
        self.fire_extra(name, Some(overlap), |record| moments(&record.schedule, from, until)).await
    }

    /// Returns the next firings of a schedule, at most 1000, as if it were not paused.
    ///
    /// # Errors
    /// [`is_not_found`](Error::is_not_found); the store's error if it could not be read.
    pub async fn upcoming(&self, name: &Name, count: usize) -> Result<Vec<NextFiring>> {
        let record = self.find_schedule(name).await?;
        let calendar = Calendar::of(&record.schedule)?;
        let first = match record.next {
            Some(next) if !record.paused => Some(next),
            _ => calendar.next_firing(self.inner.clock.now()),
        };
        let firings = std::iter::successors(first, |firing| calendar.next_firing(firing.at));
        Ok(firings.take(count.min(store_bounds::FIRINGS)).collect())
    }

    async fn fire_extra(
        &self,
        name: &Name,
        overlap: Option<Overlap>,
        moments: impl Fn(&ScheduleRecord) -> Result<Vec<Timestamp>> + Send + Sync,
    ) -> Result<Vec<(Timestamp, Firing)>> {
        let fire = |record: &ScheduleRecord| {
            Ok(Write::FireSchedule(Box::new(FireSchedule {
                name: name.clone(),
                revision: record.revision,
                firings: moments(record)?,
                overlap,
                missed: 0,
                error: None,
                then: AfterFiring::AsBefore,
            })))
        };
        match self.apply_to_schedule(name, fire).await? {
            (Write::FireSchedule(fire), Outcome::ScheduleFired(Fired { firings, .. })) => {
                Ok(fire.firings.into_iter().zip(firings).collect())
            }
            _ => Err(Error::unexpected("a firing")),
        }
    }

    /// Applies a write that depends on the present schedule, and computes it again if the schedule
    /// changes at the same time.
    async fn apply_to_schedule(
        &self,
        name: &Name,
        make: impl Fn(&ScheduleRecord) -> Result<Write> + Send + Sync,
    ) -> Result<(Write, Outcome)> {
        for _ in 1..bounds::SCHEDULE_ATTEMPTS {
            let write = make(&self.find_schedule(name).await?)?;
            match self.apply(write.clone()).await {
                Ok(outcome) => return Ok((write, outcome)),
                Err(error) if matches!(error.refusal(), Some(Refusal::ScheduleChanged(_))) => {}
                Err(error) => return Err(error),
            }
        }
        Err(Refusal::ScheduleChanged(name.clone()).into())
    }
}

fn moments(schedule: &NewSchedule, from: Timestamp, until: Timestamp) -> Result<Vec<Timestamp>> {
    let microsecond = std::time::Duration::from_micros(1);
    let limit = store_bounds::FIRINGS;
    let (after, last) = (from.minus(microsecond), until.minus(microsecond));
    let moments = Calendar::of(schedule)?.between(after, last, limit + 1);
    if moments.len() > limit {
        let name = &schedule.name;
        return Err(Error::invalid(format!(
            "the schedule `{name}` fires more than {limit} times from {from} to {until}; do it in shorter ranges"
        )));
    }
    Ok(moments)
}
