//! The state of a session, and the transition from an input to its effects.

use std::collections::HashMap;
use std::time::Duration;

use onward_protocol::gateway::{ErrorMessage, Stop, StopReason};
use onward_protocol::worker::{Hello, KindOptions};
use onward_protocol::{Code, Error, Fence, GatewayMessage, Id, TaskFence};

use super::beats::PendingBeats;
use super::held::{AttemptState, HeldAttempts};
use super::io::{EngineEnd, Input, Offer, Output};
use super::remembered::RememberedAcks;
use super::skipped::SkippedKinds;

/// The terms of a session.
#[derive(Debug, Clone)]
pub(in crate::gateway) struct Terms {
    /// The name of the session.
    pub(in crate::gateway) session: String,
    /// The time for which the session lives after a message of the worker.
    pub(in crate::gateway) lease: Duration,
    /// The longest time between two beats.
    pub(in crate::gateway) heartbeat: Duration,
    /// The time that a worker has to stop an attempt.
    pub(in crate::gateway) grace: Duration,
    /// The largest payload.
    pub(in crate::gateway) max_payload: usize,
    /// The largest number of tasks that the worker holds; `None` for as many as it asks for.
    pub(in crate::gateway) slots: Option<u32>,
    /// The secret that a worker must send; `None` if it needs none.
    pub(in crate::gateway) key: Option<String>,
    /// True if the worker may connect again after its connection is gone.
    pub(in crate::gateway) may_reattach: bool,
}

/// The phase of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// The worker has sent nothing.
    Fresh,
    /// The engine of the worker is being started.
    Opening,
    /// Tasks run.
    Serving,
    /// The worker has sent `bye`, and its last ends are on the way.
    Leaving,
    /// It is over.
    Closed,
}

/// One session of a worker.
#[derive(Debug)]
pub(in crate::gateway) struct Session {
    pub(super) terms: Terms,
    pub(super) phase: Phase,
    pub(super) is_attached: bool,
    /// True if no further tasks are to be sent.
    pub(super) is_draining: bool,
    /// The time at which a stopping gateway closes the session.
    pub(super) drain_until: Option<Duration>,
    /// The credit of this connection: the number of tasks that may be sent on it in all.
    pub(super) credit: u64,
    /// The number of tasks sent on this connection.
    pub(super) sent: u64,
    /// The number of attempts that the engine has passed to this session, with those that were
    /// given back.
    pub(super) offers: usize,
    pub(super) received_at: Duration,
    pub(super) kinds: HashMap<String, KindOptions>,
    pub(super) features: Vec<String>,
    pub(super) held: HeldAttempts,
    pub(super) acks: RememberedAcks,
    pub(super) skipped: SkippedKinds,
    pub(super) beats: PendingBeats,
    /// The number of submits and reads under way.
    pub(super) requests: usize,
    /// The attempts of another gateway whose end is on the way.
    pub(super) open_foreign_ends: usize,
    pub(super) hello: Option<Box<Hello>>,
    /// The session of another gateway that the worker continues.
    pub(super) resumed_session: Option<String>,
    /// The attempts that the worker brought from it.
    pub(super) resumed: HashMap<Id, Fence>,
}

impl Session {
    /// Creates the session of a connection that began at `now`.
    pub(in crate::gateway) fn new(terms: Terms, now: Duration) -> Self {
        Self {
            terms,
            phase: Phase::Fresh,
            is_attached: true,
            is_draining: false,
            drain_until: None,
            credit: 0,
            sent: 0,
            offers: 0,
            received_at: now,
            kinds: HashMap::new(),
            features: Vec::new(),
            held: HeldAttempts::default(),
            acks: RememberedAcks::default(),
            skipped: SkippedKinds::default(),
            beats: PendingBeats::default(),
            requests: 0,
            open_foreign_ends: 0,
            hello: None,
            resumed_session: None,
            resumed: HashMap::new(),
        }
    }

    /// Returns the name of the session.
    pub(in crate::gateway) fn name(&self) -> &str {
        &self.terms.session
    }

