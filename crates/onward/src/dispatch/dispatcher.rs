//! The loop of one run.

use std::sync::Arc;
use std::time::Duration;

use onward_store::{Changes, Claim, Hint, OpenSession, QueueSelection, Served, SessionId, TaskState};
use tokio_util::sync::CancellationToken;

use super::claims::last_claim::LastClaim;
use super::claims::size::{Load, claim_size, over_fetched};
use super::claims::throughput::ThroughputMeter;
use super::deadlines::Deadlines;
use super::drained;
use super::outbox::{OpenOutbox, OutboxReply};
use super::preemption::PreemptionState;
use super::run_state::{EndedAttempt, Occupancy, RunState};
use super::shutdown::Shutdown;
use super::store_calls::StoreCalls;
use super::write_batch::{PendingWrite, WriteBatch};
use crate::bounds;
use crate::engine::Run;
use crate::error::Result;
use crate::observe::DrainSummary;
use crate::timer::Alarm;

/// The end of a run that is not stopped before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Goal {
    /// The run never ends by itself.
    Stopped,
    /// The run ends when nothing is due and nothing runs here.
    Idle,
    /// The run ends when nothing can start before time passes and nothing runs here. Unlike `Idle`,
    /// it leaves tasks that a rate or pressure holds back.
    Settled,
    /// The run ends when every task that this engine could run has ended.
    Drained,
}

/// The loop of a run, which claims tasks, passes them to workers and writes their ends.
pub(crate) struct Dispatcher {
    pub(super) run: Arc<Run>,
    pub(super) stop: CancellationToken,
    pub(super) shutdown: Shutdown,
    /// The session in which tasks are claimed.
    pub(super) session: Option<SessionId>,
    /// Sessions in which nothing more is claimed because the reply to a claim was lost. Closing
    /// such a session releases the tasks that the claim may have given. The dispatcher closes it
    /// when everything that it knows to be held has ended.
    pub(super) retired: Vec<SessionId>,
    pub(super) deadlines: Deadlines,
    pub(super) summary: DrainSummary,
    /// The choice among queues of the last claim.
    pub(super) last_claim: LastClaim,
    /// True if a rate limited the last claim.
    pub(super) is_limited_by_rate: bool,
    /// True if pressure limited the last claim.
    pub(super) is_limited_by_pressure: bool,
    /// True if the store is to be notified that the session claims nothing more.
    pub(super) must_retire: bool,
    /// The state of preemption.
    pub(super) preemption: PreemptionState,
    /// True if there may be orchestrations to claim.
    pub(super) may_claim_turns: bool,
    goal: Goal,
    changes: Changes,
    seen_hint: Hint,
    /// The count of [`Hint::work`] that claims of turns have accounted for. That of claims of tasks
    /// is in `seen_hint`.
    turns_seen: u64,
    alarm: Alarm,
    pub(super) calls: StoreCalls,
    /// The throughput of handlers.
    pub(super) ends: ThroughputMeter,
    /// The throughput of turns of orchestrations.
    pub(super) turns: ThroughputMeter,
}

impl Dispatcher {
    pub(crate) fn new(run: Arc<Run>, goal: Goal, stop: CancellationToken) -> Self {
        let mut changes = run.inner.store.changes();
        let seen_hint = changes.hint();
        let deadlines = Deadlines::new(run.inner.settings.lease, run.inner.clock.steady());
        Self {
            run,
            stop,
            shutdown: Shutdown::No,
            session: None,
            retired: Vec::new(),
            deadlines,
            summary: DrainSummary::default(),
            last_claim: LastClaim::default(),
            is_limited_by_rate: false,
            is_limited_by_pressure: false,
            must_retire: false,
            preemption: PreemptionState::default(),
            may_claim_turns: true,
            goal,
            changes,
            turns_seen: seen_hint.work,
            seen_hint,
            alarm: Alarm::default(),
            calls: StoreCalls::default(),
            ends: ThroughputMeter::default(),
            turns: ThroughputMeter::default(),
        }
    }

    /// Returns the token that stops the run.
    pub(crate) fn stop_token(&self) -> &CancellationToken {
        &self.stop
    }

