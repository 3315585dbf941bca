//! The loop of one run.

use std::sync::Arc;
use std::time::Duration;

use onward_store::{Changes, Claim, Hint, OpenSession, QueueSelection, Served, SessionId, TaskState};
use tokio_util::sync::CancellationToken;

use super::claim_size::{Load, claim_size, hoarded};
use super::deadlines::Agenda;
use super::drained;
use super::last_claim::Choosing;
use super::outbox::{Delivery, Opened};
use super::preemption::Preempting;
use super::run_state::{End, Ended, Floor, FloorState};
use super::shutdown::Stopping;
use super::store_calls::Calls;
use super::throughput::PaceMeter;
use super::write_batch::{Batch, Part};
use crate::bounds;
use crate::engine::Run;
use crate::error::Result;
use crate::observe::DrainSummary;
use crate::timer::Alarm;

/// When a run is over, if nobody stops it before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Goal {
    /// Never.
    Stopped,
    /// When nothing is due and nothing runs here.
    Idle,
    /// When nothing can start before time passes and nothing runs here: as `Idle`, but what a rate
    /// or pressure holds back is left.
    Settled,
    /// When every task that this engine could run has ended.
    Drained,
}

/// Claims tasks, hands them to slots and writes how they ended.
pub(crate) struct Dispatcher {
    pub(super) run: Arc<Run>,
    pub(super) stop: CancellationToken,
    pub(super) stopping: Stopping,
    /// The session in which tasks are claimed.
    pub(super) session: Option<SessionId>,
    /// Sessions in which nothing more is claimed, because the answer to a claim was lost: what it
    /// may have given is given back by closing them, which waits until what is known to be held has
    /// ended.
    pub(super) retired: Vec<SessionId>,
    pub(super) agenda: Agenda,
    pub(super) summary: DrainSummary,
    /// How the last claim chose among queues.
    pub(super) choosing: Choosing,
    /// Whether the last claim would have got more but for a rate.
    pub(super) awaits_token: bool,
    /// Whether the last claim would have got more but for the pressure.
    pub(super) holds_back: bool,
    /// Whether it is to be said that the session claims nothing more.
    pub(super) retires: bool,
    /// What gives way to what.
    pub(super) preempting: Preempting,
    /// Something may have come for an orchestration.
    pub(super) looks_for_turns: bool,
    goal: Goal,
    changes: Changes,
    seen: Hint,
    alarm: Alarm,
    pub(super) calls: Calls,
    /// How fast handlers end.
    pub(super) ends: PaceMeter,
    /// How fast turns of orchestrations end.
    pub(super) turns: PaceMeter,
}

impl Dispatcher {
    pub(crate) fn new(run: Arc<Run>, goal: Goal, stop: CancellationToken) -> Self {
        let mut changes = run.inner.store.changes();
        let seen = changes.hint();
        let agenda = Agenda::new(run.inner.settings.lease, run.inner.clock.steady());
        Self {
            run,
            stop,
            stopping: Stopping::No,
            session: None,
            retired: Vec::new(),
            agenda,
            summary: DrainSummary::default(),
            choosing: Choosing::default(),
            awaits_token: false,
            holds_back: false,
            retires: false,
            preempting: Preempting::default(),
            looks_for_turns: true,
            goal,
            changes,
            seen,
            alarm: Alarm::default(),
            calls: Calls::default(),
            ends: PaceMeter::default(),
            turns: PaceMeter::default(),
        }
    }

    /// What stops it.
    pub(crate) fn stop_token(&self) -> &CancellationToken {
        &self.stop
    }

    /// Runs to the end. If the store fails for good, running handlers are stopped, their tasks go
    /// to others when the lease is over, and the error is returned.
    pub(crate) async fn run(mut self) -> Result<DrainSummary> {
        let opened = (!self.run.orchestrations.is_empty()).then(|| Opened::of(&self.run));
        let worked = self.work().await;
        drop(opened);
        match worked {
            Ok(()) => {
                self.close().await?;
                self.summary.add(self.run.stage.summary());
                Ok(self.summary)
            }
            Err(error) => {
                self.abandon().await;
                Err(error)
            }
        }
    }

    async fn work(&mut self) -> Result<()> {
        loop {
            self.notice_stop();
            self.hear()?;
            self.give_way().await?;
            let batch = if self.may_call() { self.next_batch() } else { Batch::default() };
            if !batch.is_empty() {
                self.begin_call(batch);
            } else if self.calls.is_empty() && self.is_over().await? {
                return Ok(());
            } else {
                self.wait().await?;
            }
        }
    }

