//! Limits that tasks of other sub-queues can use up before a task starts.

use crate::api::limit::LimitScope;
use crate::api::name::Name;
use crate::api::queue::{QueueChoice, QueueMode};
use crate::api::task::SessionId;
use crate::api::write::{Claim, QueueSelection};
use crate::bounds;
use crate::model::claims::candidates::Candidates;
use crate::model::limits::headroom::Headroom;
use crate::model::state::{Now, State};
use crate::model::tasks::task::Task;

impl State {
    /// Returns the limit that other tasks can use up before a waiting task, the first of its
    /// sub-queue, starts. It counts the tasks that a claim takes before it from its queue, and then
    /// those of other queues that go first. In strict mode these are tasks of heavier queues, and
    /// earlier ones of equally heavy queues; in the other modes any. Of each it counts at most
    /// [`bounds::AHEAD`].
    pub(in crate::model) fn contended_limit(&self, task: &Task, now: Now) -> Option<LimitScope> {
        let mut headroom = Headroom::at(self, now.steady);
        if self.is_paused(task) || !headroom.is_limited() || !headroom.allows(self, task) {
            return None;
        }
        let own = claim_of(vec![(task.new.queue.clone(), usize::MAX)]);
        headroom = self.use_up(task, Candidates::of(self, &own, now), |_| true);
        if headroom.allows(self, task) {
            let others = self.queues.iter().filter(|queue| **queue != task.new.queue);
            let others = claim_of(others.map(|queue| (queue.clone(), usize::MAX)).collect());
            let candidates = Candidates::of(self, &others, now).with_headroom(self, headroom);
            headroom = self.use_up(task, candidates, |other| self.is_before_in_other_queue(other, task));
        }
        headroom.exhausted(self, task)
    }

    /// Returns whether a task of another queue may start before a task.
    fn is_before_in_other_queue(&self, other: &Task, task: &Task) -> bool {
        let weight = |task: &Task| self.settings_of(&task.new.queue).weight;
        let is_earlier = self.are_shared() || other.sort_key() < task.sort_key();
        self.mode != QueueMode::Strict || weight(other) > weight(task) || weight(other) == weight(task) && is_earlier
    }

    /// Starts candidates on trial, until the turn of a task or until a limit of the task is used
    /// up. Returns the headroom that is left.
    fn use_up(&self, task: &Task, mut candidates: Candidates<'_>, is_before: impl Fn(&Task) -> bool) -> Headroom {
        for _ in 0..bounds::AHEAD {
            if !candidates.headroom.allows(self, task) {
                break;
            }
            let Some(next) = candidates.next(self).and_then(|id| self.tasks.get(id)) else { break };
            if next.id == task.id || !is_before(next) {
                break;
            }
            candidates.took(self);
        }
        candidates.headroom
    }
}

/// Returns a claim of all tasks of some queues, the heaviest queue first.
fn claim_of(queues: Vec<(Name, usize)>) -> Claim {
    let choice = QueueChoice { mode: Some(QueueMode::Strict), ..QueueChoice::default() };
    // No session has the number 0, so tasks that are reserved for one are left out.
    Claim { queues: QueueSelection::Only(queues), choice, ..Claim::any(SessionId(0), usize::MAX) }
}
