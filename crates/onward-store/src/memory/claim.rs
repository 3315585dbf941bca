//! Handing tasks to sessions.

use std::collections::BTreeMap;

use super::state::State;
use super::task::Task;
use crate::event::Change;
use crate::limits;
use crate::name::Name;
use crate::outcome::{Claimed, Outcome, Refusal};
use crate::task::{ClaimedTask, SessionId, TaskId, TaskRecord, TaskState};
use crate::timestamp::Timestamp;
use crate::write::{Claim, KindSelection, QueueSelection, Scope};

impl State {
    pub(super) fn claim(&mut self, claim: &Claim) -> Result<Outcome, Refusal> {
        // Before the sweep: a live process that was only late does not lose its own leases by asking for work.
        self.renew(claim.session);
        self.sweep();
        self.open(claim.session)?;
        let tasks = self.take(claim);
        Ok(Outcome::Claimed(Claimed { tasks, cancel: self.to_cancel(claim.session), next_due: self.next_due() }))
    }

    fn take(&mut self, claim: &Claim) -> Vec<ClaimedTask> {
        let now = self.now.wall;
        let mut wanted = Wanted::by(claim);
        let mut tasks = Vec::new();
        let mut place = None;
        while tasks.len() < claim.limit.min(limits::CLAIM)
            && let Some((next, task)) = self.tasks.waiting_behind(place)
        {
            place = Some(next);
            if !wanted.wants(task) || self.is_paused(task) {
                continue;
            }
            if task.has_expired(now) {
                self.end(task.id, TaskState::Expired);
                continue;
            }
            wanted.took(&task.new.queue);
            tasks.extend(self.start(task.id, claim.session));
        }
        tasks
    }

    /// Begins an attempt under a new lease.
    pub(super) fn start(&mut self, id: TaskId, session: SessionId) -> Option<ClaimedTask> {
        let now = self.now.wall;
        self.tasks.change(id, |task| task.start(session, now));
        let task = self.tasks.get(id)?;
        let claimed = task.claimed(task.lease()?);
        self.log(id, Change::Started { attempt: claimed.attempt });
        Some(claimed)
    }

    fn is_paused(&self, task: &Task) -> bool {
        let scopes = [Scope::All, Scope::Queue(task.new.queue.clone()), Scope::Kind(task.new.kind.clone())];
        scopes.iter().any(|scope| self.pauses.contains_key(scope))
    }

    /// What [`take`](Self::take) would hand out first.
    pub(super) fn peek(&self, claim: &Claim, now: Timestamp) -> Option<TaskRecord> {
        let wanted = Wanted::by(claim);
        let mut place = None;
        while let Some((next, task)) = self.tasks.waiting_behind(place) {
            if wanted.wants(task) && !self.is_paused(task) && !task.has_expired(now) {
                return Some(task.record(true));
            }
            place = Some(next);
        }
        None
    }
}

/// What a claim still wants.
struct Wanted<'a> {
    kinds: &'a KindSelection,
    /// How many more from each queue; `None` for any number from every queue.
    queues: Option<BTreeMap<&'a Name, usize>>,
}

impl<'a> Wanted<'a> {
    fn by(claim: &'a Claim) -> Self {
        let queues = match &claim.queues {
            QueueSelection::All => None,
            QueueSelection::Only(queues) => {
                let mut left = BTreeMap::<&Name, usize>::new();
                for (queue, limit) in queues {
                    let left = left.entry(queue).or_default();
                    *left = left.saturating_add(*limit);
                }
                Some(left)
            }
        };
        Self { kinds: &claim.kinds, queues }
    }

    fn wants(&self, task: &Task) -> bool {
        let of_kind = match self.kinds {
            KindSelection::All => true,
            KindSelection::Only(kinds) => kinds.contains(&task.new.kind),
        };
        of_kind && self.queues.as_ref().is_none_or(|left| left.get(&task.new.queue).is_some_and(|left| *left > 0))
    }

    fn took(&mut self, queue: &Name) {
        if let Some(left) = self.queues.as_mut().and_then(|left| left.get_mut(queue)) {
            *left -= 1;
        }
    }
}
