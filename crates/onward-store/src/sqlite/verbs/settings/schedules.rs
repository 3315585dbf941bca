//! Schedules of recurring tasks.

use crate::api::error::Result;
use crate::api::name::Name;
use crate::api::outcome::{Outcome, Refusal};
use crate::api::schedule::{
    FireSchedule, Fired, Firing, NextFiring, Overlap, ScheduleRecord, ScheduleSet, SetSchedule,
};
use crate::api::timestamp::Timestamp;
use crate::bounds;
use crate::rules::schedule::{self as rule, Decision, Previous};
use crate::sqlite::columns::schedules;
use crate::sqlite::commit::transaction::{Transaction, VerbError, VerbResult};

impl Transaction<'_> {
    /// Creates or changes a schedule.
    pub(in crate::sqlite) fn set_schedule(&mut self, set: &SetSchedule) -> VerbResult<Outcome> {
        rule::check(&set.schedule, self.payload_limit)?;
        let existing = self.find_schedule(&set.schedule.name)?;
        if existing.is_none() && self.count_schedules()? >= bounds::SCHEDULES as u64 {
            return Err(rule::too_many(&set.schedule.name).into());
        }
        let (what, record) = rule::set(existing.as_ref(), set, self.now)?;
        if what != ScheduleSet::Unchanged {
            self.put_schedule(record)?;
            self.hint.schedules += 1;
        }
        Ok(Outcome::ScheduleSet(what))
    }

    /// Deletes a schedule. Tasks that it has submitted stay.
    pub(in crate::sqlite) fn delete_schedule(&mut self, name: &Name) -> VerbResult<Outcome> {
        let deleted =
            self.connection.prepare_cached("DELETE FROM schedule WHERE name = ?")?.execute([name.as_str()])?;
        if deleted == 0 {
            return Err(Refusal::ScheduleNotFound(name.clone()).into());
        }
        self.hint.schedules += 1;
        Ok(Outcome::Done)
    }

    /// Pauses a schedule.
    pub(in crate::sqlite) fn pause_schedule(&mut self, name: &Name) -> VerbResult<Outcome> {
        let record = self.known_schedule(name)?;
        if !record.paused {
            self.put_schedule(ScheduleRecord { paused: true, ..record })?;
            self.hint.schedules += 1;
        }
        Ok(Outcome::Done)
    }

    /// Resumes a schedule from its next firing, which the caller computed from revision `revision`.
    pub(in crate::sqlite) fn resume_schedule(
        &mut self,
        name: &Name,
        revision: u64,
        next: Option<NextFiring>,
    ) -> VerbResult<Outcome> {
        let record = self.schedule_as_read(name, revision)?;
        if record.paused {
            self.put_schedule(ScheduleRecord { paused: false, next, ..record })?;
            self.hint.schedules += 1;
        }
        Ok(Outcome::Done)
    }

    /// Fires a schedule: submits a task for each firing that the overlap policy permits. Rejects a
    /// stale revision, so that two nodes do not fire twice.
    pub(in crate::sqlite) fn fire_schedule(&mut self, fire: &FireSchedule) -> VerbResult<Outcome> {
        rule::check_fire(fire)?;
        let mut record = self.schedule_as_read(&fire.name, fire.revision)?;
        let overlap = fire.overlap.unwrap_or(record.schedule.overlap);
        let mut firings = Vec::with_capacity(fire.firings.len());
        for at in &fire.firings {
            rule::begin(&mut record, *at);
            let firing = self.fire_once(&record, overlap, *at)?;
            rule::note(&mut record, overlap, *at, &firing, self.now);
            firings.push(firing);
        }
        rule::finish(&mut record, fire, self.now);
        if record.pending_at.is_some() {
            // The node that runs schedules now waits for the end of another task.
            self.hint.schedules += 1;
        }
        Ok(Outcome::ScheduleFired(Fired { firings, revision: self.put_schedule(record)? }))
    }

    /// Handles one firing: submits its task, or follows the overlap policy.
    fn fire_once(&mut self, record: &ScheduleRecord, overlap: Overlap, at: Timestamp) -> VerbResult<Firing> {
        match rule::decide(overlap, self.previous_firing(record)?, record.pending_at.is_some()) {
            Decision::Submit => {}
            Decision::Skip(active) => return Ok(Firing::Skipped { active }),
            Decision::Defer(behind) => return Ok(Firing::Pending { behind }),
            Decision::Replace(task) => drop(self.cancel(task)?),
            Decision::Cancel(behind) => {
                self.cancel(behind)?;
                return Ok(Firing::Pending { behind });
            }
        }
        match self.submit(&rule::task(&record.schedule, at)) {
            Ok(submitted) => Ok(rule::firing(submitted)),
            Err(VerbError::Refused(refusal)) => Ok(Firing::Failed { message: refusal.to_string() }),
            Err(failed) => Err(failed),
        }
    }

    /// Returns the state of the schedule's last task.
    fn previous_firing(&self, record: &ScheduleRecord) -> Result<Previous> {
        let Some(last) = record.last else { return Ok(Previous::Ended) };
        Ok(Previous::of(last.task, self.live(last.task)?.map(|task| task.state())))
    }

    /// Reads a schedule, or returns the refusal.
    fn known_schedule(&self, name: &Name) -> VerbResult<ScheduleRecord> {
        self.find_schedule(name)?.ok_or_else(|| Refusal::ScheduleNotFound(name.clone()).into())
    }

    /// Returns the schedule, or the refusal if it has changed since `revision`.
    fn schedule_as_read(&self, name: &Name, revision: u64) -> VerbResult<ScheduleRecord> {
        let record = self.known_schedule(name)?;
        if record.revision == revision { Ok(record) } else { Err(Refusal::ScheduleChanged(name.clone()).into()) }
    }

    /// Returns a schedule by its name.
    fn find_schedule(&self, name: &Name) -> Result<Option<ScheduleRecord>> {
        Ok(schedules::read(self.connection, "WHERE name = ?", [name.as_str()])?.pop())
    }

    /// Counts the schedules.
    fn count_schedules(&self) -> Result<u64> {
        Ok(self.connection.prepare_cached("SELECT count(*) FROM schedule")?.query_row([], |row| row.get(0))?)
    }

    /// Stores a schedule under a new revision, and returns the revision.
    fn put_schedule(&self, mut record: ScheduleRecord) -> Result<u64> {
        record.revision = self
            .connection
            .prepare_cached("UPDATE meta SET value = value + 1 WHERE name = 'schedule_revision' RETURNING value")?
            .query_row([], |row| row.get(0))?;
        schedules::put(self.connection, &record)?;
        Ok(record.revision)
    }
}