    /// What to write now; empty if nothing.
    fn next_batch(&mut self) -> Batch {
        let now = self.now();
        self.notice_changes();
        self.sample_pressure(now);
        if !self.agenda.may_write(now) {
            // Who waits for it is to hear at once that the store fails.
            self.run.mail.give_back();
            return Batch::default();
        }
        self.give_back_what_is_hoarded(now);
        let mut batch = Batch::with_room_for(self.run.floor.state().ended);
        // First, so that what is given back goes to others at once.
        if let Some(session) = self.session.filter(|_| std::mem::take(&mut self.retires)) {
            batch.retire(session);
        }
        self.close_retired(&mut batch);
        for ended in self.run.floor.take_ended() {
            // Its end may be what an orchestration waits for: the claim of that is in the same
            // commit.
            self.looks_for_turns |= ended.attempt.task.parent.is_some();
            if let Some(finished) = batch.end(ended) {
                self.count(&finished.attempt, TaskState::Completed);
                // No outcome will say that room is free, nor that nothing is left.
                self.agenda.look = true;
            }
        }
        self.add_turns(&mut batch);
        // Not before: the slots of what has ended are free, and nothing says so again.
        let floor = self.run.floor.state();
        self.add_reports(&mut batch, now);
        let is_due = !self.stopping.is_stopping() && self.agenda.is_due(&*self.run.inner.clock);
        // Before a claim or a sweep, either of which takes tasks back from sessions that have
        // lapsed.
        self.renew_retired(&mut batch, is_due, now);
        match self.session {
            Some(session) => self.add_claim(&mut batch, session, floor, is_due, now),
            None => self.open_session(&mut batch),
        }
        batch
    }

    /// Turns and signals go before claims, so that what they submit and whom they wake is claimed
    /// with them.
    fn add_turns(&mut self, batch: &mut Batch) {
        for letter in self.run.mail.take() {
            self.looks_for_turns = true;
            batch.letter(letter);
        }
        for write in self.run.stage.take_unwritten() {
            self.agenda.look |= !write.turn.submits.is_empty();
            self.looks_for_turns = true;
            batch.turn(write);
        }
    }

    fn open_session(&self, batch: &mut Batch) {
        if self.agenda.look && !self.stopping.is_stopping() {
            let settings = &self.run.inner.settings;
            let code = Some(self.run.orchestrations.served());
            let serves = Served { code, ..Served::by(&self.run.claim()) };
            batch.open(OpenSession { name: settings.name.clone(), lease: settings.lease, serves });
        }
    }

    fn close_retired(&self, batch: &mut Batch) {
        for session in self.retired.iter().filter(|session| !self.holds(**session)) {
            batch.close(*session);
        }
    }

    /// Renews retired sessions whenever there is something to write or to sweep, and when it is
    /// time to.
    fn renew_retired(&self, batch: &mut Batch, is_due: bool, now: Duration) {
        if !batch.is_empty() || is_due || self.agenda.must_renew(now) {
            let held = self.retired.iter().filter(|session| self.holds(**session));
            held.for_each(|session| batch.renew(*session));
        }
    }

    /// Whether a handler or a turn here has a lease of a session.
    fn holds(&self, session: SessionId) -> bool {
        self.run.floor.holds(session) || self.run.stage.holds(session)
    }

    fn add_reports(&mut self, batch: &mut Batch, now: Duration) {
        if self.run.floor.has_progressed() && self.agenda.may_report(now) {
            self.agenda.reported(now);
            for attempt in self.run.floor.take_progressed() {
                batch.report(attempt);
            }
        }
    }

    fn add_claim(&mut self, batch: &mut Batch, session: SessionId, floor: FloorState, is_due: bool, now: Duration) {
        let limit = if self.stopping.is_stopping() { 0 } else { self.claim_limit(floor, now) };
        let turns = if self.stopping.is_stopping() { 0 } else { self.free_turns(now) };
        if (self.looks_for_turns || is_due) && turns > 0 {
            batch.claim_turns(self.claim_of_turns(session, turns));
        }
        if (self.agenda.look || is_due || self.preempting.claims) && limit > 0 {
            batch.claim(self.claim(session, limit));
        } else if batch.claims() {
            // That renews the session too, and does what is due.
        } else {
            // The lease first: a process that was stopped for longer than its lease would otherwise
            // take its own tasks back.
            if self.holds_anything(floor) && self.agenda.must_renew(now) {
                batch.renew(session);
            }
            if is_due {
                batch.sweep();
            }
        }
    }

