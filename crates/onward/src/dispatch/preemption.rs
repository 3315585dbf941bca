//! Preemption: running tasks give way to more urgent ones.
//!
//! While every slot is taken and something may wait, the dispatcher peeks at the task that it would
//! claim next. If that task is urgent, the dispatcher claims it, which makes certain that neither a
//! limit nor another engine has it. It then asks a running task to stop, and the urgent task starts
//! in the slot that becomes free. The preempted task is released when its handler has ended, and
//! not before.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use onward_store::{Priority, StoreReads, TaskId};

use super::dispatcher::Dispatcher;
use crate::bounds;
use crate::error::Result;
use crate::handlers::{Attempt, Interruption};
use crate::limits::Preemption;

/// The state between two looks for urgent tasks.
#[derive(Debug, Default)]
pub(super) struct PreemptionState {
    /// True if an urgent task may have arrived.
    must_check: bool,
    /// True if the task that would be claimed next is urgent, and a running one can give way to it.
    pub(super) must_claim: bool,
    /// The earliest time of the next look at the store, in steady time.
    next_check: Duration,
    /// The time for which a look is scheduled.
    pub(super) wake_at: Option<Duration>,
    /// The number of preemptions of each task that has not ended.
    preempted: BTreeMap<TaskId, u32>,
}

impl PreemptionState {
    /// Records that an urgent task may have arrived.
    pub(super) fn recheck(&mut self) {
        self.must_check = true;
    }

    /// Records that a task has ended.
    pub(super) fn forget(&mut self, task: TaskId) {
        self.preempted.remove(&task);
    }

    fn count(&mut self, task: TaskId) {
        *self.preempted.entry(task).or_default() += 1;
        if self.preempted.len() > bounds::PREEMPTED_TASKS {
            self.preempted.pop_first();
        }
    }

    fn may_give_way(&self, task: TaskId) -> bool {
        self.preempted.get(&task).is_none_or(|times| *times < bounds::PREEMPTIONS)
    }
}

/// A running task that may be asked to give way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Candidate {
    task: TaskId,
    priority: Priority,
    /// In steady time; `None` if it is just about to start.
    started: Option<Duration>,
}

/// Returns the running tasks to preempt. Each waiting task needs one, except for as many as slots
/// are already becoming free. The most urgent waiting tasks are served first. The least urgent
/// running task gives way first, and among equals the one that started last.
fn victims(
    policy: Preemption,
    mut running: Vec<Candidate>,
    stopping: usize,
    mut waiting: Vec<Priority>,
) -> Vec<TaskId> {
    running.sort_unstable_by_key(|it| (it.priority, Reverse(it.started.unwrap_or(Duration::MAX)), Reverse(it.task)));
    waiting.sort_unstable_by_key(|priority| Reverse(*priority));
    // `stopping` slots are already becoming free, so the most urgent waiting tasks get those.
    let pairs = running.iter().zip(waiting.into_iter().skip(stopping));
    pairs.take_while(|(it, urgent)| policy.gives_way(it.priority, *urgent)).map(|(it, _)| it.task).collect()
}

impl Dispatcher {
    /// Preempts less urgent tasks if preemption is enabled and every slot is taken.
    pub(super) async fn preempt_if_needed(&mut self) -> Result<()> {
        let Some(policy) = self.run.inner.settings.preemption else { return Ok(()) };
        self.preemption.wake_at = None;
        self.read_hint();
        let now = self.now();
        if !self.preemption.must_check || self.preemption.must_claim || !self.is_full(now) {
            return Ok(());
        }
        let running = self.run.state.running();
        // Buffered tasks are claimed already, so the store need not be read for them.
        if self.preempt(policy, &running, self.run.state.buffered_priorities()) {
            return Ok(());
        }
        if !self.has_victim(policy, &running, Priority::URGENT) {
            self.preemption.must_check = false;
            return Ok(());
        }
        if now < self.preemption.next_check {
            self.preemption.wake_at = Some(self.preemption.next_check);
            return Ok(());
        }
        self.check_for_urgent(policy, &running, now).await
    }

    /// Returns true if every slot is taken and nothing more would be claimed ahead of them.
    fn is_full(&mut self, now: Duration) -> bool {
        let occupancy = self.run.state.occupancy();
        self.session.is_some()
            && !self.shutdown.is_stopping()
            && occupancy.running >= self.run.inner.settings.concurrency
            && self.claim_limit(occupancy, now) == 0
            && self.deadlines.may_write(now)
    }

