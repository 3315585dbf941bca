//! A decision: calls are decided step by step, so that final rows can be written while the rest is
//! decided.
//!
//! [`Decision::advance`] runs the writes on a copy of the loaded state. The model cannot fail for a
//! row that is missing: it records a load request and continues with some value. So the outcomes
//! count only if no request is open at the end. Otherwise the caller drops the copy, loads the
//! rows, and decides all calls again from the state before. The writes run twice then, but change
//! nothing outside the copy.

use std::sync::Arc;

use crate::api::error::Result;
use crate::api::notification::TaskNotification;
use crate::api::outcome::Outcome;
use crate::api::store::Hint;
use crate::api::task::TaskId;
use crate::api::write::Write;
use crate::model::{Now, State, Task};
use crate::number_map::NumberMap;
use crate::postgres::working_set::applied::{Applied, claimed_by};
use crate::postgres::working_set::applied::{Covered, stamp};
use crate::postgres::working_set::change_set::{ChangeSet, ColumnarCandidates};
use crate::postgres::working_set::contents::WorkingSet;
use crate::postgres::working_set::log_entry::encode;

/// The tasks whose rows were sent before everything was decided, as they were sent.
#[derive(Debug, Default)]
pub(crate) struct SentTasks {
    /// The tasks by number.
    tasks: NumberMap<TaskId, Arc<Task>>,
    /// The tasks that are new.
    new: Vec<TaskId>,
}

impl SentTasks {
    /// Returns true if new tasks were sent.
    pub(in crate::postgres) fn has_new(&self) -> bool {
        !self.new.is_empty()
    }

    /// Returns a task as it was sent.
    pub(in crate::postgres) fn get(&self, id: TaskId) -> Option<&Arc<Task>> {
        self.tasks.get(&id)
    }

    /// Returns the new tasks.
    pub(super) fn new_tasks(&self) -> impl Iterator<Item = &Arc<Task>> {
        self.new.iter().filter_map(|id| self.tasks.get(id))
    }
}

/// The state of a decision over calls. The caller passes the same calls to each method, and may
/// append more.
#[derive(Debug)]
pub(crate) struct Decision {
    /// The next write: the call's index, and the write's index in it.
    at: (usize, usize),
    /// No write between `at` and this one claims: the search for a claim continues here.
    no_claim_before: (usize, usize),
    /// The state after the writes that are decided.
    state: State,
    /// The outcomes so far, by call.
    outcomes: Vec<Vec<Outcome>>,
    /// The entries of the log so far.
    log: Vec<(i64, i64, String)>,
    /// The first entry of the log to keep.
    forget_before: i64,
    /// The number of notifications, and the last new task, that [`Self::settled`] has examined.
    seen: (usize, i64),
}

impl Decision {
    /// Begins a decision. Nothing is decided yet.
    pub(in crate::postgres) fn new(before: &State, now: Now) -> Self {
        let mut state = before.clone();
        state.now = now;
        // Most loaded tasks change.
        state.changes.reserve(state.tasks.loaded_count());
        let seen = (state.notifications.len(), state.last_task);
        Self {
            at: (0, 0),
            no_claim_before: (0, 0),
            state,
            outcomes: Vec::new(),
            log: Vec::new(),
            forget_before: 0,
            seen,
        }
    }

    /// Decides at most `writes` more writes, and stops before a claim unless that is the first one.
    /// Returns true if writes are left.
    pub(crate) fn advance(&mut self, calls: &[&[Write]], mut writes: usize) -> Result<bool> {
        let mut is_first = true;
        while let Some(call) = calls.get(self.at.0) {
            let left = call.get(self.at.1..).unwrap_or_default();
            // A claim takes long, so the rows that are final before it are sent first.
            let most = left.iter().skip(usize::from(is_first)).take(writes).take_while(|write| !claims(write)).count();
            let (now, later) = left.split_at(left.len().min(writes).min(most + usize::from(is_first)));
            is_first &= now.is_empty();
            if self.outcomes.len() == self.at.0 {
                self.outcomes.push(Vec::with_capacity(call.len()));
            }
            let state = &mut self.state;
            let outcomes = now.iter().map(|write| state.write(write.clone()).unwrap_or_else(Outcome::Refused));
            if let Some(all) = self.outcomes.last_mut() {
                all.extend(outcomes);
            }
            writes -= now.len();
            if !later.is_empty() {
                self.at.1 += now.len();
                return Ok(true);
            }
            self.end_call()?;
        }
        Ok(false)
    }

    /// Returns true if the next write claims, for which it needs the waiting tasks.
    pub(in crate::postgres) fn claims_next(&self, calls: &[&[Write]]) -> bool {
        self.next(calls).is_some_and(claims)
    }

    /// Returns true if everything is decided.
    pub(crate) fn is_over(&self, calls: &[&[Write]]) -> bool {
        self.next(calls).is_none()
    }