    /// Whether the session holds tasks, orchestrations among them.
    fn holds_anything(&self, floor: FloorState) -> bool {
        !floor.is_empty() || self.run.stage.running() > 0
    }

    /// How many turns to claim: for free slots, and as with handlers ahead of them what will begin
    /// before a further claim could bring it.
    fn free_turns(&self, now: Duration) -> usize {
        if self.run.orchestrations.is_empty() {
            return 0;
        }
        let ahead = self.turns.pace(self.run.stage.played(), now, now).ahead().min(bounds::TURNS_AHEAD);
        self.run.stage.free(self.run.inner.settings.turns.saturating_add(ahead))
    }

    /// For how long handlers have run, as if all slots had always been taken.
    pub(super) fn time_of_each_slot(&self, floor: FloorState, now: Duration) -> Duration {
        let slots = u32::try_from(self.run.inner.settings.concurrency).unwrap_or(u32::MAX);
        floor.slot_time.at(now) / slots.max(1)
    }

    fn claim_of_turns(&self, session: SessionId, limit: usize) -> Claim {
        Claim { kinds: self.run.orchestrations.kinds(), orchestrations: true, ..self.claim(session, limit) }
    }

    pub(super) fn claim_limit(&self, floor: FloorState, now: Duration) -> usize {
        let settings = &self.run.inner.settings;
        let load = Load {
            concurrency: settings.concurrency,
            prefetch: settings.prefetch,
            running: floor.running,
            buffered: floor.buffered + self.calls.claiming(),
            unsettled: floor.ended + self.calls.writing(),
            pace: self.ends.pace(floor.counts.ended, self.time_of_each_slot(floor, now), now),
        };
        let may_probe = floor.buffered > 0 && floor.buffered < settings.prefetch && self.calls.claiming() == 0;
        let probe = if may_probe { self.agenda.probe } else { 0 };
        claim_size(load).max(probe).max(usize::from(self.preempting.claims)).min(self.claimable())
    }

    pub(super) fn claim(&self, session: SessionId, limit: usize) -> Claim {
        let mut claim = self.run.claim();
        claim.session = session;
        claim.limit = limit;
        claim.choice.turn = self.choosing.turn();
        claim.choice.random = fastrand::u64(..);
        claim.least = self.run.inner.gauge.least();
        if let QueueSelection::Only(queues) = &mut claim.queues {
            queues.iter_mut().for_each(|(_, most)| *most = limit);
        }
        claim
    }

    /// Keeps what a failed commit should have written, to write it later.
    pub(super) fn keep_unwritten(&mut self, parts: Vec<Part>, error: onward_store::Error) -> Result<()> {
        self.run.inner.telemetry.store_errors.increment(1);
        if parts.iter().any(Part::gives_leases) {
            self.retired.extend(self.session.take());
            self.agenda.look = true;
        }
        let mut unwritten = Vec::new();
        // What is wrong may be wrong with what somebody else handed in, who is told.
        let is_ours = !parts.iter().any(|part| matches!(part, Part::Letter(_)));
        for part in parts {
            match part {
                Part::End(ended) => unwritten.push(ended),
                Part::Report(attempt) => {
                    attempt.progress.mark_unsaved();
                    self.run.floor.progressed();
                }
                Part::ClaimTurns { .. } => self.looks_for_turns = true,
                // Whoever played it hands it in again.
                Part::Turn(answer) => drop(answer.send(Err(error.clone()))),
                Part::Letter(answer) => drop(answer.send(Delivery::Answered(Err(error.clone())))),
                Part::Open | Part::RecordIo | Part::Renew | Part::Claim { .. } | Part::Sweep | Part::Close(_) => {}
                Part::Retire => self.retires = true,
            }
        }
        self.run.floor.put_back(unwritten);
        if is_ours && !error.is_transient() {
            return Err(error.into());
        }
        tracing::warn!(%error, "the store could not write; trying again after a pause");
        // Calls that were under way together fail together, which is one failure.
        if self.agenda.may_write(self.now()) {
            self.agenda.store_failed(self.now());
        }
        Ok(())
    }