    /// Runs to the end. If the store fails permanently, running handlers are stopped and the error
    /// is returned; other engines take their tasks when the lease has expired.
    pub(crate) async fn run(mut self) -> Result<DrainSummary> {
        let open_outbox = self.run.has_turns().then(|| OpenOutbox::of(&self.run));
        let worked = self.work().await;
        drop(open_outbox);
        match worked {
            Ok(()) => {
                self.close().await?;
                self.summary.add(self.run.instances.summary());
                Ok(self.summary)
            }
            Err(error) => {
                self.abandon().await;
                Err(error)
            }
        }
    }

    /// Repeats until the goal is reached: applies the replies that have arrived, begins a call if
    /// there is something to write, and otherwise waits for an event.
    async fn work(&mut self) -> Result<()> {
        loop {
            self.advance_shutdown();
            self.apply_replies()?;
            self.preempt_if_needed().await?;
            let batch = if self.may_call() { self.next_batch() } else { WriteBatch::default() };
            if !batch.is_empty() {
                self.begin_call(batch);
            } else if self.calls.is_empty() && self.is_over().await? {
                return Ok(());
            } else {
                self.wait().await?;
            }
        }
    }

    /// Returns the batch to write now, which is empty if there is nothing to write.
    fn next_batch(&mut self) -> WriteBatch {
        let now = self.now();
        self.read_hint();
        self.sample_pressure(now);
        if !self.deadlines.may_write(now) {
            // Callers with queued writes learn at once that the store fails.
            self.run.outbox.return_to_caller();
            return WriteBatch::default();
        }
        self.deadlines.may_claim |= self.run.inner.skipped_kinds.take_change();
        self.return_over_fetched(now);
        let mut batch = WriteBatch::with_capacity(self.run.state.occupancy().ended);
        // First, so that the tasks which are released below are not reserved for this session.
        if let Some(session) = self.session.filter(|_| std::mem::take(&mut self.must_retire)) {
            batch.retire(session);
        }
        self.close_retired(&mut batch);
        for ended in self.run.state.take_ended() {
            // An orchestration may wait for this end: it is claimed in the same commit.
            self.may_claim_turns |= ended.attempt.task.parent.is_some();
            // A turn behind the end may submit tasks. The claims of the commit account for
            // everything that it makes claimable, so that no further claim is needed.
            self.deadlines.may_claim |= ended.planned.is_some();
            if let Some(finished) = batch.end(ended) {
                self.count(&finished.attempt, TaskState::Completed);
                // This end has no outcome that would report the free slot, or that nothing is left.
                self.deadlines.may_claim = true;
            }
        }
        self.add_turns(&mut batch);
        // Only now, because the ended attempts above have freed their slots.
        let occupancy = self.run.state.occupancy();
        self.add_reports(&mut batch, now);
        let is_due = !self.shutdown.is_stopping() && self.deadlines.is_due(&*self.run.inner.clock);
        // Before a claim or a sweep, because both take tasks back from lapsed sessions.
        self.renew_retired(&mut batch, is_due, now);
        match self.session {
            Some(session) => self.add_claim(&mut batch, session, occupancy, is_due, now),
            None => self.open_session(&mut batch),
        }
        batch
    }

    /// Adds turns and signals before claims, so that the claims include the tasks that they submit
    /// and the orchestrations that they wake.
    fn add_turns(&mut self, batch: &mut WriteBatch) {
        for queued in self.run.outbox.take() {
            self.may_claim_turns = true;
            // The claims of the commit account for what the write makes claimable, so that its hint
            // causes no further claim.
            self.deadlines.may_claim = true;
            batch.queued(queued);
        }
        for write in self.run.instances.take_unwritten() {
            self.deadlines.may_claim |= !write.turn.submits.is_empty();
            self.may_claim_turns = true;
            batch.turn(write);
        }
    }

    fn open_session(&self, batch: &mut WriteBatch) {
        if self.deadlines.may_claim && !self.shutdown.is_stopping() {
            let settings = &self.run.inner.settings;
            let code = Some(self.run.served_code());
            let serves = Served { code, ..Served::by(&self.run.claim()) };
            batch.open(OpenSession { name: settings.name.clone(), lease: settings.lease, serves });
        }
    }

    fn close_retired(&self, batch: &mut WriteBatch) {
        for session in self.retired.iter().filter(|session| !self.holds(**session)) {
            batch.close(*session);
        }
    }

    /// Renews retired sessions whenever there is something to write or to sweep, and when a renewal
    /// is due.
    fn renew_retired(&self, batch: &mut WriteBatch, is_due: bool, now: Duration) {
        if !batch.is_empty() || is_due || self.deadlines.must_renew(now) {
            let held = self.retired.iter().filter(|session| self.holds(**session));
            held.for_each(|session| batch.renew(*session));
        }
    }

