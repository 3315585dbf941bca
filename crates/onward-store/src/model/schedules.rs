//! Schedules of recurring tasks.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::api::name::Name;
use crate::api::outcome::{Outcome, Refusal};
use crate::api::schedule::{
    FireSchedule, Fired, Firing, NextFiring, Overlap, ScheduleRecord, ScheduleSelection, ScheduleSet, SetSchedule,
};
use crate::api::timestamp::Timestamp;
use crate::bounds;
use crate::model::state::State;
use crate::rules::schedule::{self as rule, Decision, Previous};

/// The schedules by name, shared with earlier states.
#[derive(Debug, Clone, Default)]
pub(crate) struct Schedules {
    pub(crate) by_name: Arc<BTreeMap<Name, ScheduleRecord>>,
    /// The last revision that was assigned.
    pub(crate) revision: u64,
}

impl Schedules {
    /// Returns a schedule, or the refusal for one that does not exist.
    fn get(&self, name: &Name) -> Result<&ScheduleRecord, Refusal> {
        self.by_name.get(name).ok_or_else(|| Refusal::ScheduleNotFound(name.clone()))
    }

    /// Returns the schedule, or the refusal if it has changed since `revision`.
    fn get_as_read(&self, name: &Name, revision: u64) -> Result<ScheduleRecord, Refusal> {
        let record = self.get(name)?;
        if record.revision == revision { Ok(record.clone()) } else { Err(Refusal::ScheduleChanged(name.clone())) }
    }

    /// Stores a schedule under a new revision.
    fn put(&mut self, mut record: ScheduleRecord) -> u64 {
        self.revision += 1;
        record.revision = self.revision;
        Arc::make_mut(&mut self.by_name).insert(record.schedule.name.clone(), record);
        self.revision
    }

    /// Returns the selected schedules, by name or by their next firing.
    pub(crate) fn select(&self, which: &ScheduleSelection) -> Vec<ScheduleRecord> {
        let all = self.by_name.values();
        match which {
            ScheduleSelection::All => all.cloned().collect(),
            ScheduleSelection::Named(name) => self.by_name.get(name).cloned().into_iter().collect(),
            ScheduleSelection::Pending => all.filter(|it| it.pending_at.is_some() && !it.paused).cloned().collect(),
            ScheduleSelection::Next { limit } => {
                let mut next: Vec<&ScheduleRecord> = all.filter(|it| it.next.is_some() && !it.paused).collect();
                next.sort_by_key(|it| it.next.map(|next| next.due));
                next.into_iter().take(*limit).cloned().collect()
            }
        }
    }
}

impl State {
    /// Creates or replaces a schedule. An equal schedule stays as it is, so that a program can set
    /// its schedules at each start.
    pub(super) fn set_schedule(&mut self, set: &SetSchedule) -> Result<Outcome, Refusal> {
        rule::check(&set.schedule, self.payload_limit)?;
        let existing = self.schedules.by_name.get(&set.schedule.name);
        if existing.is_none() && self.schedules.by_name.len() >= bounds::SCHEDULES {
            return Err(rule::too_many(&set.schedule.name));
        }
        let (what, record) = rule::set(existing, set, self.now.wall)?;
        if what != ScheduleSet::Unchanged {
            self.schedules.put(record);
            self.hint.schedules += 1;
        }
        Ok(Outcome::ScheduleSet(what))
    }

    /// Removes a schedule. Tasks that it submitted stay.
    pub(super) fn delete_schedule(&mut self, name: &Name) -> Result<Outcome, Refusal> {
        self.schedules.get(name)?;
        Arc::make_mut(&mut self.schedules.by_name).remove(name);
        self.hint.schedules += 1;
        Ok(Outcome::Done)
    }

    /// Pauses a schedule. The caller that resumes it handles the times that passed during the
    /// pause.
    pub(super) fn pause_schedule(&mut self, name: &Name) -> Result<Outcome, Refusal> {
        let record = self.schedules.get(name)?.clone();
        if !record.paused {
            self.schedules.put(ScheduleRecord { paused: true, ..record });
            self.hint.schedules += 1;
        }
        Ok(Outcome::Done)
    }

    /// Ends a pause. The caller computed the next firing, and the revision proves that it read the
    /// current schedule.
    pub(super) fn resume_schedule(
        &mut self,
        name: &Name,
        revision: u64,
        next: Option<NextFiring>,
    ) -> Result<Outcome, Refusal> {
        let record = self.schedules.get_as_read(name, revision)?;
        if record.paused {
            self.schedules.put(ScheduleRecord { paused: false, next, ..record });
            self.hint.schedules += 1;
        }
        Ok(Outcome::Done)
    }

    /// Submits the firings that are due, in order, each by the overlap policy.
    pub(super) fn fire_schedule(&mut self, fire: &FireSchedule) -> Result<Outcome, Refusal> {
        rule::check_fire(fire)?;
        let mut record = self.schedules.get_as_read(&fire.name, fire.revision)?;
        let overlap = fire.overlap.unwrap_or(record.schedule.overlap);
        let mut firings = Vec::with_capacity(fire.firings.len());
        for at in &fire.firings {
            rule::begin(&mut record, *at);
            let firing = self.fire_once(&record, overlap, *at)?;
            rule::note(&mut record, overlap, *at, &firing, self.now.wall);
            firings.push(firing);
        }
        rule::finish(&mut record, fire, self.now.wall);
        if record.pending_at.is_some() {
            // The node that runs schedules now waits for another task.
            self.hint.schedules += 1;
        }
        Ok(Outcome::ScheduleFired(Fired { firings, revision: self.schedules.put(record) }))
    }

    /// Submits, skips or defers one firing.
    fn fire_once(&mut self, record: &ScheduleRecord, overlap: Overlap, at: Timestamp) -> Result<Firing, Refusal> {
        match rule::decide(overlap, self.previous(record), record.pending_at.is_some()) {
            Decision::Submit => {}
            Decision::Skip(active) => return Ok(Firing::Skipped { active }),
            Decision::Defer(behind) => return Ok(Firing::Pending { behind }),
            Decision::Replace(task) => drop(self.cancel(task)?),
            Decision::Cancel(behind) => {
                self.cancel(behind)?;
                return Ok(Firing::Pending { behind });
            }
        }
        Ok(match self.submit(rule::task(&record.schedule, at)) {
            Ok(Outcome::Submitted(submitted)) => rule::firing(submitted),
            Ok(_) => Firing::Failed { message: String::new() },
            Err(refusal) => Firing::Failed { message: refusal.to_string() },
        })
    }

    /// Returns the state of the task of the last firing. A task that was removed counts as ended.
    fn previous(&self, record: &ScheduleRecord) -> Previous {
        let Some(last) = record.last else { return Previous::Ended };
        Previous::of(last.task, self.tasks.get(last.task).map(|task| task.state))
    }
}