    pub(super) fn notice_changes(&mut self) {
        let hint = self.changes.hint();
        if hint.work != self.seen.work {
            self.agenda.look = true;
            self.agenda.probe = self.agenda.probe.max(1);
            self.looks_for_turns = true;
            self.preempting.stir();
        }
        if hint.transitions != self.seen.transitions {
            self.agenda.ask = true;
        }
        if hint.schedules != self.seen.schedules {
            self.run.inner.schedules_changed.notify_one();
        }
        self.seen = hint;
    }

    /// Handlers have become slower than they were when the buffer was filled: others may have what
    /// would wait here for long.
    fn give_back_what_is_hoarded(&mut self, now: Duration) {
        let floor = self.run.floor.state();
        let started = floor.counts.started;
        let Some(recently) = self.agenda.started_in_patience(started, now).filter(|_| floor.buffered > 0) else {
            return;
        };
        let waits_for_nothing = floor.buffered.saturating_sub(self.promised());
        let back = self.run.floor.give_back(hoarded(waits_for_nothing, recently));
        self.run.floor.hand_in(back.into_iter().map(|attempt| Ended { attempt, end: End::Release }));
        self.agenda.watch_buffer(started, now);
    }

    async fn is_over(&mut self) -> Result<bool> {
        let floor = self.run.floor.state();
        if self.stopping.is_stopping() {
            return Ok(!self.holds_anything(floor) || self.stopping.is_time_over(self.now()));
        }
        let looks = self.agenda.look || self.looks_for_turns && self.free_turns(self.now()) > 0;
        let waits_for_time = self.goal != Goal::Settled && (self.awaits_token || self.holds_back);
        if self.goal == Goal::Stopped || self.holds_anything(floor) || looks || waits_for_time {
            return Ok(false);
        }
        if self.goal == Goal::Drained && self.agenda.is_due(&*self.run.inner.clock) {
            return Ok(false);
        }
        if self.goal == Goal::Drained {
            for claim in self.run.claims() {
                if !drained::is_drained(&*self.run.inner.store, &claim).await? {
                    return Ok(false);
                }
            }
        }
        // What arrived while that was read is not yet done. Its hint is left unseen: the wait that
        // follows ends by it.
        Ok(self.changes.peek().work == self.seen.work)
    }

    /// When to act next if nothing happens before.
    fn wake_at(&self) -> Option<Duration> {
        let claims = !self.stopping.is_stopping();
        let has_session = self.session.is_some() || !self.retired.is_empty();
        let agenda = match self.agenda.retry_at() {
            Some(retry) => Some(retry),
            None if has_session => {
                let floor = self.run.floor.state();
                let held = FloorState { running: floor.running + self.run.stage.running(), ..floor };
                self.agenda.wake_at(held, self.run.floor.has_progressed(), claims)
            }
            None => None,
        };
        [agenda, self.stopping.wake_at(), self.preempting.wake_at, self.next_sample()].into_iter().flatten().min()
    }

    /// Waits for the next thing to do.
    async fn wait(&mut self) -> Result<()> {
        let (wake, may_call) = (self.wake_at(), self.may_call());
        tokio::select! {
            biased;
            () = self.stop.cancelled(), if !self.stopping.is_stopping() => {}
            answered = self.calls.next(), if !self.calls.is_empty() => return answered.map_or(Ok(()), |it| self.hear_answer(it)),
            // Handlers that end at about the same time shall be in one commit.
            () = self.run.floor.stirred(), if may_call => gather(&self.run.floor).await,
            hint = self.changes.changed(), if may_call => return hint.map(drop).ok_or_else(|| onward_store::Error::closed().into()),
            () = tick(&mut self.alarm, &self.run, wake), if may_call => {}
        }
        Ok(())
    }

    pub(super) fn now(&self) -> Duration {
        self.run.inner.clock.steady()
    }
}

/// Lets handlers that end at about the same time be in one commit: while others are buffered and
/// some end at each look, it is not over.
async fn gather(floor: &Floor) {
    let mut ended = floor.state().ended;
    for _ in 0..bounds::GATHERING {
        tokio::task::yield_now().await;
        let state = floor.state();
        if state.buffered == 0 || state.ended == ended {
            return;
        }
        ended = state.ended;
    }
}

async fn tick(alarm: &mut Alarm, run: &Run, at: Option<Duration>) {
    match at {
        Some(at) => alarm.tick(&*run.inner.clock, at).await,
        None => std::future::pending().await,
    }
}
