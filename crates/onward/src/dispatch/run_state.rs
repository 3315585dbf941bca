//! The state that the dispatcher and the workers share: the buffer, the running attempts and the
//! ended attempts.

use std::sync::{Arc, MutexGuard};
use std::time::Duration;

use bytes::Bytes;
use onward_store::{AfterFailure, Clock, CompletionWait, Name, Priority, SessionId, TaskId};

use super::buffer::Buffer;
use super::claims::last_claim::StartOrder;
use super::claims::slot_time::SlotTime;
use super::hand_over::{HandOver, HasEnds};
use crate::handlers::{Attempt, ChildrenWait, Interruption};
use crate::orchestration::PlannedTurn;

/// The end of an attempt, to be written.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum AttemptEnd {
    Complete(Option<Bytes>),
    Fail {
        error: String,
        next: AfterFailure,
    },
    AwaitChildren(ChildrenWait),
    AwaitCompletion(CompletionWait),
    /// The task continues in another queue.
    Move(Name),
    Release,
    ConfirmCancel(String),
    /// The handler has completed the task in its own transaction: there is nothing to write.
    Finished,
}

/// An attempt that has ended and whose end is not durable yet.
#[derive(Debug)]
pub(crate) struct EndedAttempt {
    pub(crate) attempt: Arc<Attempt>,
    pub(crate) end: AttemptEnd,
    /// The turn that is written with the end.
    pub(crate) planned: Option<Box<PlannedTurn>>,
}

impl EndedAttempt {
    /// Returns an end that is written without a turn.
    pub(crate) fn alone(attempt: Arc<Attempt>, end: AttemptEnd) -> Self {
        Self { attempt, end, planned: None }
    }

    /// Returns the end of an attempt that is released without having started.
    pub(crate) fn released(attempt: Arc<Attempt>) -> Self {
        Self::alone(attempt, AttemptEnd::Release)
    }
}

/// The shared state of one engine's run. A worker takes its one lock once per attempt, to submit an
/// end and take its next task.
#[derive(Debug)]
pub(crate) struct RunState(HandOver<Slots>);

impl Default for RunState {
    fn default() -> Self {
        Self(HandOver::new(Slots::default()))
    }
}

impl HasEnds for Slots {
    type End = EndedAttempt;

    fn ends(&mut self) -> &mut Vec<EndedAttempt> {
        &mut self.ended
    }
}

#[derive(Debug, Default)]
struct Slots {
    buffer: Buffer,
    /// The attempt of each slot. It grows to the largest number of slots ever needed at once.
    slots: Vec<Option<Arc<Attempt>>>,
    /// The numbers of the free slots.
    free: Vec<usize>,
    ended: Vec<EndedAttempt>,
    counts: Counts,
    slot_time: SlotTime,
}

/// Counters of the run, which only grow.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Counts {
    /// Attempts that started.
    pub(crate) started: usize,
    /// Attempts that ended in a slot.
    pub(crate) ended: usize,
}

/// The contents of the slots and the buffer at one moment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Occupancy {
    pub(crate) running: usize,
    pub(crate) buffered: usize,
    pub(crate) ended: usize,
    pub(crate) counts: Counts,
    pub(crate) slot_time: SlotTime,
}

/// The result of buffering attempts.
#[derive(Debug)]
pub(crate) struct Added {
    /// The numbers of the slots for which workers should be started.
    pub(crate) slots: Vec<usize>,
    /// True if all of the attempts sort before something that was buffered.
    pub(crate) go_first: bool,
}

impl Occupancy {
    /// Returns true if nothing is buffered, running or waiting for its commit.
    pub(crate) fn is_empty(self) -> bool {
        self.running + self.buffered + self.ended == 0
    }
}