    /// Returns the longest time between two beats.
    pub(in crate::gateway) fn heartbeat(&self) -> Duration {
        self.terms.heartbeat
    }

    /// Returns true if the session is over.
    pub(in crate::gateway) fn is_closed(&self) -> bool {
        self.phase == Phase::Closed
    }

    /// Handles an input at a moment, and appends its effects.
    pub(in crate::gateway) fn handle(&mut self, now: Duration, input: Input, output: &mut Vec<Output>) {
        if self.is_closed() {
            return;
        }
        match input {
            Input::Message(frames) => self.message(now, &frames, output),
            Input::Malformed(error) => self.fail(&error, output),
            Input::Opened(opened) => self.opened(now, opened, output),
            Input::Offered(offer) => self.offered(offer, output),
            Input::NotOffered => {
                self.offers += 1;
                self.update_credit(output);
            }
            Input::Stopping(attempt, why) => self.stopping(now, attempt, why, output),
            Input::Ended(attempt, outcome) => self.ended(attempt, outcome, output),
            Input::ForeignEnded(attempt, outcome) => self.foreign_ended(attempt, outcome, output),
            Input::Refused(attempt, why) => self.refused(attempt, why, output),
            Input::Checkpoint { n, attempt, refused } => self.checkpoint_kept(n, attempt, refused, output),
            Input::Replied(reply, payloads) => {
                self.requests = self.requests.saturating_sub(1);
                self.send_with(GatewayMessage::Reply(reply), payloads, output);
            }
            Input::ResumedLost(attempts) => {
                for attempt in attempts {
                    self.resumed.remove(&attempt.task);
                    self.send_stop(attempt, StopReason::Lost, output);
                }
            }
            Input::Drain { why, within } => self.drain(now, why, within, output),
            Input::Reattached(hello) => self.reattached(now, hello, output),
            Input::Disconnected(why) => self.disconnected(&why, output),
            Input::Gone(why) => self.close(&why, true, output),
            Input::Tick => self.tick(now, output),
        }
        self.update_skipped(now, output);
        self.leave_if_done(output);
    }

    /// Sends a message, if the worker is connected.
    pub(super) fn send(&self, message: GatewayMessage, output: &mut Vec<Output>) {
        self.send_with(message, Vec::new(), output);
    }

    fn send_with(&self, message: GatewayMessage, payloads: Vec<bytes::Bytes>, output: &mut Vec<Output>) {
        if self.is_attached {
            output.push(Output::Send(message, payloads));
        }
    }

    pub(super) fn send_stop(&self, attempt: TaskFence, why: StopReason, output: &mut Vec<Output>) {
        let grace_ms = milliseconds(self.terms.grace);
        self.send(GatewayMessage::Stop(Stop { attempt, why, grace_ms }), output);
    }

    /// Handles a violation of the protocol: a fatal one ends the connection.
    pub(super) fn fail(&mut self, error: &Error, output: &mut Vec<Output>) {
        self.send(GatewayMessage::Error(ErrorMessage::from(error)), output);
        if error.code.is_fatal() {
            self.disconnected(&format!("the worker violated the protocol: {error}"), output);
        }
    }

    fn offered(&mut self, offer: Box<Offer>, output: &mut Vec<Output>) {
        self.offers += 1;
        let (attempt, kind) = (offer.attempt, &offer.task.kind);
        let limit = self.kinds.get(kind).and_then(|options| options.limit).unwrap_or(u32::MAX);
        if self.room() > 0 && self.held.of_kind(kind) < limit {
            // The worker brought an earlier attempt along, whose lease has passed on by this claim.
            if let Some(fence) = self.resumed.remove(&attempt.task).filter(|fence| *fence != attempt.fence) {
                self.send_stop(TaskFence { task: attempt.task, fence }, StopReason::Lost, output);
            }
            self.sent += 1;
            self.held.add(attempt, kind.clone());
            output.push(Output::Task(offer));
        } else {
            // It was claimed before the credit ended or the kind was full. Another worker may
            // run it.
            output.push(Output::End(attempt, EngineEnd::Released));
            self.update_credit(output);
        }
    }

