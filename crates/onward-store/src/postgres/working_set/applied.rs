//! The effects of writes on a working set.

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

/// The effects of decided writes: their outcomes, and the state after them.
#[derive(Debug)]
pub(in crate::postgres) struct Applied {
    /// The outcomes of each call's writes.
    pub(crate) outcomes: Vec<Vec<Outcome>>,
    /// The kinds of changes, for the notification of other processes.
    pub(crate) hint: Hint,
    /// The ended tasks, for waiting callers.
    pub(crate) notifications: Vec<TaskNotification>,
    /// The store's [stamp](Self::stamp) after the writes.
    pub(in crate::postgres) stamp: i64,
    /// The entries of the log, as in [`ChangeSet`].
    pub(in crate::postgres) log: Vec<(i64, i64, String)>,
    /// The first entry of the log that is still kept.
    pub(in crate::postgres) forget_before: i64,
    /// The loaded state after the writes.
    pub(in crate::postgres) after: State,
}

/// A value, or the requests to load before it can be computed.
pub(in crate::postgres) type Covered<T> = std::result::Result<T, BTreeSet<LoadRequest>>;

impl WorkingSet {
    /// Decides calls in order, without loading anything on the way.
    #[cfg(test)]
    pub(crate) fn run(&self, calls: &[&[Write]], now: Now) -> Result<Covered<Applied>> {
        let mut decision = self.decision(now);
        while decision.advance(calls, usize::MAX)? {}
        Ok(decision.end(self))
    }

    /// Begins a decision of calls at the time `now`.
    pub(crate) fn decision(&self, now: Now) -> Decision {
        Decision::new(&self.state, now)
    }

    /// Returns true if a write or read has needed a row that is not loaded.
    pub(crate) fn has_requests(&self) -> bool {
        self.state.tasks.coverage.has_requests()
    }

    /// Returns the open requests, and forgets them.
    pub(in crate::postgres) fn take_requests(&self) -> BTreeSet<LoadRequest> {
        self.state.tasks.coverage.take_requests()
    }

    /// Returns the rows that writes have changed, relative to the rows that were `written` already.
    pub(crate) fn change_set(&self, applied: &mut Applied, written: &SentTasks) -> Result<ChangeSet> {
        let mut change_set = ChangeSet::between(&self.state, &applied.after, written)?;
        change_set.log = std::mem::take(&mut applied.log);
        change_set.forget_before = applied.forget_before;
        Ok(change_set)
    }

    /// Returns the [stamp](Applied::stamp) of the store as it was loaded.
    pub(in crate::postgres) fn stamp(&self) -> i64 {
        stamp(&self.state)
    }
}

impl Applied {
    /// Returns the loaded state as it is after the writes.
    pub(in crate::postgres) fn after(&self) -> &State {
        &self.after
    }

    /// Returns the latest day on which a task has ended, and one of its queues.
    pub(crate) fn latest_day(&self) -> Option<(i64, String)> {
        let ((day, queue), _) = self.after.daily_counts.days.last_key_value()?;
        Some((*day, queue.to_string()))
    }

    /// Moves the small state, as it is after the writes, out of this value.
    pub(crate) fn items(&mut self) -> SmallState {
        SmallState::left_by(std::mem::take(&mut self.after))
    }

    /// Returns a number that differs after every write that changes a task.
    pub(in crate::postgres) fn stamp(&self) -> i64 {
        self.stamp
    }
}

/// Returns the stamp of a state: entries of the log and task numbers only ever rise.
pub(in crate::postgres) fn stamp(state: &State) -> i64 {
    state.entry - 1 + state.last_task
}

/// Returns the number of tasks that writes may claim or remove in total: these need waiting or
/// ended tasks loaded.
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