    async fn check_for_urgent(&mut self, policy: Preemption, running: &[Arc<Attempt>], now: Duration) -> Result<()> {
        let Some(session) = self.session else { return Ok(()) };
        self.preemption.must_check = false;
        self.preemption.next_check = now.saturating_add(bounds::PREEMPTION_INTERVAL);
        let next = match self.run.inner.store.peek(self.claim(session, 1)).await {
            Ok(next) => next,
            Err(error) if error.is_transient() => {
                tracing::warn!(%error, "the store could not be read; no task gives way until the next check");
                self.preemption.must_check = true;
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        };
        self.preemption.must_claim = next.is_some_and(|next| self.has_victim(policy, running, next.priority));
        Ok(())
    }

    /// Asks running tasks to stop for urgent ones in the buffer, and returns true if it asked any.
    fn preempt(&mut self, policy: Preemption, running: &[Arc<Attempt>], waiting: Vec<Priority>) -> bool {
        if waiting.iter().all(|priority| *priority < policy.from) {
            return false;
        }
        let stopping = running.iter().filter(|attempt| attempt.interruption().is_some()).count();
        let victims = victims(policy, self.candidates(running), stopping, waiting);
        for attempt in running.iter().filter(|attempt| victims.contains(&attempt.id())) {
            let (task, kind) = (attempt.id().0, attempt.task.kind.as_str());
            tracing::info!(task, kind, "the task is asked to give way to a more urgent one");
            self.run.inner.telemetry.preemptions.increment(1);
            self.preemption.count(attempt.id());
            attempt.interrupt(Interruption::Preempted);
        }
        !victims.is_empty()
    }

    fn has_victim(&self, policy: Preemption, running: &[Arc<Attempt>], waiting: Priority) -> bool {
        self.candidates(running).iter().any(|it| policy.gives_way(it.priority, waiting))
    }

    fn candidates(&self, running: &[Arc<Attempt>]) -> Vec<Candidate> {
        let may =
            |attempt: &&Arc<Attempt>| attempt.interruption().is_none() && self.preemption.may_give_way(attempt.id());
        let candidate = |attempt: &Arc<Attempt>| Candidate {
            task: attempt.id(),
            priority: attempt.task.priority,
            started: attempt.started(),
        };
        running.iter().filter(may).map(candidate).collect()
    }

    /// Returns the number of slots that are becoming free for buffered tasks.
    pub(super) fn slots_being_freed(&self) -> usize {
        if self.run.inner.settings.preemption.is_none() {
            return 0;
        }
        let running = self.run.state.running();
        running.iter().filter(|attempt| attempt.interruption() == Some(Interruption::Preempted)).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICY: Preemption = Preemption { from: Priority(200), levels: 64 };

    fn running(task: i64, priority: u8, started: u64) -> Candidate {
        Candidate { task: TaskId(task), priority: Priority(priority), started: Some(Duration::from_secs(started)) }
    }

    fn of(running: &[Candidate], stopping: usize, waiting: &[u8]) -> Vec<i64> {
        let waiting = waiting.iter().map(|priority| Priority(*priority)).collect();
        victims(POLICY, running.to_vec(), stopping, waiting).into_iter().map(|task| task.0).collect()
    }

    #[test]
    fn the_least_urgent_gives_way_and_of_equals_the_one_that_started_last() {
        assert_eq!(of(&[running(1, 128, 9), running(2, 64, 1), running(3, 64, 2)], 0, &[255]), [3]);
    }

    #[test]
    fn no_more_give_way_than_urgent_ones_wait() {
        assert_eq!(of(&[running(1, 0, 1), running(2, 0, 2), running(3, 0, 3)], 0, &[255, 128, 255]).len(), 2);
    }

    #[test]
    fn nothing_more_gives_way_for_a_task_that_gets_the_slot_of_another() {
        assert_eq!(of(&[running(1, 0, 1)], 1, &[255]), [0; 0]);
    }

    #[test]
    fn who_is_almost_as_urgent_goes_on() {
        assert_eq!(of(&[running(1, 137, 1)], 0, &[200]), [0; 0]);
        assert_eq!(of(&[running(1, 136, 1)], 0, &[200]), [1]);
    }
}