    /// Sets the budget of the engine: the offers so far, and the tasks that may be sent now. A
    /// total has no second effect when it is set again, and offers that are on their way count in
    /// it.
    pub(super) fn update_credit(&self, output: &mut Vec<Output>) {
        output.push(Output::Credit(self.offers.saturating_add(self.room())));
    }

    /// Returns the number of tasks that may be sent now.
    fn room(&self) -> usize {
        let may_send = self.phase == Phase::Serving && self.is_attached && !self.is_draining;
        let credit = if may_send { self.credit.saturating_sub(self.sent) } else { 0 };
        let credit = usize::try_from(credit).unwrap_or(usize::MAX);
        match self.terms.slots {
            Some(slots) => credit.min((slots as usize).saturating_sub(self.held.len())),
            None => credit,
        }
    }

    fn stopping(&mut self, now: Duration, attempt: TaskFence, why: StopReason, output: &mut Vec<Output>) {
        let until = now.saturating_add(self.terms.grace);
        let Some(held) = self.held.get_mut(attempt).filter(|held| held.state != AttemptState::Ending) else { return };
        held.state = AttemptState::Stopping(until);
        self.send_stop(attempt, why, output);
        // The store has given the task to another session, so no end can be written. The handler of
        // the engine must return anyway.
        if why == StopReason::Lost {
            self.held.remove(attempt);
            output.push(Output::End(attempt, EngineEnd::Released));
        }
    }

    fn drain(&mut self, now: Duration, why: &'static str, within: Duration, output: &mut Vec<Output>) {
        if self.phase == Phase::Fresh {
            return self.fail(&Error::new(Code::ShuttingDown, "the gateway stops"), output);
        }
        self.is_draining = true;
        self.drain_until = Some(now.saturating_add(within));
        self.update_credit(output);
        if !self.is_attached {
            return self.close("the gateway stops, and the worker is not connected", false, output);
        }
        let within_ms = milliseconds(within);
        self.send(GatewayMessage::Drain(onward_protocol::gateway::Drain { why: why.to_owned(), within_ms }), output);
    }

    /// Handles the loss of the connection.
    pub(super) fn disconnected(&mut self, why: &str, output: &mut Vec<Output>) {
        let may_wait = self.terms.may_reattach && self.phase == Phase::Serving && self.drain_until.is_none();
        if !may_wait {
            return self.close(why, true, output);
        }
        if self.is_attached {
            self.is_attached = false;
            (self.credit, self.sent) = (0, 0);
            self.update_credit(output);
            output.push(Output::Detach);
        }
    }

    /// Ends the session and every attempt that the worker holds.
    pub(super) fn close(&mut self, why: &str, is_crash: bool, output: &mut Vec<Output>) {
        self.phase = Phase::Closed;
        output.extend(self.held.take_deferred().into_iter().map(|(attempt, end)| Output::End(attempt, end)));
        for attempt in self.held.open() {
            let end = if is_crash { EngineEnd::Crashed(why.to_owned()) } else { EngineEnd::Released };
            output.push(Output::End(attempt, end));
        }
        output.push(Output::Close(why.to_owned()));
    }

    fn update_skipped(&mut self, now: Duration, output: &mut Vec<Output>) {
        let held = &self.held;
        let full = self.kinds.iter().filter(|(kind, options)| options.limit.is_some_and(|it| held.of_kind(kind) >= it));
        if let Some(skipped) = self.skipped.changed(now, full.map(|(kind, _)| kind.clone())) {
            output.push(Output::Skip(skipped));
        }
    }

    fn leave_if_done(&mut self, output: &mut Vec<Output>) {
        if self.phase == Phase::Leaving && self.held.is_empty() && self.open_foreign_ends == 0 {
            self.close("the worker sent bye", false, output);
        }
    }
}

pub(super) fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