impl RunState {
    fn lock(&self) -> MutexGuard<'_, Slots> {
        self.0.lock()
    }

    pub(crate) fn occupancy(&self) -> Occupancy {
        self.lock().occupancy()
    }

    /// Buffers attempts at a steady time.
    pub(crate) fn add(
        &self,
        attempts: Vec<Arc<Attempt>>,
        order: StartOrder,
        concurrency: usize,
        now: Duration,
    ) -> Added {
        let mut state = self.lock();
        let last = state.buffer.last().map(|attempt| attempt.id());
        state.buffer.add(attempts, order);
        let go_first = last.is_some() && last == state.buffer.last().map(|attempt| attempt.id());
        Added { slots: state.take_slots(concurrency, now), go_first }
    }

    /// Returns a slot's first task, or frees the slot and returns `None` if other workers took all.
    pub(crate) fn first_attempt(&self, slot: usize, clock: &dyn Clock) -> Option<Arc<Attempt>> {
        let next = self.lock().next(slot, clock);
        if next.is_none() {
            // The dispatcher may have counted this slot as running and wait for nothing else.
            self.0.wake();
        }
        next
    }

    /// Submits the end of a slot's attempt and takes the slot's next task; `None` frees the slot.
    /// Also returns true if this call woke the dispatcher, so that the worker can yield to it.
    pub(crate) fn next_attempt(
        &self,
        slot: usize,
        ended: EndedAttempt,
        clock: &dyn Clock,
    ) -> (Option<Arc<Attempt>>, bool) {
        self.0.end(ended, |state| {
            state.counts.ended += 1;
            state.next(slot, clock)
        })
    }

    /// Wakes the dispatcher.
    pub(crate) fn wake(&self) {
        self.0.wake();
    }

    /// Submits ends of attempts that had no slot.
    pub(crate) fn add_ended(&self, ended: impl IntoIterator<Item = EndedAttempt>) {
        self.0.add(ended);
    }

    /// Takes all ended attempts.
    pub(crate) fn take_ended(&self) -> Vec<EndedAttempt> {
        self.0.take()
    }

    /// Puts back ends that could not be written, before those that came since.
    pub(crate) fn put_back_ended(&self, unwritten: Vec<EndedAttempt>) {
        self.0.put_back(unwritten);
    }

    /// Waits until an attempt has ended or progress was reported. Cancel-safe.
    pub(crate) async fn woken(&self) {
        self.0.woken().await;
    }

    /// Takes all attempts that have not started.
    pub(crate) fn clear_buffer(&self) -> Vec<Arc<Attempt>> {
        self.take_last(usize::MAX)
    }

    /// Takes the `count` buffered attempts that would start last.
    pub(crate) fn take_last(&self, count: usize) -> Vec<Arc<Attempt>> {
        self.lock().buffer.take_last(count)
    }

    /// Returns the priorities of the buffered tasks.
    pub(crate) fn buffered_priorities(&self) -> Vec<Priority> {
        self.lock().buffer.iter().map(|attempt| attempt.task.priority).collect()
    }

    /// Returns every attempt that a slot runs.
    pub(crate) fn running(&self) -> Vec<Arc<Attempt>> {
        self.lock().slots.iter().flatten().cloned().collect()
    }

    /// Asks every running attempt to stop.
    pub(crate) fn interrupt_all(&self, why: Interruption) {
        for attempt in self.running() {
            attempt.interrupt(why);
        }
    }

    /// Drops the tasks of a lapsed session: running attempts are asked to stop, buffered ones are
    /// dropped.
    pub(crate) fn drop_session(&self, session: SessionId) {
        for attempt in self.running().iter().filter(|attempt| attempt.task.lease.session == session) {
            attempt.interrupt(Interruption::SessionLost);
        }
        self.lock().buffer.retain(|attempt| attempt.task.lease.session != session);
    }

    /// Returns true if an attempt here has a lease of this session.
    pub(crate) fn holds(&self, session: SessionId) -> bool {
        let state = self.lock();
        let mut ended = state.ended.iter().map(|ended| &ended.attempt);
        ended.any(|it| it.task.lease.session == session)
            || state.slots.iter().flatten().any(|it| it.task.lease.session == session)
            || state.buffer.iter().any(|it| it.task.lease.session == session)
    }

    /// Cancels a task if it is here. A running attempt is asked to stop; a buffered one ends
    /// without having started.
    pub(crate) fn cancel(&self, task: TaskId) {
        let mut state = self.lock();
        let buffered = state.buffer.take(task);
        let running = state.slots.iter().flatten().find(|attempt| attempt.id() == task).cloned();
        drop(state);
        if let Some(attempt) = buffered {
            let end = AttemptEnd::ConfirmCancel("cancelled before it started".to_owned());
            self.add_ended([EndedAttempt::alone(attempt, end)]);
        }
        if let Some(attempt) = running {
            attempt.interrupt(Interruption::Cancelled);
        }
    }

    /// Records that a running task's progress changed, and wakes the dispatcher unless it was woken
    /// already.
    pub(crate) fn progressed(&self) {
        self.0.report_progress();
    }

    pub(crate) fn has_progressed(&self) -> bool {
        self.0.has_progress()
    }

    /// Returns the running attempts whose progress or output changed since it was saved.
    pub(crate) fn take_progressed(&self) -> Vec<Arc<Attempt>> {
        self.0.look_at_progress(|| {
            let mut running = self.running();
            running.retain(|attempt| attempt.progress.is_unsaved() || attempt.output.is_unsaved());
            running
        })
    }
}

impl Slots {
    fn running(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    fn occupancy(&self) -> Occupancy {
        Occupancy {
            running: self.running(),
            buffered: self.buffer.len(),
            ended: self.ended.len(),
            counts: self.counts,
            slot_time: self.slot_time,
        }
    }

    fn next(&mut self, slot: usize, clock: &dyn Clock) -> Option<Arc<Attempt>> {
        let next = self.buffer.take_first();
        if next.is_some() {
            self.counts.started += 1;
        } else {
            self.free.push(slot);
            self.slot_time.note(self.running(), clock.steady());
        }
        if let Some(entry) = self.slots.get_mut(slot) {
            entry.clone_from(&next);
        }
        next
    }

    fn take_slots(&mut self, concurrency: usize, now: Duration) -> Vec<usize> {
        let wanted = self.buffer.len().min(concurrency.saturating_sub(self.running()));
        let mut taken: Vec<usize> = Vec::with_capacity(wanted);
        while taken.len() < wanted {
            let slot = self.free.pop().unwrap_or_else(|| {
                self.slots.push(None);
                self.slots.len() - 1
            });
            taken.push(slot);
        }
        self.slot_time.note(self.running(), now);
        taken
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;
    use onward_store::ManualClock;

    use super::*;
    use crate::handlers::attempt::tests::attempt;

    #[test]
    fn a_slot_that_finds_nothing_to_run_wakes_the_dispatcher() {
        let state = RunState::default();
        let added = state.add(vec![Arc::new(attempt(1, 128))], StartOrder::MostUrgent, 1, Duration::ZERO);
        state.take_last(1);
        assert!(state.first_attempt(added.slots[0], &ManualClock::default()).is_none());
        assert!(state.woken().now_or_never().is_some());
    }
}
