//! Affinity: the session that each affinity key prefers, and the tasks reserved for it.

use std::time::Duration;

use crate::api::outcome::{Outcome, Refusal};
use crate::api::task::{SessionId, TaskId};
use crate::api::timestamp::Timestamp;
use crate::model::state::State;
use crate::model::tasks::sub_queue::SubQueue;
use crate::model::tasks::task::Task;
use crate::rules;

/// The session that an affinity key prefers.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
pub(crate) struct PreferredSession {
    pub(in crate::model) session: SessionId,
    /// The time of a recent start of one of its tasks, which not every start changes.
    noted_at: Timestamp,
}

/// Returns the sub-queue of a task that has an affinity key.
pub(super) fn affinity_sub_queue_of(task: &Task) -> Option<SubQueue> {
    task.new.affinity.as_ref().map(|_| SubQueue::of(task))
}

impl State {
    /// Records that a session starts a task, so that it is preferred for the task's affinity key.
    pub(in crate::model) fn note_preferred_session(&mut self, id: TaskId, session: SessionId) {
        let now = self.now.wall;
        let Some(affinity_key) = self.tasks.get(id).and_then(|task| task.new.affinity.clone()) else { return };
        let noted = self.affinities.get(&affinity_key).filter(|noted| noted.session == session);
        if noted.is_none_or(|noted| rules::affinity::must_store_start(noted.noted_at, now)) {
            self.affinities.insert(affinity_key, PreferredSession { session, noted_at: now });
        }
    }

    /// Stops preferring a session that is about to close, so that no task waits for it.
    pub(in crate::model) fn retire(&mut self, session: SessionId) -> Result<Outcome, Refusal> {
        self.check_session(session)?;
        self.forget_preferred_session(session);
        Ok(Outcome::Done)
    }

    /// Removes a session from every affinity key that prefers it.
    pub(in crate::model) fn forget_preferred_session(&mut self, session: SessionId) {
        let before = self.affinities.len();
        self.affinities.retain(|_, preferred| preferred.session != session);
        if self.affinities.len() < before {
            self.hint_work();
        }
    }

    /// Forgets the preferred sessions of affinity keys without a recent start.
    pub(in crate::model) fn forget_affinities(&mut self) {
        let now = self.now.wall;
        self.affinities.retain(|_, preferred| !rules::affinity::is_forgotten(preferred.noted_at, now));
    }

    /// Returns the session for which the sub-queue of a waiting task is reserved, and the end of
    /// the reservation.
    pub(in crate::model) fn reservation(&self, task: &Task, now: Timestamp) -> Option<(SessionId, Timestamp)> {
        self.affinities.get(task.new.affinity.as_ref()?)?;
        self.tasks.require_every_sub_queue();
        self.reservation_of(self.tasks.first_with_affinity(&SubQueue::of(task))?, now)
    }

    /// Returns the session for which a sub-queue is reserved, and the end of the reservation, by
    /// its first task.
    fn reservation_of(&self, first: &Task, now: Timestamp) -> Option<(SessionId, Timestamp)> {
        let preferred = self.affinities.get(first.new.affinity.as_ref()?)?;
        let wait = self.settings_of(&first.new.queue).affinity_wait;
        let until = rules::affinity::reserved_until(first.run_at, wait);
        (!wait.is_zero() && now < until).then_some((preferred.session, until))
    }

    /// Returns each sub-queue that is reserved, with its first task, the session and the end of the
    /// reservation.
    pub(super) fn reservations(
        &self,
        now: Timestamp,
    ) -> impl Iterator<Item = (&SubQueue, &Task, (SessionId, Timestamp))> {
        let reserved = move |(sub_queue, first)| Some((sub_queue, first, self.reservation_of(first, now)?));
        self.firsts_with_affinity().filter_map(reserved)
    }

    /// Returns the first task of each sub-queue of an affinity key.
    pub(super) fn firsts_with_affinity(&self) -> impl Iterator<Item = (&SubQueue, &Task)> {
        if !self.affinities.is_empty() {
            self.tasks.require_every_sub_queue();
        }
        self.tasks.firsts_with_affinity()
    }

    /// Returns the time until the first reservation ends. Sub-queues of blocked groups do not
    /// count, because they wait for their group first.
    pub(in crate::model) fn next_reservation_end(&self) -> Option<Duration> {
        let blocked = |task: &Task| self.is_group_blocked(task, self.now.steady);
        let may_start = self.reservations(self.now.wall).filter(|(_, first, _)| !blocked(first));
        may_start.map(|(_, _, (_, until))| until).min().map(|until| until - self.now.wall)
    }
}