    /// Returns true if a handler or a turn here has a lease of a session.
    fn holds(&self, session: SessionId) -> bool {
        self.run.state.holds(session) || self.run.instances.holds(session)
    }

    fn add_reports(&mut self, batch: &mut WriteBatch, now: Duration) {
        if self.run.state.has_progressed() && self.deadlines.may_report(now) {
            self.deadlines.reported(now);
            for attempt in self.run.state.take_progressed() {
                batch.report(&attempt);
            }
        }
    }

    fn add_claim(
        &mut self,
        batch: &mut WriteBatch,
        session: SessionId,
        occupancy: Occupancy,
        is_due: bool,
        now: Duration,
    ) {
        let limit = if self.shutdown.is_stopping() { 0 } else { self.claim_limit(occupancy, now) };
        let turns = if self.shutdown.is_stopping() { 0 } else { self.claimable_turns(occupancy, now) };
        if (self.may_claim_turns || is_due) && turns > 0 {
            batch.claim_turns(self.claim_of_turns(session, turns));
        }
        if (self.deadlines.may_claim || is_due || self.preemption.must_claim) && limit > 0 {
            batch.claim(self.claim(session, limit));
        }
        // A claim renews the session too, and sweeps what is due.
        if !batch.claims() {
            // The renewal comes before the sweep: a process that was suspended for longer than its
            // lease would otherwise take its own tasks back.
            if self.holds_anything(occupancy) && self.deadlines.must_renew(now) {
                batch.renew(session);
            }
            if is_due {
                batch.sweep();
            }
        }
    }

    /// Returns true if the session holds tasks or orchestrations.
    fn holds_anything(&self, occupancy: Occupancy) -> bool {
        !occupancy.is_empty() || self.run.instances.running() > 0
    }

    /// Returns the number of turns to claim: those for free slots, and ahead of them those that
    /// will begin before a further claim could bring more.
    fn claimable_turns(&self, occupancy: Occupancy, now: Duration) -> usize {
        if !self.run.has_turns() {
            return 0;
        }
        let ahead =
            self.turns.throughput(self.run.instances.executed(), now, now).expected_starts().min(bounds::TURN_PREFETCH);
        let claimable = self.run.instances.claimable(self.run.inner.settings.turns.saturating_add(ahead));
        claimable.min(self.within_credit(occupancy.buffered, occupancy))
    }

    /// Returns the slot time divided by the number of slots.
    pub(super) fn time_of_each_slot(&self, occupancy: Occupancy, now: Duration) -> Duration {
        let slots = u32::try_from(self.run.inner.settings.concurrency).unwrap_or(u32::MAX);
        occupancy.slot_time.at(now) / slots.max(1)
    }

    fn claim_of_turns(&self, session: SessionId, limit: usize) -> Claim {
        let turns = self.run.claim_of_turns();
        Claim { kinds: turns.kinds, orchestrations: turns.orchestrations, ..self.claim(session, limit) }
    }

    pub(super) fn claim_limit(&self, occupancy: Occupancy, now: Duration) -> usize {
        let settings = &self.run.inner.settings;
        let load = Load {
            concurrency: settings.concurrency,
            prefetch: settings.prefetch,
            running: occupancy.running,
            // Tasks that a call in flight may bring count as claimed, so that concurrent calls do
            // not claim the same room twice.
            buffered: occupancy.buffered + self.calls.claiming(),
            uncommitted: occupancy.ended + self.calls.writing(),
            throughput: self.ends.throughput(occupancy.counts.ended, self.time_of_each_slot(occupancy, now), now),
        };
        let may_look_ahead =
            occupancy.buffered > 0 && occupancy.buffered < settings.prefetch && self.calls.claiming() == 0;
        let look_ahead = if may_look_ahead { self.deadlines.look_ahead } else { 0 };
        let limit = claim_size(load).max(look_ahead).max(usize::from(self.preemption.must_claim));
        limit.min(self.claimable()).min(self.within_credit(load.buffered, occupancy))
    }

    /// Returns the number of tasks that may be claimed on credit, if `held` are claimed and have
    /// not started.
    fn within_credit(&self, held: usize, occupancy: Occupancy) -> usize {
        match self.run.inner.settings.on_credit {
            true => self.run.inner.credit.claimable(occupancy.counts.started + self.run.instances.remote(), held),
            false => usize::MAX,
        }
    }

