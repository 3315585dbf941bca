//! Heartbeats, progress and checkpoints.

use std::collections::HashMap;

use bytes::Bytes;
use onward_protocol::gateway::{Alive, RefusedCheckpoint};
use onward_protocol::worker::Beat;
use onward_protocol::{Code, Error, GatewayMessage, TaskFence};

use super::io::Output;
use super::state::Session;
use crate::gateway::bounds;

/// The beats whose checkpoints are on the way to the store.
#[derive(Debug, Default)]
pub(super) struct PendingBeats(HashMap<u64, PendingBeat>);

#[derive(Debug)]
struct PendingBeat {
    alive: Alive,
    /// The number of checkpoints that are on the way.
    missing: usize,
}

impl Session {
    pub(super) fn beat(&mut self, beat: Beat, payloads: &[Bytes], output: &mut Vec<Output>) {
        if self.beats.0.len() == bounds::PENDING_BEATS {
            let text = format!("{} beats wait for their checkpoints, which is the bound", bounds::PENDING_BEATS);
            return self.fail(&Error::new(Code::TooMany, text), output);
        }
        let mut alive = Alive { n: beat.n, ..Alive::default() };
        let mut missing = 0;
        for task in beat.tasks.unwrap_or_default() {
            let Some(held) = self.held.get_mut(task.attempt) else {
                alive.lost.push(task.attempt.task);
                continue;
            };
            output.push(Output::Beat(task.attempt, task.progress));
            if let Some(bytes) = task.checkpoint.and_then(|index| payloads.get(index)) {
                missing += 1;
                held.checkpoints += 1;
                output.push(Output::Checkpoint { n: beat.n, attempt: task.attempt, bytes: bytes.clone() });
            }
        }
        if missing == 0 {
            self.send(GatewayMessage::Alive(alive), output);
        } else {
            self.beats.0.insert(beat.n, PendingBeat { alive, missing });
        }
    }

    pub(super) fn checkpoint_kept(
        &mut self,
        n: u64,
        attempt: TaskFence,
        refused: Option<String>,
        output: &mut Vec<Output>,
    ) {
        if let Some(held) = self.held.get_mut(attempt) {
            held.checkpoints = held.checkpoints.saturating_sub(1);
            if held.checkpoints == 0
                && let Some(end) = held.deferred.take()
            {
                output.push(Output::End(attempt, end));
            }
        }
        let task = attempt.task;
        let Some(pending) = self.beats.0.get_mut(&n) else { return };
        pending.alive.refused.extend(refused.map(|why| RefusedCheckpoint { task, why }));
        pending.missing = pending.missing.saturating_sub(1);
        if pending.missing == 0
            && let Some(pending) = self.beats.0.remove(&n)
        {
            self.send(GatewayMessage::Alive(pending.alive), output);
        }
    }
}
