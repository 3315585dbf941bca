//! What writes did to a working set.

use std::collections::BTreeSet;

use crate::api::error::Result;
use crate::api::notification::TaskNotification;
use crate::api::outcome::Outcome;
use crate::api::store::Hint;
use crate::api::write::Write;
use crate::bounds;
use crate::model::Now;
use crate::model::{LoadRequest, State};
use crate::postgres::working_set::change_set::ChangeSet;
use crate::postgres::working_set::contents::WorkingSet;
use crate::postgres::working_set::decision::{Decision, SentTasks};
use crate::postgres::working_set::small_state::SmallState;

/// What writes did.
#[derive(Debug)]
pub(in crate::postgres) struct Applied {
    pub(crate) outcomes: Vec<Vec<Outcome>>,
    pub(crate) hint: Hint,
    pub(crate) notifications: Vec<TaskNotification>,
    pub(in crate::postgres) stamp: i64,
    pub(in crate::postgres) log: Vec<(i64, i64, String)>,
    pub(in crate::postgres) forget_before: i64,
    pub(in crate::postgres) after: State,
}

/// What was asked for, or what is to be loaded before it can be answered.
pub(in crate::postgres) type Covered<T> = std::result::Result<T, BTreeSet<LoadRequest>>;

impl WorkingSet {
    /// Decides calls, one after another.
    #[cfg(test)]
    pub(crate) fn run(&self, calls: &[&[Write]], now: Now) -> Result<Covered<Applied>> {
        let mut decision = self.decision(now);
        while decision.advance(calls, usize::MAX)? {}
        Ok(decision.end(self))
    }

    /// Begins to decide calls.
    pub(crate) fn decision(&self, now: Now) -> Decision {
        Decision::new(&self.state, now)
    }

    /// Whether anything was looked for that is not loaded.
    pub(crate) fn has_requests(&self) -> bool {
        self.state.tasks.coverage.has_requests()
    }

    pub(in crate::postgres) fn take_requests(&self) -> BTreeSet<LoadRequest> {
        self.state.tasks.coverage.take_requests()
    }

    /// What writes have changed, but for what was written of it already.
    pub(crate) fn change_set(&self, applied: &mut Applied, written: &SentTasks) -> Result<ChangeSet> {
        let mut change_set = ChangeSet::between(&self.state, &applied.after, written)?;
        change_set.log = std::mem::take(&mut applied.log);
        change_set.forget_before = applied.forget_before;
        Ok(change_set)
    }

    /// The [stamp](Applied::stamp) of the store as it was loaded.
    pub(in crate::postgres) fn stamp(&self) -> i64 {
        stamp(&self.state)
    }
}

impl Applied {
    /// What was loaded, as it is after the writes.
    pub(in crate::postgres) fn after(&self) -> &State {
        &self.after
    }

    /// One queue of the latest day on which a task has ended.
    pub(crate) fn latest_day(&self) -> Option<(i64, String)> {
        let ((day, queue), _) = self.after.daily_counts.days.last_key_value()?;
        Some((*day, queue.to_string()))
    }

    /// Everything that is not a task, as it is after the writes. Takes it out of this.
    pub(crate) fn items(&mut self) -> SmallState {
        SmallState::left_by(std::mem::take(&mut self.after))
    }

    /// A number that is another one after every write that changes a task.
    pub(in crate::postgres) fn stamp(&self) -> i64 {
        self.stamp
    }
}

pub(in crate::postgres) fn stamp(state: &State) -> i64 {
    state.entry - 1 + state.last_task
}

/// How many tasks claims among writes ask for together.
pub(in crate::postgres) fn claimed_by(writes: &[Write]) -> usize {
    let one = |write: &Write| match write {
        Write::Claim(claim) => claim.limit.min(bounds::CLAIM),
        Write::All(writes) => claimed_by(writes),
        Write::Prune(prune) => prune.limit,
        Write::Purge { limit, .. } => *limit,
        _ => 0,
    };
    writes.iter().map(one).fold(0, usize::saturating_add)
}