    pub(super) fn claim(&self, session: SessionId, limit: usize) -> Claim {
        let mut claim = self.run.claim();
        claim.session = session;
        claim.limit = limit;
        claim.choice.turn = self.last_claim.turn();
        claim.choice.random = fastrand::u64(..);
        claim.least = self.run.inner.gauge.least();
        if let QueueSelection::Only(queues) = &mut claim.queues {
            // Each queue may fill the whole claim: the store chooses among them.
            queues.iter_mut().for_each(|(_, most)| *most = limit);
        }
        claim
    }

    /// Keeps the writes of a failed commit, to write them later.
    pub(super) fn keep_unwritten(&mut self, pending: Vec<PendingWrite>, error: onward_store::Error) -> Result<()> {
        self.run.inner.telemetry.store_errors.increment(1);
        // The commit may have happened although it failed here. Its leases are unknown, so this
        // session may claim nothing more.
        if pending.iter().any(PendingWrite::gives_leases) {
            self.retired.extend(self.session.take());
            self.deadlines.may_claim = true;
        }
        let mut unwritten = Vec::new();
        // The error may be the fault of a queued write of another caller, who gets it below.
        let is_ours = !pending.iter().any(|write| matches!(write, PendingWrite::Queued(_)));
        for write in pending {
            match write {
                PendingWrite::AttemptEnd(ended) => unwritten.push(ended),
                PendingWrite::Report(attempt) => {
                    attempt.progress.mark_unsaved();
                    self.run.state.progressed();
                }
                PendingWrite::Output(attempt, piece) => {
                    attempt.output.put_back(piece);
                    self.run.state.progressed();
                }
                PendingWrite::ClaimTurns { .. } => self.may_claim_turns = true,
                // The instance that ran the turn sends it again.
                PendingWrite::Turn(reply) => drop(reply.send(Err(error.clone()))),
                PendingWrite::Queued(reply) => drop(reply.send(OutboxReply::Applied(Err(error.clone())))),
                // These are made again when they are due. The bytes are part of the end, which is
                // put back, and a lost claim has set `may_claim` above.
                PendingWrite::Open
                | PendingWrite::RecordIo
                | PendingWrite::Renew
                | PendingWrite::Claim { .. }
                | PendingWrite::Sweep
                | PendingWrite::Close(_) => {}
                PendingWrite::Retire => self.must_retire = true,
            }
        }
        self.run.state.put_back_ended(unwritten);
        if is_ours && !error.is_transient() {
            return Err(error.into());
        }
        tracing::warn!(%error, "the store could not write; retrying after a pause");
        // Calls that were in flight together fail together, which counts as one failure.
        if self.deadlines.may_write(self.now()) {
            self.deadlines.store_failed(self.now());
        }
        Ok(())
    }

    /// Records what a claim of tasks has accounted for.
    pub(super) fn note_seen(&mut self, work_seen: u64) {
        self.seen_hint.work = work_seen.max(self.seen_hint.work);
    }

    /// Records what a claim of turns has accounted for.
    pub(super) fn note_turns_seen(&mut self, work_seen: u64) {
        self.turns_seen = work_seen.max(self.turns_seen);
    }

    /// Notes what the store's hint reports as new. A hint may be early, late or wrong; it only
    /// causes a claim or a renewal, whose reply counts.
    pub(super) fn read_hint(&mut self) {
        let hint = self.changes.hint();
        if hint.work > self.seen_hint.work {
            self.deadlines.may_claim = true;
            // A new task may be more urgent than the buffered ones, so one is claimed even if the
            // buffer is full enough.
            self.deadlines.look_ahead = self.deadlines.look_ahead.max(1);
            self.preemption.recheck();
        }
        if hint.work > self.turns_seen {
            self.may_claim_turns = true;
            self.turns_seen = hint.work;
        }
        if hint.transitions != self.seen_hint.transitions {
            self.deadlines.check_cancellations = true;
        }
        if hint.schedules != self.seen_hint.schedules {
            self.run.inner.schedules_changed.notify_one();
        }
        // A claim may have accounted for more work than this hint reports, so the count only grows.
        self.seen_hint = Hint { work: hint.work.max(self.seen_hint.work), ..hint };
    }

