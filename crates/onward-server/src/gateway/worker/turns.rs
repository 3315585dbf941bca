//! Turns of orchestrations whose code is in the worker.

use std::time::Duration;

use bytes::Bytes;
use onward::TaskId;
use onward::handlers::EndReport;
use onward::orchestration::{RemoteCode, RemoteEnd, RemoteFuture, RemoteReply, RemoteTurn};
use onward_protocol::bounds::MESSAGE_PAYLOAD_BYTES;
use onward_protocol::gateway::{Task, Turn};
use onward_protocol::worker::{Outcome, ReleaseReason};
use onward_protocol::{Fence, Id, TaskFence};
use tokio::sync::oneshot;

use super::event::{Event, Events};
use super::kept_turns::{KeptTurns, SeenHistory};
use super::turn_reply::DecidedTurn;
use super::{outcome, turn_events, turn_reply};
use crate::gateway::bounds::{TURN_LIMIT, TURN_PAUSE, UNKNOWN_KIND_PAUSE};
use crate::gateway::session::{EngineEnd, Input, Offer};

/// The code of a kind of orchestrations, in the worker.
pub(super) struct WorkerCode {
    pub(super) events: Events,
    /// The largest list of events, in bytes.
    pub(super) most_bytes: usize,
    /// The orchestrations whose code the worker keeps; `None` if it keeps none.
    pub(super) kept: Option<KeptTurns>,
}

impl RemoteCode for WorkerCode {
    fn run(&self, turn: RemoteTurn) -> RemoteFuture {
        let (events, most_bytes, kept) = (self.events.clone(), self.most_bytes, self.kept.clone());
        Box::pin(async move {
            let offer = match offer(&turn, most_bytes, kept.as_ref()) {
                Ok(offer) => offer,
                Err(text) => {
                    // The engine has used credit for the turn, although the session does not see
                    // the turn.
                    let _ = events.send(Event::Input(Input::NotOffered));
                    return RemoteReply::Stuck(text);
                }
            };
            let (reply, replied) = oneshot::channel();
            let (task, claim, generation) = (turn.task, turn.claim, turn.generation);
            let turn = RunningTurn { generation, reply };
            if events.send(Event::Turn { offer: Box::new(offer), turn }).is_err() {
                return released("the session of the worker is over");
            }
            match tokio::time::timeout(TURN_LIMIT, replied).await {
                Ok(Ok(ended)) => {
                    ended.note(kept.as_ref(), task, claim, generation);
                    ended.reply
                }
                Ok(Err(_)) => released("the session of the worker is over"),
                Err(_) => RemoteReply::Stuck(format!(
                    "the worker did not end a turn within {TURN_LIMIT:?}; the code of an orchestration may only await, so move the work into a task"
                )),
            }
        })
    }

    fn ended(&self, task: TaskId, claim: u32, report: EndReport) {
        if let Some(kept) = &self.kept {
            kept.ended(task, claim, matches!(report, EndReport::Durable));
        }
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
    reply: oneshot::Sender<EndedTurn>,
}

/// The end of a turn.
struct EndedTurn {
    reply: RemoteReply,
    /// The length of the history after which the worker keeps the code.
    length: Option<u64>,
}

impl EndedTurn {
    /// Notes whether the worker has the code after the turn.
    fn note(&self, kept: Option<&KeptTurns>, task: TaskId, claim: u32, generation: u32) {
        let Some(kept) = kept else { return };
        let waits = matches!(&self.reply, RemoteReply::Decided(decided) if matches!(decided.end, RemoteEnd::Wait));
        match self.length.filter(|_| waits) {
            Some(length) => kept.replied(task, claim, SeenHistory { generation, length }),
            None => kept.forget(task),
        }
    }
}

impl From<RemoteReply> for EndedTurn {
    fn from(reply: RemoteReply) -> Self {
        Self { reply, length: None }
    }
}

impl RunningTurn {
    /// Ends the turn.
    ///
    /// # Errors
    /// Returns the turn, and the reason why it cannot end in this way. It is still the worker's.
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

fn reply_of(end: EngineEnd, generation: u32, payload_limit: usize) -> Result<EndedTurn, String> {
    let (end, payloads) = match end {
        EngineEnd::Worker(end, payloads) => (end, payloads),
        EngineEnd::Crashed(why) => {
            return Ok(RemoteReply::Released(TURN_PAUSE, format!("the worker was lost in a turn: {why}")).into());
        }
        EngineEnd::Released => return Ok(released("the worker did not begin the turn").into()),
    };
    let reply = match (end.outcome, end.why) {
        (Outcome::Turn, _) => {
            let reply = end.payload.and_then(|index| payloads.get(index)).cloned().unwrap_or_default();
            let DecidedTurn { decisions, length } = turn_reply::read(&reply, generation, payload_limit)?;
            return Ok(EndedTurn { reply: RemoteReply::Decided(decisions), length });
        }
        (Outcome::Fail, _) => RemoteReply::Stuck(outcome::failure_text(&end)),
        (Outcome::Release, Some(ReleaseReason::UnknownKind)) => {
            RemoteReply::Released(UNKNOWN_KIND_PAUSE, "the worker does not know the kind".to_owned())
        }
        (Outcome::Release, Some(ReleaseReason::Draining)) => released("the worker drains"),
        (Outcome::Release, Some(ReleaseReason::History)) => released("the worker has not kept the code"),
        (Outcome::Release, _) => RemoteReply::Released(TURN_PAUSE, "the worker gave the turn back".to_owned()),
        (outcome, _) => {
            return Err(format!("a turn of an orchestration ends with `turn`, `fail` or `release`, not {outcome:?}"));
        }
    };
    Ok(reply.into())
}

/// Describes a turn for the worker.
fn offer(turn: &RemoteTurn, most_bytes: usize, kept: Option<&KeptTurns>) -> Result<Offer, String> {
    let seen = SeenHistory { generation: turn.generation, length: turn.history.len() as u64 };
    let new_only = kept.is_some_and(|kept| kept.has(turn.task, seen));
    let first = if new_only { turn.history.len() } else { 0 };
    let events = turn.history.iter().chain(&turn.arrivals).skip(first);
    let lists = turn_events::encode(events, first, turn.generation, most_bytes)?;
    check_size(turn, &lists, kept.is_some(), most_bytes)?;
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
        turn: Some(Turn { events: 0, more: Vec::new(), position, generation: turn.generation, new_only }),
    };
    Ok(Offer { attempt, task, payload: turn.payload.clone(), checkpoint: None, events: lists })
}

/// Checks that the events of a turn fit into one message. A worker that keeps no code reads one
/// list.
fn check_size(turn: &RemoteTurn, lists: &[Bytes], is_sticky: bool, most_bytes: usize) -> Result<(), String> {
    let most_bytes = if is_sticky { MESSAGE_PAYLOAD_BYTES.saturating_sub(turn.payload.len()) } else { most_bytes };
    let bytes: usize = lists.iter().map(Bytes::len).sum();
    if bytes <= most_bytes && (is_sticky || lists.len() == 1) {
        return Ok(());
    }
    Err(format!(
        "its history has {bytes} bytes as a worker reads it, and a message has at most {most_bytes}; \
         have its code continue as new before"
    ))
}
