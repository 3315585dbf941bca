//! Sweeps: the changes that time alone causes.

use std::time::Duration;

use crate::api::event::Change;
use crate::api::outcome::Swept;
use crate::api::task::{SessionId, TaskId, TaskState};
use crate::bounds;
use crate::model::claims::session::Session;
use crate::model::state::State;
use crate::rules;
use crate::rules::attempt::{self, AfterAttempt};

impl State {
    /// Applies due changes. Returns their numbers, and the time until the next one.
    pub(super) fn sweep(&mut self) -> Swept {
        let (due, expired, lost) = self.apply_due_changes();
        let next = [self.next_due(), self.next_token(None)];
        Swept { due, expired, lost, next_due: next.into_iter().flatten().min() }
    }

    /// Applies due changes. Returns the number of tasks that became due, that expired, and that
    /// were taken back from lapsed sessions.
    pub(super) fn apply_due_changes(&mut self) -> (u64, u64, u64) {
        self.end_pauses();
        self.forget_affinities();
        let due = self.promote();
        self.forget_sessions();
        let lost = self.reclaim_lapsed();
        self.fail_overdue();
        // Last, because a task that was taken back may have expired, and a claim must not find it.
        let expired = self.expire();
        let batches = self.close_ready_batches();
        self.propagate_ends();
        (due + batches, expired, lost)
    }

    /// Makes due scheduled tasks wait, at most [`bounds::SWEEP`] of them.
    fn promote(&mut self) -> u64 {
        let now = self.now.wall;
        let due = self.tasks.scheduled().take_while(|(run_at, _)| *run_at <= now).take(bounds::SWEEP);
        let due: Vec<TaskId> = due.map(|(_, id)| id).collect();
        for id in &due {
            self.tasks.change(*id, |task| task.state = TaskState::Waiting);
            self.hint_work();
        }
        due.len() as u64
    }

    /// Ends tasks whose expiry has passed, at most [`bounds::SWEEP`] of them. An item of a batch
    /// that has started never expires.
    fn expire(&mut self) -> u64 {
        let now = self.now.wall;
        let over = self.tasks.expiring().take_while(|(at, _)| *at <= now).take(bounds::SWEEP);
        let over: Vec<TaskId> = over.map(|(_, id)| id).collect();
        let mut expired = 0;
        for id in over {
            if !self.clear_expiry_if_started(id) {
                self.end(id, TaskState::Expired);
                expired += 1;
            }
        }
        expired
    }

    /// Forgets sessions that lapsed long ago and hold no task.
    fn forget_sessions(&mut self) {
        let now = self.now.steady;
        // A partly loaded store must load the tasks of a session, so only sessions that lapsed long
        // ago are checked.
        let is_forgotten = |(id, session): &(&SessionId, &Session)| {
            rules::session::is_forgotten(session.lease_until, false, now) && !self.tasks.holds_any(**id)
        };
        let forgotten = self.sessions.iter().filter(is_forgotten).take(bounds::SWEEP);
        let forgotten: Vec<SessionId> = forgotten.map(|(id, _)| *id).collect();
        for session in forgotten {
            self.forget_session(session);
        }
    }

    /// Takes back the tasks of lapsed sessions, at most [`bounds::SWEEP`] of them. Returns their
    /// number.
    fn reclaim_lapsed(&mut self) -> u64 {
        let mut taken = 0;
        for session in self.lapsed() {
            let mut held = self.held_ids(session);
            let all = held.len();
            held.truncate(bounds::SWEEP - taken);
            for task in &held {
                self.lose_lease(*task, session);
            }
            taken += held.len();
            if held.len() == all {
                self.forget_session(session);
            }
        }
        taken as u64
    }

    /// Returns the sessions whose lease has passed and that still run tasks.
    fn lapsed(&self) -> Vec<SessionId> {
        let is_lapsed = |id: SessionId, lease_until| {
            let may_have_lapsed = rules::session::has_lapsed(lease_until, true, self.now.steady);
            may_have_lapsed && self.tasks.holds_any(id)
        };
        let lapsed = self.sessions.iter().filter(|(id, session)| is_lapsed(**id, session.lease_until));
        lapsed.map(|(id, _)| *id).collect()
    }

    /// Takes a task back from a session that has lapsed.
    fn lose_lease(&mut self, id: TaskId, session: SessionId) {
        let now = self.now.wall;
        let Some(task) = self.tasks.get(id) else { return };
        let after = attempt::lease_lost(task.cancel_requested, task.lost, task.attempts, now);
        self.tasks.change(id, |task| {
            task.push_error(now, rules::errors::lost_lease(session));
            task.lost = task.lost.saturating_add(1);
        });
        match after {
            AfterAttempt::End(state) => self.end_attempt(id, state),
            AfterAttempt::Again { attempts, .. } | AfterAttempt::Hold { attempts } => {
                self.log(id, Change::LeaseLost);
                self.wait_for(id, now, attempts);
            }
        }
    }

    /// Returns the time until the next change that time alone causes, without tokens.
    pub(super) fn next_due(&self) -> Option<Duration> {
        let run = self.tasks.scheduled().next().map(|(at, _)| at);
        let expiry = self.tasks.expiring().next().map(|(at, _)| at);
        let pause = self.pauses.values().flatten().min().copied();
        let wall = [run, expiry, pause, self.next_overdue(), self.next_ready_batch()]
            .into_iter()
            .flatten()
            .min()
            .map(|at| attempt::until(at, self.now.wall));
        let unpropagated_ends = self.dependencies.has_unpropagated_ends().then_some(Duration::ZERO);
        [wall, self.next_lapse(), unpropagated_ends, self.next_reservation_end()].into_iter().flatten().min()
    }

    /// Returns the time until the first session that runs tasks lapses.
    fn next_lapse(&self) -> Option<Duration> {
        let mut first: Option<Duration> = None;
        for (id, session) in &self.sessions {
            // Only a session that would be the first is checked for tasks.
            if first.is_none_or(|first| session.lease_until < first) && self.tasks.holds_any(*id) {
                first = Some(session.lease_until);
            }
        }
        first.map(|first| first.saturating_sub(self.now.steady))
    }
}