    /// Releases buffered tasks if handlers have become slower since the buffer was filled, because
    /// other engines may start them earlier.
    fn return_over_fetched(&mut self, now: Duration) {
        let occupancy = self.run.state.occupancy();
        let started = occupancy.counts.started;
        let Some(recently) = self.deadlines.started_in_buffer_wait(started, now).filter(|_| occupancy.buffered > 0)
        else {
            return;
        };
        let waiting_without_slot = occupancy.buffered.saturating_sub(self.slots_being_freed());
        let back = self.run.state.take_last(over_fetched(waiting_without_slot, recently));
        self.run.state.add_ended(back.into_iter().map(EndedAttempt::released));
        self.deadlines.watch_buffer(started, now);
    }

    /// Returns true if the goal of the run is reached. It is only called without a call in flight,
    /// because a reply may bring work.
    async fn is_over(&mut self) -> Result<bool> {
        let occupancy = self.run.state.occupancy();
        if self.shutdown.is_stopping() {
            return Ok(!self.holds_anything(occupancy) || self.shutdown.is_time_over(self.now()));
        }
        let may_claim_something =
            self.deadlines.may_claim || self.may_claim_turns && self.claimable_turns(occupancy, self.now()) > 0;
        let waits_for_time = self.goal != Goal::Settled && (self.is_limited_by_rate || self.is_limited_by_pressure);
        if self.goal == Goal::Stopped || self.holds_anything(occupancy) || may_claim_something || waits_for_time {
            return Ok(false);
        }
        if self.goal == Goal::Drained && self.deadlines.is_due(&*self.run.inner.clock) {
            return Ok(false);
        }
        if self.goal == Goal::Drained {
            for claim in self.run.claims() {
                if !drained::is_drained(&*self.run.inner.store, &claim).await? {
                    return Ok(false);
                }
            }
        }
        // Work that arrived during the reads above is not done yet. Its hint stays unseen, so that
        // the wait that follows ends at once.
        Ok(self.changes.peek().work <= self.seen_hint.work.min(self.turns_seen))
    }

    /// Returns the time of the next action if nothing happens before.
    fn wake_at(&self) -> Option<Duration> {
        let claims = !self.shutdown.is_stopping();
        let has_session = self.session.is_some() || !self.retired.is_empty();
        let deadlines = match self.deadlines.retry_at() {
            // Nothing can be written before the pause after an error is over.
            Some(retry) => Some(retry),
            None if has_session => {
                let occupancy = self.run.state.occupancy();
                let held = Occupancy { running: occupancy.running + self.run.instances.running(), ..occupancy };
                self.deadlines.wake_at(held, self.run.state.has_progressed(), claims)
            }
            None => None,
        };
        [deadlines, self.shutdown.wake_at(), self.preemption.wake_at, self.next_sample()].into_iter().flatten().min()
    }

    /// Waits for the next event.
    async fn wait(&mut self) -> Result<()> {
        let (wake, may_call) = (self.wake_at(), self.may_call());
        // A stop comes first, and a reply before new work, because it may free slots. While no
        // further call may begin, only those two change anything.
        tokio::select! {
            biased;
            () = self.stop.cancelled(), if !self.shutdown.is_stopping() => {}
            reply = self.calls.next(), if !self.calls.is_empty() => return reply.map_or(Ok(()), |it| self.apply_reply(it)),
            // Handlers that end at about the same time share one commit.
            () = self.run.state.woken(), if may_call => gather(&self.run.state).await,
            hint = self.changes.changed(), if may_call => return hint.map(drop).ok_or_else(|| onward_store::Error::closed().into()),
            () = tick(&mut self.alarm, &self.run, wake), if may_call => {}
        }
        Ok(())
    }

    pub(super) fn now(&self) -> Duration {
        self.run.inner.clock.steady()
    }
}

/// Waits for handlers that end at about the same time, so that they share one commit. It continues
/// while tasks are buffered and each round brings another end.
async fn gather(run_state: &RunState) {
    let mut ended = run_state.occupancy().ended;
    for _ in 0..bounds::GATHER_ROUNDS {
        tokio::task::yield_now().await;
        let occupancy = run_state.occupancy();
        if occupancy.buffered == 0 || occupancy.ended == ended {
            return;
        }
        ended = occupancy.ended;
    }
}

async fn tick(alarm: &mut Alarm, run: &Run, at: Option<Duration>) {
    match at {
        Some(at) => alarm.tick(&*run.inner.clock, at).await,
        None => std::future::pending().await,
    }
}
