//! Limits that tasks of other sub-queues can use up before a task starts.

use std::collections::BTreeSet;
use std::iter;

use crate::api::limit::LimitScope;
use crate::api::name::Name;
use crate::api::queue::{QueueChoice, QueueMode};
use crate::api::task::SessionId;
use crate::api::write::{Claim, QueueSelection};
use crate::bounds;
use crate::model::claims::candidates::Candidates;
use crate::model::limits::fair_share::TrialShares;
use crate::model::limits::headroom::Headroom;
use crate::model::state::{Now, State};
use crate::model::tasks::task::Task;

impl State {
    /// Returns the limit that other tasks can use up before a waiting task, the first of its
    /// sub-queue, starts. It looks at the claims of each session that may take other tasks: those
    /// that are reserved for it.
    pub(in crate::model) fn contended_limit(&self, task: &Task, now: Now) -> Option<LimitScope> {
        let mut headroom = Headroom::at(self, now.steady);
        if self.is_paused(task) || !headroom.is_limited() || !headroom.allows(self, task) {
            return None;
        }
        // No session has the number 0, so its claim takes no reserved task.
        let mut sessions = iter::once(SessionId(0)).chain(self.contending_sessions());
        sessions.find_map(|session| self.contended_by(session, task, now))
    }

    /// Returns the sessions that waiting tasks prefer by their affinity keys, by number: the first
    /// [`bounds::CONTENDING_SESSIONS`].
    fn contending_sessions(&self) -> impl Iterator<Item = SessionId> {
        let firsts = self.firsts_with_affinity();
        let preferred = firsts.filter_map(|(_, task)| self.affinities.get(task.new.affinity.as_ref()?));
        let sessions = preferred.map(|preferred| preferred.session);
        sessions.collect::<BTreeSet<_>>().into_iter().take(bounds::CONTENDING_SESSIONS)
    }

    /// Returns the limit that claims of a session can use up before a task starts: a claim of its
    /// queue, or one of all queues. In strict mode the order of queues is known. In the other modes
    /// tasks of other queues may start before or after those of its own queue. Of each group of
    /// queues it counts at most [`bounds::AHEAD`] tasks.
    fn contended_by(&self, session: SessionId, task: &Task, now: Now) -> Option<LimitScope> {
        let is_own = |queue: &&Name| **queue == task.new.queue;
        let (own, others): (Vec<&Name>, Vec<&Name>) = self.queues.iter().partition(is_own);
        let orders = if self.mode == QueueMode::Strict {
            [vec![own.clone()], vec![[own, others].concat()]]
        } else {
            [vec![own.clone(), others.clone()], vec![others, own]]
        };
        orders.iter().find_map(|order| {
            let mut left = (Headroom::at(self, now.steady), TrialShares::default());
            for queues in order {
                let claim = claim_of(session, queues);
                left = self.use_up(task, Candidates::of(self, &claim, now).on_trial(self, left));
            }
            left.0.exhausted(self, task)
        })
    }

    /// Starts candidates on trial, until the turn of a task or until a limit of the task is used
    /// up. Returns the headroom and the fair shares that are left.
    fn use_up(&self, task: &Task, mut candidates: Candidates<'_>) -> (Headroom, TrialShares) {
        for _ in 0..bounds::AHEAD {
            if !candidates.headroom.allows(self, task) {
                break;
            }
            match candidates.next(self) {
                Some(next) if next != task.id => candidates.took(self),
                _ => break,
            }
        }
        candidates.left()
    }
}

/// Returns a session's claim of all tasks of some queues, the heaviest queue first.
fn claim_of(session: SessionId, queues: &[&Name]) -> Claim {
    let choice = QueueChoice { mode: Some(QueueMode::Strict), ..QueueChoice::default() };
    let queues = queues.iter().map(|queue| ((*queue).clone(), usize::MAX)).collect();
    Claim { queues: QueueSelection::Only(queues), choice, ..Claim::any(session, usize::MAX) }
}
