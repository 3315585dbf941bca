//! The orchestrations that one run has in memory.

use std::collections::hash_map::Entry;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use onward_store::{ClaimedTask, Outcome, SessionId, TaskId, TaskState, Turn};
use rustc_hash::FxHashMap;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio_util::sync::CancellationToken;

use super::instance::Instance;
use super::missing_code::MissingCode;
use super::parked_instances::{ParkedInstances, UntilParked};
use super::plan_backoff::PlanBackoffs;
use super::run_turn::{release, run_turn};
use super::telemetry::OrchestrationTelemetry;
use crate::engine::Run;
use crate::observe::DrainSummary;
use crate::workflow::RunInstance;
use crate::{bounds, timer};

/// The instance cache: parked orchestrations, up to a limit, and the counters of running turns.
pub(crate) struct InstanceCache {
    /// The parked orchestrations.
    pub(super) orchestrations: Arc<ParkedInstances<Instance>>,
    /// The parked runs of workflows.
    pub(crate) workflows: Arc<ParkedInstances<RunInstance>>,
    /// The turns that were claimed and are not written yet.
    running: AtomicUsize,
    /// The running turns whose code may still run: they have a slot, or wait for one.
    executing: AtomicUsize,
    /// The number of turns whose code has run to its end.
    executed: AtomicUsize,
    /// The number of turns of other processes that were claimed since the run began.
    remote: AtomicUsize,
    slots: Arc<Semaphore>,
    /// The number of running turns of each session.
    sessions: Mutex<FxHashMap<SessionId, usize>>,
    /// The turns that the dispatcher writes with its next batch.
    unwritten: Mutex<Vec<TurnWrite>>,
    summary: Mutex<DrainSummary>,
    pub(crate) missing_code: MissingCode,
    pub(crate) plans: PlanBackoffs,
    /// Aborts steps where they await.
    pub(super) abort: CancellationToken,
}

/// The last write of a turn, and the sender for its result.
#[derive(Debug)]
pub(crate) struct TurnWrite {
    pub(crate) turn: Box<Turn>,
    pub(crate) reply: oneshot::Sender<onward_store::Result<Outcome>>,
}

impl std::fmt::Debug for InstanceCache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("InstanceCache").field("running", &self.running).finish_non_exhaustive()
    }
}

impl InstanceCache {
    /// Returns a cache that keeps `cached` orchestrations and runs `slots` turns at once.
    pub(crate) fn new(cached: usize, slots: usize, telemetry: &OrchestrationTelemetry) -> Self {
        Self {
            orchestrations: Arc::new(ParkedInstances::new(cached, telemetry.cached.clone())),
            workflows: Arc::new(ParkedInstances::new(cached, telemetry.cached_runs.clone())),
            running: AtomicUsize::new(0),
            executing: AtomicUsize::new(0),
            executed: AtomicUsize::new(0),
            remote: AtomicUsize::new(0),
            slots: Arc::new(Semaphore::new(slots)),
            sessions: Mutex::default(),
            unwritten: Mutex::default(),
            summary: Mutex::default(),
            missing_code: MissingCode::default(),
            plans: PlanBackoffs::default(),
            abort: CancellationToken::new(),
        }
    }

    /// Returns the number of turns that are claimed and not written yet.
    pub(crate) fn running(&self) -> usize {
        self.running.load(Ordering::Acquire)
    }

    /// Returns true if a running turn was claimed in a session.
    pub(crate) fn holds(&self, session: SessionId) -> bool {
        self.sessions().contains_key(&session)
    }

    fn sessions(&self) -> MutexGuard<'_, FxHashMap<SessionId, usize>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the number of turns whose code has run to its end since the run began.
    pub(crate) fn executed(&self) -> usize {
        self.executed.load(Ordering::Acquire)
    }

    /// Returns the number of turns of other processes that were claimed since the run began.
    pub(crate) fn remote(&self) -> usize {
        self.remote.load(Ordering::Acquire)
    }

    /// Returns the number of turns to claim if `room` turns may have a slot or wait for one. A turn
    /// that is only being written does not count against it, but at most `room` turns wait for the
    /// store.
    pub(crate) fn claimable(&self, room: usize) -> usize {
        let unwritten = room.saturating_mul(2).saturating_sub(self.running());
        room.saturating_sub(self.executing.load(Ordering::Acquire)).min(unwritten)
    }

