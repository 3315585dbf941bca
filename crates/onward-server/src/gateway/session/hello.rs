//! The beginning of a session, and its continuation on another connection.

use std::time::Duration;

use onward_protocol::gateway::{StopReason, Welcome};
use onward_protocol::worker::{Hello, Resume};
use onward_protocol::{Code, Error, GatewayMessage, VERSION, bounds};

use super::held::AttemptState;
use super::io::{EngineEnd, Output};
use super::state::{Phase, Session, milliseconds};

/// The optional parts that this gateway has.
const FEATURES: [&str; 4] = ["ask", "submit", TURNS, STICKY];

/// The feature of workers that have code of orchestrations.
const TURNS: &str = "turns";

/// The feature of workers that keep the code of orchestrations, and then get only new events.
pub(in crate::gateway) const STICKY: &str = "sticky";

impl Session {
    pub(super) fn hello(&mut self, hello: Box<Hello>, output: &mut Vec<Output>) {
        if let Err(error) = self.check_hello(&hello) {
            return self.fail(&error, output);
        }
        self.phase = Phase::Opening;
        self.kinds = hello.kinds.clone().into_iter().collect();
        let asked = hello.features.as_deref().unwrap_or_default();
        self.features =
            FEATURES.iter().filter(|it| asked.iter().any(|asked| asked == *it)).map(|it| (*it).to_owned()).collect();
        self.hello = Some(hello.clone());
        output.push(Output::Open(hello));
    }

    fn check_hello(&self, hello: &Hello) -> Result<(), Error> {
        if !hello.protocol.contains(&VERSION) {
            let text = format!("the worker speaks {:?} of the protocol, and this gateway {VERSION}", hello.protocol);
            return Err(Error::new(Code::Protocol, text));
        }
        if hello.beats_for.is_some() {
            return Err(Error::new(Code::BadField, "`beats_for` needs the feature `beats`, which this gateway lacks"));
        }
        let has_turns = hello.features.iter().flatten().any(|feature| feature == TURNS);
        if !has_turns && hello.kinds.values().any(|options| options.orchestration == Some(true)) {
            return Err(Error::new(Code::BadField, "`orchestration` needs the feature `turns`; list it in `features`"));
        }
        match &self.terms.key {
            // Compared in full, whatever the first difference is.
            Some(key) if !is_equal(key, hello.key.as_deref().unwrap_or_default()) => {
                Err(Error::new(Code::Unauthorised, "the key of the worker is missing or wrong"))
            }
            _ => Ok(()),
        }
    }

    /// Continues when the engine of the worker runs.
    pub(super) fn opened(&mut self, now: Duration, opened: Result<(), Error>, output: &mut Vec<Output>) {
        if self.phase != Phase::Opening {
            return;
        }
        if let Err(error) = opened {
            return self.fail(&error, output);
        }
        self.phase = Phase::Serving;
        self.received_at = now;
        self.welcome(output);
        if let Some(resume) = self.hello.take().and_then(|hello| hello.resume) {
            self.resume(resume, output);
        }
        self.repeat_drain(now, output);
    }

    /// Takes over the attempts that a worker brings from another gateway.
    fn resume(&mut self, resume: Resume, output: &mut Vec<Output>) {
        let attempts = resume.tasks.unwrap_or_default();
        self.resumed = attempts.iter().map(|attempt| (attempt.task, attempt.fence)).collect();
        self.resumed_session = Some(resume.session.clone());
        if !attempts.is_empty() {
            output.push(Output::CheckResumed { session: resume.session, attempts });
        }
    }

    /// Sends the drain of a stopping gateway to a worker that has just connected.
    fn repeat_drain(&self, now: Duration, output: &mut Vec<Output>) {
        if let Some(until) = self.drain_until {
            let within_ms = milliseconds(until.saturating_sub(now));
            let why = "the gateway stops".to_owned();
            self.send(GatewayMessage::Drain(onward_protocol::gateway::Drain { why, within_ms }), output);
        }
    }

    fn welcome(&self, output: &mut Vec<Output>) {
        output.push(Output::AcceptPayloads);
        let welcome = Welcome {
            protocol: VERSION,
            session: self.terms.session.clone(),
            lease_ms: milliseconds(self.terms.lease),
            heartbeat_ms: milliseconds(self.terms.heartbeat),
            max_payload: self.terms.max_payload as u64,
            features: self.features.clone(),
            gateway: concat!("onward ", env!("CARGO_PKG_VERSION")).to_owned(),
        };
        self.send(GatewayMessage::Welcome(welcome), output);
    }

    /// Continues on another connection.
    pub(super) fn reattached(&mut self, now: Duration, hello: Box<Hello>, output: &mut Vec<Output>) {
        self.is_attached = true;
        (self.credit, self.sent) = (0, 0);
        self.received_at = now;
        if let Err(error) = self.check_hello(&hello) {
            return self.fail(&error, output);
        }
        // `drain` and `bye` were about the earlier connection. Only the gateway's own drain stays.
        if self.phase == Phase::Leaving {
            self.phase = Phase::Serving;
        }
        self.is_draining = self.drain_until.is_some();
        self.welcome(output);
        self.repeat_drain(now, output);
        let tasks = hello.resume.and_then(|resume| resume.tasks).unwrap_or_default();
        for attempt in &tasks {
            if self.held.get(*attempt).is_none() && self.acks.get(*attempt).is_none() {
                self.send_stop(*attempt, StopReason::Lost, output);
            }
        }
        // A full list may leave out attempts that the worker holds.
        if tasks.len() < bounds::ENTRIES {
            self.release_unlisted(&tasks, output);
        }
        self.update_credit(output);
    }

    /// Releases attempts that were sent and never reached the worker.
    fn release_unlisted(&mut self, listed: &[onward_protocol::TaskFence], output: &mut Vec<Output>) {
        for attempt in self.held.open() {
            if !listed.contains(&attempt)
                && let Some(held) = self.held.get_mut(attempt)
            {
                held.state = AttemptState::Ending;
                output.push(Output::End(attempt, EngineEnd::Released));
            }
        }
    }
}

/// Compares two secrets in a time that depends on their lengths only.
fn is_equal(one: &str, other: &str) -> bool {
    let difference = one.bytes().zip(other.bytes()).fold(0, |sum, (one, other)| sum | (one ^ other));
    one.len() == other.len() && difference == 0
}
