//! Ends of attempts, and their acknowledgements.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use onward_protocol::TaskFence;
use onward_protocol::gateway::{AckEnd, AckResult, StopReason};
use onward_protocol::worker::{End, Ends, Outcome, ReleaseReason};

use super::held::AttemptState;
use super::io::{EndOutcome, EngineEnd, Output};
use super::state::{Phase, Session};
use crate::gateway::bounds::UNKNOWN_KIND_PAUSE;

impl Session {
    pub(super) fn ends(&mut self, now: Duration, ends: Ends, payloads: &Arc<[Bytes]>, output: &mut Vec<Output>) {
        for end in ends.ends {
            self.end(now, end, payloads, output);
        }
    }

    fn end(&mut self, now: Duration, end: End, payloads: &Arc<[Bytes]>, output: &mut Vec<Output>) {
        let attempt = end.attempt;
        if let Some(ack) = self.acks.get(attempt) {
            // The first acknowledgement was lost.
            let ack = ack.clone();
            return self.send_ack(ack, output);
        }
        let Some(held) = self.held.get_mut(attempt) else {
            return self.end_foreign(end, payloads, output);
        };
        if held.state == AttemptState::Ending {
            // A copy of the end came: the acknowledgement follows the commit.
            return;
        }
        held.state = AttemptState::Ending;
        if end.outcome == Outcome::Release && end.why == Some(ReleaseReason::UnknownKind) {
            tracing::warn!(task = attempt.task.0, kind = held.kind, "the worker does not know the kind of a task");
            self.skipped.add_unknown(&held.kind, now.saturating_add(UNKNOWN_KIND_PAUSE));
        }
        let end = EngineEnd::Worker(Box::new(end), Arc::clone(payloads));
        if held.checkpoints > 0 {
            // A retry must find the checkpoints that the worker sent before the end.
            held.deferred = Some(end);
        } else {
            output.push(Output::End(attempt, end));
        }
    }

    /// Handles the end of an attempt that this session does not hold. Only a worker that continues
    /// the session of another gateway may have such an attempt.
    fn end_foreign(&mut self, end: End, payloads: &Arc<[Bytes]>, output: &mut Vec<Output>) {
        let attempt = end.attempt;
        self.resumed.remove(&attempt.task);
        let Some(session) = self.resumed_session.clone() else {
            return self.acknowledge(attempt, EndOutcome::Stale, output);
        };
        self.open_foreign_ends += 1;
        let end = EngineEnd::Worker(Box::new(end), Arc::clone(payloads));
        output.push(Output::EndForeign { session, attempt, end });
    }

    /// Gives an attempt back that the worker leaves without an end.
    pub(super) fn release(&mut self, attempt: TaskFence, output: &mut Vec<Output>) {
        if let Some(held) = self.held.get_mut(attempt) {
            held.state = AttemptState::Ending;
            output.push(Output::End(attempt, EngineEnd::Released));
        }
    }

    /// Handles the result of writing an end. An attempt that this session does not hold was never
    /// sent, or is lost already.
    pub(super) fn ended(&mut self, attempt: TaskFence, outcome: EndOutcome, output: &mut Vec<Output>) {
        let Some(held) = self.held.remove(attempt) else { return };
        if self.terms.slots.is_some() {
            // The slot of the attempt is free.
            self.update_credit(output);
        }
        if held.state == AttemptState::Ending {
            return self.acknowledge(attempt, outcome, output);
        }
        // The engine has ended the attempt itself, for example because it did not stop in time.
        self.acks.add(AckEnd { attempt, result: AckResult::Stale, why: None });
        self.send_stop(attempt, StopReason::Lost, output);
    }

    /// Handles an end that was refused before anything changed.
    pub(super) fn refused(&mut self, attempt: TaskFence, why: String, output: &mut Vec<Output>) {
        let Some(held) = self.held.get_mut(attempt) else { return };
        held.state = AttemptState::Running;
        if self.phase == Phase::Leaving {
            // No later message can end the attempt.
            self.release(attempt, output);
        }
        self.send_ack(AckEnd { attempt, result: AckResult::Refused, why: Some(why) }, output);
    }

    /// Handles the result of writing the end of another gateway's attempt.
    pub(super) fn foreign_ended(&mut self, attempt: TaskFence, outcome: EndOutcome, output: &mut Vec<Output>) {
        self.open_foreign_ends = self.open_foreign_ends.saturating_sub(1);
        self.acknowledge(attempt, outcome, output);
    }

    fn acknowledge(&mut self, attempt: TaskFence, outcome: EndOutcome, output: &mut Vec<Output>) {
        let (result, why) = match outcome {
            EndOutcome::Unknown => return,
            EndOutcome::Durable => (AckResult::Ok, None),
            EndOutcome::Stale => (AckResult::Stale, None),
            EndOutcome::Refused(why) => (AckResult::Refused, Some(why)),
        };
        let ack = AckEnd { attempt, result, why };
        // A refused end leaves the attempt with the worker, whose next end must not get this reply.
        if result != AckResult::Refused {
            self.acks.add(ack.clone());
        }
        self.send_ack(ack, output);
    }

    fn send_ack(&self, ack: AckEnd, output: &mut Vec<Output>) {
        if self.is_attached {
            output.push(Output::Ack(ack));
        }
    }
}