    /// Starts a turn.
    pub(crate) fn start_turn(run: &Arc<Run>, task: ClaimedTask) {
        run.instances.running.fetch_add(1, Ordering::AcqRel);
        run.instances.executing.fetch_add(1, Ordering::AcqRel);
        let is_remote = run.orchestrations.remote(&task.kind).is_some();
        if is_remote {
            run.instances.remote.fetch_add(1, Ordering::AcqRel);
        }
        let session = task.lease.session;
        *run.instances.sessions().entry(session).or_default() += 1;
        let (run, mut slot) = (Arc::clone(run), TurnSlot { run: Arc::clone(run), permit: None });
        tokio::spawn(async move {
            let _ending = TurnGuard { run: Arc::clone(&run), session };
            if slot.take(&run).await {
                run_turn(&run, task, slot).await;
            } else {
                if is_remote {
                    run.inner.credit.give_back();
                }
                release(&run, task.lease).await;
            }
        });
    }

    /// Returns the time until an orchestration or a run is parked, if the turn that is being
    /// written submits the task with this reference.
    pub(super) fn until_parked(&self, task: TaskId, reference: u64) -> Option<UntilParked> {
        let of_orchestration = self.orchestrations.until_parked(task, reference);
        of_orchestration.or_else(|| self.workflows.until_parked(task, reference))
    }

    /// Returns a slot for a turn if one is free.
    pub(super) fn free_slot(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.slots).try_acquire_owned().ok()
    }

    /// Submits the last write of a turn. Claims in the same commit see its effects, such as the
    /// tasks that it submits.
    pub(super) fn submit_turn(&self, turn: Box<Turn>) -> oneshot::Receiver<onward_store::Result<Outcome>> {
        let (reply, receiver) = oneshot::channel();
        self.unwritten.lock().unwrap_or_else(PoisonError::into_inner).push(TurnWrite { turn, reply });
        receiver
    }

    /// Takes the submitted writes.
    pub(crate) fn take_unwritten(&self) -> Vec<TurnWrite> {
        std::mem::take(&mut self.unwritten.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn count(&self, state: TaskState) {
        self.summary.lock().unwrap_or_else(PoisonError::into_inner).count(state);
    }

    /// Returns the ends of orchestrations in this run.
    pub(crate) fn summary(&self) -> DrainSummary {
        *self.summary.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes turns that run steps give up.
    pub(crate) fn abort(&self) {
        self.abort.cancel();
    }
}

/// A guard that uncounts a turn when it is dropped, and wakes the dispatcher.
struct TurnGuard {
    run: Arc<Run>,
    session: SessionId,
}

impl Drop for TurnGuard {
    fn drop(&mut self) {
        let instances = &self.run.instances;
        if let Entry::Occupied(mut turns) = instances.sessions().entry(self.session) {
            *turns.get_mut() -= 1;
            if *turns.get() == 0 {
                turns.remove();
            }
        }
        instances.running.fetch_sub(1, Ordering::AcqRel);
        self.run.state.wake();
    }
}

/// The slot of a turn, or its position among the turns that wait for one.
pub(crate) struct TurnSlot {
    run: Arc<Run>,
    permit: Option<OwnedSemaphorePermit>,
}

impl TurnSlot {
    /// Waits for another slot, for a turn whose end was deferred. Returns `None` if the run is
    /// over.
    pub(super) async fn reacquire(run: &Arc<Run>) -> Option<Self> {
        run.instances.executing.fetch_add(1, Ordering::AcqRel);
        let mut slot = Self { run: Arc::clone(run), permit: None };
        tokio::select! {
            biased;
            permit = Arc::clone(&run.instances.slots).acquire_owned() => slot.permit = permit.ok(),
            () = run.instances.abort.cancelled() => {}
        }
        slot.permit.is_some().then_some(slot)
    }

    /// Waits for a slot, and returns true if there is one. The wait is short: a turn that was
    /// claimed ahead is not kept from other engines for long.
    async fn take(&mut self, run: &Run) -> bool {
        let slots = Arc::clone(&run.instances.slots);
        self.permit = match Arc::clone(&slots).try_acquire_owned() {
            Ok(permit) => Some(permit),
            Err(_) => {
                let clock = &*run.inner.clock;
                let give_up_at = clock.steady().saturating_add(bounds::BUFFER_WAIT);
                tokio::select! {
                    biased;
                    permit = slots.acquire_owned() => permit.ok(),
                    () = timer::reached(clock, give_up_at) => None,
                    () = run.instances.abort.cancelled() => None,
                }
            }
        };
        self.permit.is_some()
    }
}

impl Drop for TurnSlot {
    fn drop(&mut self) {
        let instances = &self.run.instances;
        if self.permit.take().is_some() {
            instances.executed.fetch_add(1, Ordering::AcqRel);
        }
        let executing = instances.executing.fetch_sub(1, Ordering::AcqRel);
        // Only if every slot was taken may a turn have waited for this one.
        if executing >= self.run.inner.settings.turns {
            self.run.state.wake();
        }
    }
}
