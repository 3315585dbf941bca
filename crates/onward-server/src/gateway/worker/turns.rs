//! Turns of orchestrations whose code is in the worker.

use std::time::Duration;

use onward::TaskId;
use onward::handlers::EndReport;
use onward::orchestration::{RemoteCode, RemoteFuture, RemoteReply, RemoteTurn};
use onward_protocol::gateway::{Task, Turn};
use onward_protocol::worker::{Outcome, ReleaseReason};
use onward_protocol::{Fence, Id, TaskFence};
use tokio::sync::oneshot;

use super::event::{Event, Events};
use super::{outcome, turn_events, turn_reply};
use crate::gateway::bounds::{TURN_LIMIT, TURN_PAUSE, UNKNOWN_KIND_PAUSE};
use crate::gateway::session::{EngineEnd, Input, Offer};

/// The code of a kind of orchestrations, in the worker.
pub(super) struct WorkerCode {
    pub(super) events: Events,
    /// The largest list of events, in bytes.
    pub(super) most_bytes: usize,
}

impl RemoteCode for WorkerCode {
    fn run(&self, turn: RemoteTurn) -> RemoteFuture {
        let (events, most_bytes) = (self.events.clone(), self.most_bytes);
        Box::pin(async move {
            let offer = match offer(&turn, most_bytes) {
                Ok(offer) => offer,
                Err(text) => {
                    // The engine has used credit for the turn, although the session does not see
                    // the turn.
                    let _ = events.send(Event::Input(Input::NotOffered));
                    return RemoteReply::Stuck(text);
                }
            };
            let (reply, replied) = oneshot::channel();
            let turn = RunningTurn { generation: turn.generation, reply };
            if events.send(Event::Turn { offer: Box::new(offer), turn }).is_err() {
                return released("the session of the worker is over");
            }
            match tokio::time::timeout(TURN_LIMIT, replied).await {
                Ok(reply) => reply.unwrap_or_else(|_| released("the session of the worker is over")),
                Err(_) => RemoteReply::Stuck(format!(
                    "the worker did not end a turn within {TURN_LIMIT:?}; the code of an orchestration may only await, so move the work into a task"
                )),
            }
        })
    }

    fn ended(&self, task: TaskId, claim: u32, report: EndReport) {
        let attempt = TaskFence { task: Id(task.0), fence: Fence(claim) };
        // A session that has ended acknowledges nothing.
        let _ = self.events.send(Event::Input(Input::Ended(attempt, report.into())));
    }
}

fn released(why: &str) -> RemoteReply {
    RemoteReply::Released(Duration::ZERO, why.to_owned())
}

/// A turn that the worker runs.
pub(in crate::gateway) struct RunningTurn {
    generation: u32,
    reply: oneshot::Sender<RemoteReply>,
}

impl RunningTurn {
    /// Ends the turn.
    ///
    /// # Errors
    /// The turn, and the reason why it cannot end in this way. It is still the worker's.
    pub(super) fn end(self, end: EngineEnd, payload_limit: usize) -> Result<(), (Self, String)> {
        match reply_of(end, self.generation, payload_limit) {
            Ok(reply) => {
                // The engine may have ended the turn itself.
                drop(self.reply.send(reply));
                Ok(())
            }
            Err(error) => Err((self, error)),
        }
    }
}

fn reply_of(end: EngineEnd, generation: u32, payload_limit: usize) -> Result<RemoteReply, String> {
    let (end, payloads) = match end {
        EngineEnd::Worker(end, payloads) => (end, payloads),
        EngineEnd::Crashed(why) => {
            return Ok(RemoteReply::Released(TURN_PAUSE, format!("the worker was lost in a turn: {why}")));
        }
        EngineEnd::Released => return Ok(released("the worker did not begin the turn")),
    };
    match (end.outcome, end.why) {
        (Outcome::Turn, _) => {
            let reply = end.payload.and_then(|index| payloads.get(index)).cloned().unwrap_or_default();
            turn_reply::read(&reply, generation, payload_limit).map(RemoteReply::Decided)
        }
        (Outcome::Fail, _) => Ok(RemoteReply::Stuck(outcome::failure_text(&end))),
        (Outcome::Release, Some(ReleaseReason::UnknownKind)) => {
            Ok(RemoteReply::Released(UNKNOWN_KIND_PAUSE, "the worker does not know the kind".to_owned()))
        }
        (Outcome::Release, Some(ReleaseReason::Draining)) => Ok(released("the worker drains")),
        (Outcome::Release, _) => Ok(RemoteReply::Released(TURN_PAUSE, "the worker gave the turn back".to_owned())),
        (outcome, _) => {
            Err(format!("a turn of an orchestration ends with `turn`, `fail` or `release`, not {outcome:?}"))
        }
    }
}

/// Describes a turn for the worker.
fn offer(turn: &RemoteTurn, most_bytes: usize) -> Result<Offer, String> {
    let events = turn_events::encode(turn)?;
    if events.len() > most_bytes {
        return Err(format!(
            "its history has {} bytes as a worker reads it, and one message has at most {most_bytes}; have its code continue as new before",
            events.len()
        ));
    }
    let attempt = TaskFence { task: Id(turn.task.0), fence: Fence(turn.claim) };
    let position = turn.history.len() as u64;
    let task = Task {
        task: attempt.task,
        fence: attempt.fence,
        kind: turn.kind.to_string(),
        attempt: 1,
        payload: None,
        checkpoint: None,
        queue: Some(turn.queue.to_string()).filter(|queue| queue != "default"),
        priority: None,
        deadline_ms: None,
        heartbeat_ms: None,
        group: None,
        parent: None,
        tags: std::collections::BTreeMap::new(),
        scheduled_at: None,
        items: None,
        turn: Some(Turn { events: 0, position, generation: turn.generation }),
    };
    Ok(Offer { attempt, task, payload: turn.payload.clone(), checkpoint: None, events: Some(events.into()) })
}
