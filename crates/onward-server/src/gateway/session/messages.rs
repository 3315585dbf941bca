//! The messages of a worker.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use onward_protocol::worker::Grant;
use onward_protocol::{Code, Error, WorkerMessage};

use super::io::Output;
use super::state::{Phase, Session};
use crate::gateway::bounds;

impl Session {
    pub(super) fn message(&mut self, now: Duration, frames: &[Bytes], output: &mut Vec<Output>) {
        if !self.is_attached {
            // A message that was under way when the connection ended.
            return;
        }
        self.received_at = now;
        let message = match WorkerMessage::read(frames) {
            Ok(message) => message,
            Err(error) => return self.fail(&error, output),
        };
        let payloads = || Arc::from(frames.get(1..).unwrap_or_default());
        match (self.phase, message) {
            (Phase::Fresh, WorkerMessage::Hello(hello)) => self.hello(hello, output),
            (_, WorkerMessage::Error(error)) => {
                let text = format!("the worker reports {:?}: {}", error.code, error.text);
                tracing::warn!(session = self.terms.session, "{text}");
                if error.fatal {
                    self.disconnected(&text, output);
                }
            }
            (Phase::Serving, WorkerMessage::Grant(grant)) => self.grant(grant, output),
            (Phase::Serving, WorkerMessage::End(ends)) => self.ends(now, ends, &payloads(), output),
            (Phase::Serving, WorkerMessage::Beat(beat)) => self.beat(beat, &payloads(), output),
            (Phase::Serving, WorkerMessage::Submit(submit)) if self.has("submit") => {
                if self.begin_request(output) {
                    output.push(Output::Submit(submit, payloads()));
                }
            }
            (Phase::Serving, WorkerMessage::Ask(ask)) if self.has("ask") => {
                if self.begin_request(output) {
                    output.push(Output::Ask(ask));
                }
            }
            (Phase::Serving, WorkerMessage::Submit(_) | WorkerMessage::Ask(_)) => {
                self.fail(&Error::new(Code::Unsupported, "the feature of this message was not agreed"), output);
            }
            (Phase::Serving, WorkerMessage::Drain) => {
                self.is_draining = true;
                self.update_credit(output);
            }
            (Phase::Serving, WorkerMessage::Bye) => self.bye(output),
            (Phase::Leaving, _) => {}
            (_, message) => self.fail(&unexpected(&message), output),
        }
    }

    fn has(&self, feature: &str) -> bool {
        self.features.iter().any(|has| has == feature)
    }

    /// Counts a request. A worker with too many of them is disconnected.
    fn begin_request(&mut self, output: &mut Vec<Output>) -> bool {
        if self.requests == bounds::PENDING_REQUESTS {
            let text = format!("{} requests are under way, which is the bound", self.requests);
            self.fail(&Error::new(Code::TooMany, text), output);
            return false;
        }
        self.requests += 1;
        true
    }

    fn grant(&mut self, Grant { credit }: Grant, output: &mut Vec<Output>) {
        if credit < self.credit {
            let text = format!("`credit` is {credit} after {}; it never goes down", self.credit);
            return self.fail(&Error::new(Code::Unexpected, text), output);
        }
        self.credit = credit;
        self.update_credit(output);
    }

    /// Ends the session as soon as the earlier ends are durable. Attempts without an end are
    /// released.
    fn bye(&mut self, output: &mut Vec<Output>) {
        self.phase = Phase::Leaving;
        self.update_credit(output);
        for attempt in self.held.open() {
            self.release(attempt, output);
        }
    }
}

fn unexpected(message: &WorkerMessage) -> Error {
    let text = match message {
        WorkerMessage::Hello(_) => "a second `hello` came on this connection",
        _ => "a message came before `welcome`",
    };
    Error::new(Code::Unexpected, text)
}
