//! Claims: giving tasks to sessions.

use std::time::Duration;

use crate::api::event::Change;
use crate::api::outcome::{Claimed, Outcome, Refusal};
use crate::api::queue::QueueTurn;
use crate::api::task::{ClaimedTask, SessionId, TaskId, TaskRecord, TaskState};
use crate::api::write::{Claim, Scope};
use crate::bounds;
use crate::model::claims::candidates::Candidates;
use crate::model::state::{Now, State};
use crate::model::tasks::task::Task;
use crate::rules;

impl State {
    /// Renews the session, applies due changes, and gives the session its next tasks. The outcome
    /// has the time at which the next claim may find more.
    pub(in crate::model) fn claim(&mut self, claim: &Claim) -> Result<Outcome, Refusal> {
        self.check_session(claim.session)?;
        // Renewed before the sweep, so that a live process that is late keeps its own leases.
        self.renew(claim.session);
        self.apply_due_changes();
        let (tasks, turn) = self.take(claim);
        let next_token = self.next_token(Some(claim));
        let next_aged = self.next_aged(claim, tasks.len());
        Ok(Outcome::Claimed(Claimed {
            tasks,
            cancel: self.to_cancel(claim.session),
            next_due: [self.next_due(), next_token, next_aged].into_iter().flatten().min(),
            next_token,
            next_aged,
            mode: claim.choice.mode.unwrap_or(self.mode),
            groups_share: self.are_shared(),
            turn,
            configuration: self.configuration,
            work_seen: self.hint.work,
        }))
    }

    /// Starts tasks until the limit of the claim is reached or no candidate has a head. An expired
    /// task ends here, and does not count as a turn.
    fn take(&mut self, claim: &Claim) -> (Vec<ClaimedTask>, QueueTurn) {
        let now = self.now.wall;
        let mut candidates = Candidates::of(self, claim, self.now);
        let most = claim.limit.min(bounds::CLAIM);
        let mut tasks = Vec::with_capacity(most.min(self.tasks.loaded_waiting_count()));
        while tasks.len() < most
            && let Some(id) = candidates.next(self)
        {
            if self.tasks.get(id).is_some_and(|task| task.has_expired(now)) {
                self.end(id, TaskState::Expired);
                // A follower or dependent of the expired task may now be the first task of another
                // candidate.
                candidates.look_again(self);
                continue;
            }
            if candidates.is_shared {
                self.charge(id);
            }
            self.note_preferred_session(id, claim.session);
            tasks.extend(self.start(id, claim.session));
            candidates.took(self);
        }
        let Candidates { headroom, choice, .. } = candidates;
        headroom.take_tokens(self);
        (tasks, choice.turn)
    }

    /// Returns the time until the first task ages enough for this claim. Returns `None` if the
    /// claim took as many tasks as it could, `taken`.
    fn next_aged(&self, claim: &Claim, taken: usize) -> Option<Duration> {
        let last = claim.last_sort_key(self.now.wall)?;
        if taken >= claim.limit.min(bounds::CLAIM) {
            return None;
        }
        let mut candidates = Candidates::of(self, claim, self.now);
        let mut sort_key = Some(last);
        while let Some((next, task)) = self.tasks.waiting_behind(sort_key) {
            if candidates.selects(task) && candidates.may_start(self, task) {
                candidates.require_behind(self, Some(next));
                return Some(rules::order::between(last, next));
            }
            sort_key = Some(next);
        }
        candidates.require_behind(self, None);
        None
    }

    /// Begins an attempt under a new lease. It takes no token. A claim takes the tokens of all its
    /// starts at its end, and a session may keep a failed task only if no rate applies to it.
    pub(in crate::model) fn start(&mut self, id: TaskId, session: SessionId) -> Option<ClaimedTask> {
        let now = self.now.wall;
        self.tasks.require_messages(id);
        self.tasks.change(id, |task| task.start(session, now));
        let task = self.tasks.get(id)?;
        let claimed = task.claimed(task.lease()?, self.settings_of(&task.new.queue).weight);
        self.log(id, Change::Started { attempt: claimed.attempt });
        Some(claimed)
    }

    /// Returns whether a pause covers a task: of everything, of its queue, its kind or its group.
    pub(in crate::model) fn is_paused(&self, task: &Task) -> bool {
        if self.pauses.is_empty() {
            return false;
        }
        let scopes = [Scope::All, Scope::Queue(task.new.queue.clone()), Scope::Kind(task.new.kind.clone())];
        let group = task.new.group.clone().map(Scope::Group);
        scopes.iter().chain(&group).any(|scope| self.pauses.contains_key(scope))
    }

    /// Returns the task that [`take`](Self::take) would take first.
    pub(crate) fn peek(&self, claim: &Claim, now: Now) -> Option<TaskRecord> {
        let mut candidates = Candidates::of(self, claim, now);
        while let Some(task) = candidates.next(self).and_then(|id| self.tasks.get(id)) {
            if !task.has_expired(now.wall) {
                return Some(task.record(true));
            }
            candidates.look_again(self);
        }
        None
    }
}