    /// Returns the next write. Calls without writes are skipped.
    fn next<'c>(&self, calls: &[&'c [Write]]) -> Option<&'c Write> {
        let (call, write) = self.at;
        let left = calls.get(call..).unwrap_or_default();
        let of_call =
            |(at, call): (usize, &&'c [Write])| call.get(if at == 0 { write } else { 0 }..).unwrap_or_default();
        left.iter().enumerate().map(of_call).find_map(<[Write]>::first)
    }

    /// Returns whether no claim is left to be decided, so that the new rows are final.
    ///
    /// It is called after every few writes of a call with thousands, so it examines each write only
    /// once.
    pub(in crate::postgres) fn is_behind_claims(&mut self, calls: &[&[Write]]) -> bool {
        let (mut call, mut write) = self.at.max(self.no_claim_before);
        while let Some(writes) = calls.get(call) {
            let left = writes.get(write..).unwrap_or_default();
            if let Some(ahead) = left.iter().position(claims) {
                self.no_claim_before = (call, write + ahead);
                return false;
            }
            (call, write) = (call + 1, 0);
        }
        self.no_claim_before = (call, write);
        true
    }

    /// Adopts the coverage of a working set whose rows are all in this decision's state.
    pub(in crate::postgres) fn adopt_coverage(&mut self, working_set: &WorkingSet) {
        self.state.tasks.coverage = working_set.state().tasks.coverage.clone();
    }

    /// Continues with the rows that were added in the meantime. Returns false if an earlier write
    /// may have needed them without a recorded request, as for relations. Then the calls must be
    /// decided again from the beginning.
    pub(in crate::postgres) fn resume_over(&mut self, working_set: &mut WorkingSet) -> bool {
        let loaded_meanwhile = working_set.take_loaded_meanwhile();
        loaded_meanwhile.tasks.into_iter().for_each(|task| self.state.tasks.insert_shared(task));
        self.state.keys.taken.extend(loaded_meanwhile.keys);
        self.adopt_coverage(working_set);
        !loaded_meanwhile.is_related
    }

    /// Ends a call: its changes become one entry of the log.
    fn end_call(&mut self) -> Result<()> {
        self.at = (self.at.0 + 1, 0);
        let state = &mut self.state;
        // The newest entry from before this call is always kept.
        self.forget_before = self.forget_before.max(std::mem::take(&mut state.forget_before).min(state.entry - 1));
        if !state.changes.is_empty() {
            self.log.push((state.entry, state.last_task + 1, encode(&state.changes)?));
            state.changes.clear();
            state.entry += 1;
        }
        Ok(())
    }

    /// Returns the rows of tasks that have ended so far, and with `with_new` those of new tasks,
    /// which are final only if no claim follows.
    ///
    /// These rows are unlikely to change again; one that does is written a second time. Returns
    /// `None` if there are none, or if a request is open: then everything decided so far is void.
    pub(crate) fn settled(
        &mut self,
        working_set: &WorkingSet,
        written: &mut SentTasks,
        with_new: bool,
    ) -> Result<Option<ChangeSet>> {
        if working_set.has_requests() {
            return Ok(None);
        }
        let (mut change_set, mut candidates) = (ChangeSet::default(), ColumnarCandidates::new());
        let count = written.tasks.len();
        for notification in self.state.notifications.get(self.seen.0..).unwrap_or_default() {
            let (TaskNotification::Completed { task: id, .. } | TaskNotification::Ended { task: id }) = notification
            else {
                continue;
            };
            let (before, task) = (working_set.state().tasks.share(*id), self.state.tasks.share(*id));
            if let (Some(before), Some(task)) = (before, task)
                && !written.tasks.contains_key(id)
                && change_set.accept_end(before, task, &mut candidates)?
            {
                written.tasks.insert(*id, Arc::clone(task));
            }
        }
        self.seen.0 = self.state.notifications.len();
        if with_new {
            for task in (self.seen.1 + 1..=self.state.last_task).filter_map(|id| self.state.tasks.share(TaskId(id))) {
                if !written.tasks.contains_key(&task.id) && change_set.accept_new(task, &mut candidates)? {
                    written.tasks.insert(task.id, Arc::clone(task));
                    written.new.push(task.id);
                }
            }
            self.seen.1 = self.state.last_task;
        }
        change_set.add_columnar(candidates)?;
        Ok((written.tasks.len() > count).then_some(change_set))
    }

    /// Returns the effects of all calls, or the requests that must be loaded before they are known.
    pub(crate) fn end(self, working_set: &WorkingSet) -> Covered<Applied> {
        let requests = working_set.take_requests();
        if !requests.is_empty() {
            return Err(requests);
        }
        let Self { mut state, outcomes, log, forget_before, .. } = self;
        let hint = Hint { work: state.hint.work.saturating_sub(working_set.state().hint.work), ..state.hint };
        let notifications = std::mem::take(&mut state.notifications);
        Ok(Applied { outcomes, hint, notifications, stamp: stamp(&state), log, forget_before, after: state })
    }
}

/// Returns true if a write claims or removes tasks.
fn claims(write: &Write) -> bool {
    claimed_by(std::slice::from_ref(write)) > 0
}
