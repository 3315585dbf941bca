//! Calls that are decided step by step, so that what is settled of them can be written while the
//! rest is decided.

use std::sync::Arc;

use crate::api::error::Result;
use crate::api::notification::TaskNotification;
use crate::api::outcome::Outcome;
use crate::api::task::TaskId;
use crate::api::write::Write;
use crate::model::{Now, State, Task};
use crate::number_map::NumberMap;
use crate::postgres::working_set::applied::{Applied, claimed_by};
use crate::postgres::working_set::applied::{Covered, stamp};
use crate::postgres::working_set::change_set::{ChangeSet, ColumnarCandidates};
use crate::postgres::working_set::contents::WorkingSet;
use crate::postgres::working_set::log_entry::encode;

/// Tasks whose rows were written before everything was decided, as they were written.
#[derive(Debug, Default)]
pub(crate) struct SentTasks {
    tasks: NumberMap<TaskId, Arc<Task>>,
    /// Those of them that did not exist before.
    new: Vec<TaskId>,
}

impl SentTasks {
    /// Whether there are tasks among them that did not exist before.
    pub(in crate::postgres) fn has_new(&self) -> bool {
        !self.new.is_empty()
    }

    pub(in crate::postgres) fn get(&self, id: TaskId) -> Option<&Arc<Task>> {
        self.tasks.get(&id)
    }

    pub(super) fn new_tasks(&self) -> impl Iterator<Item = &Arc<Task>> {
        self.new.iter().filter_map(|id| self.tasks.get(id))
    }
}

/// Calls of which the first writes are decided. Who has them decided names the same calls each
/// time, and may add more behind them.
#[derive(Debug)]
pub(crate) struct Decision {
    /// The next write: of which call, and which of that.
    at: (usize, usize),
    /// No write between `at` and this one claims: the search for a claim continues here.
    no_claim_before: (usize, usize),
    state: State,
    outcomes: Vec<Vec<Outcome>>,
    log: Vec<(i64, i64, String)>,
    forget_before: i64,
    /// How much of the notifications has been looked at, and up to which number the new tasks.
    seen: (usize, i64),
}

impl Decision {
    /// Nothing is decided yet.
    pub(in crate::postgres) fn new(before: &State, now: Now) -> Self {
        let mut state = before.clone();
        state.now = now;
        // Something happens to most of what is loaded.
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

    /// Decides at most so many more writes, and no claim behind others; answers whether any are
    /// left then.
    pub(crate) fn advance(&mut self, calls: &[&[Write]], mut writes: usize) -> Result<bool> {
        let mut is_first = true;
        while let Some(call) = calls.get(self.at.0) {
            let left = call.get(self.at.1..).unwrap_or_default();
            // What was decided before a claim is sent before it, for a claim takes long.
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

    /// Whether the next write claims: it looks at what waits.
    pub(in crate::postgres) fn claims_next(&self, calls: &[&[Write]]) -> bool {
        self.next(calls).is_some_and(claims)
    }

    /// Whether everything is decided.
    pub(crate) fn is_over(&self, calls: &[&[Write]]) -> bool {
        self.next(calls).is_none()
    }

    fn next<'c>(&self, calls: &[&'c [Write]]) -> Option<&'c Write> {
        let (call, write) = self.at;
        let left = calls.get(call..).unwrap_or_default();
        let of_call =
            |(at, call): (usize, &&'c [Write])| call.get(if at == 0 { write } else { 0 }..).unwrap_or_default();
        left.iter().enumerate().map(of_call).find_map(<[Write]>::first)
    }

    /// Returns whether no claim is left to be decided: what is new stays as it is.
    ///
    /// Looks at each write once in all: it is asked again after every few writes, and a call has
    /// thousands.
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

    /// Knows from now on what a part of the store knows, of which everything that is here was
    /// taken.
    pub(in crate::postgres) fn adopt_coverage(&mut self, working_set: &WorkingSet) {
        self.state.tasks.coverage = working_set.state().tasks.coverage.clone();
    }

    /// Goes on over what was loaded meanwhile. Answers whether that can be: not where what has come
    /// may have been looked for already without a note of it, as who has to do with whom; then
    /// everything is to be decided again.
    pub(in crate::postgres) fn resume_over(&mut self, working_set: &mut WorkingSet) -> bool {
        let loaded_meanwhile = working_set.take_loaded_meanwhile();
        loaded_meanwhile.tasks.into_iter().for_each(|task| self.state.tasks.insert_shared(task));
        self.state.keys.taken.extend(loaded_meanwhile.keys);
        self.adopt_coverage(working_set);
        !loaded_meanwhile.is_related
    }

    fn end_call(&mut self) -> Result<()> {
        self.at = (self.at.0 + 1, 0);
        let state = &mut self.state;
        // The newest entry of before stays.
        self.forget_before = self.forget_before.max(std::mem::take(&mut state.forget_before).min(state.entry - 1));
        if !state.changes.is_empty() {
            self.log.push((state.entry, state.last_task + 1, encode(&state.changes)?));
            state.changes.clear();
            state.entry += 1;
        }
        Ok(())
    }

    /// Rows of tasks that have ended by now, and `with_new` of new ones, as where no claim follows:
    /// they are likely to stay as they are, and what changes all the same is written once more.
    /// None where anything that was decided so far has to be decided again.
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

    /// What came of all of it, or what is to be loaded before that can be said.
    pub(crate) fn end(self, working_set: &WorkingSet) -> Covered<Applied> {
        let requests = working_set.take_requests();
        if !requests.is_empty() {
            return Err(requests);
        }
        let Self { mut state, outcomes, log, forget_before, .. } = self;
        let (hint, notifications) = (state.hint, std::mem::take(&mut state.notifications));
        Ok(Applied { outcomes, hint, notifications, stamp: stamp(&state), log, forget_before, after: state })
    }
}

fn claims(write: &Write) -> bool {
    claimed_by(std::slice::from_ref(write)) > 0
}
