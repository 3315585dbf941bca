//! The effects of time on a session.

use std::time::Duration;

use onward_protocol::{Code, Error, GatewayMessage};

use super::io::Output;
use super::state::{Phase, Session};
use crate::gateway::bounds::HELLO_LIMIT;

impl Session {
    /// Returns the time of the next [`Tick`](super::Input::Tick) that has an effect.
    pub(in crate::gateway) fn wake_at(&self) -> Option<Duration> {
        [self.silent_at(), self.drain_until, self.held.next_stuck(), self.skipped.next_end()]
            .into_iter()
            .flatten()
            .min()
    }

    /// Returns the time at which the worker has been silent for too long.
    fn silent_at(&self) -> Option<Duration> {
        match self.phase {
            Phase::Fresh => Some(self.received_at.saturating_add(HELLO_LIMIT)),
            Phase::Serving | Phase::Leaving => Some(self.received_at.saturating_add(self.terms.lease)),
            // The engine is being started, and the worker waits for it.
            Phase::Opening | Phase::Closed => None,
        }
    }

    pub(super) fn tick(&mut self, now: Duration, output: &mut Vec<Output>) {
        for attempt in self.held.take_stuck(now) {
            output.push(Output::Stuck(attempt));
        }
        if self.drain_until.is_some_and(|until| until <= now) {
            return self.close("the gateway stops, and the time of the worker is over", false, output);
        }
        if self.silent_at().is_some_and(|at| at <= now) {
            self.silent(output);
        }
    }

    fn silent(&mut self, output: &mut Vec<Output>) {
        let text = match self.phase {
            Phase::Fresh => format!("no `hello` came within {HELLO_LIMIT:?}"),
            _ if self.is_attached => format!("the worker was silent for {:?}", self.terms.lease),
            _ => format!("the worker did not connect again within {:?}", self.terms.lease),
        };
        let error = Error::new(Code::Timeout, text.clone());
        self.send(GatewayMessage::Error((&error).into()), output);
        self.close(&text, true, output);
    }
}
