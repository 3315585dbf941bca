//! Messages of the gateway as frames. Neighbouring tasks share a message, and so do
//! acknowledgements.

use bytes::Bytes;
use onward_protocol::gateway::{Ack, AckEnd, Tasks};
use onward_protocol::{GatewayMessage, bounds as protocol_bounds, write_message};

use crate::gateway::bounds::{ACKS_IN_MESSAGE, TASKS_HEADER_BYTES};
use crate::gateway::session::Offer;

/// The messages that wait to be sent, in order.
#[derive(Debug, Default)]
pub(in crate::gateway) struct MessageWriter {
    messages: Vec<Vec<Bytes>>,
    acks: Vec<AckEnd>,
    tasks: Tasks,
    payloads: Vec<Bytes>,
    payload_bytes: usize,
    /// The bytes of the header of `tasks`.
    header_bytes: usize,
}

/// The bytes of a task in a header that are written later: the indexes of its payloads.
const INDEX_BYTES: usize = 80;

/// The bytes of a further index, with its comma.
const INDEX_DIGITS: usize = 6;

impl MessageWriter {
    /// Adds a message of its own.
    pub(super) fn add(&mut self, message: &GatewayMessage, payloads: Vec<Bytes>) {
        self.flush();
        self.write(message, payloads);
    }

    /// Adds an acknowledgement.
    pub(super) fn add_ack(&mut self, ack: AckEnd) {
        // Tasks go out first: the order of the two kinds has no meaning for a worker.
        if self.acks.len() == ACKS_IN_MESSAGE || ack.why.is_some() {
            self.flush_acks();
        }
        self.acks.push(ack);
    }

    /// Adds a task.
    pub(super) fn add_task(&mut self, offer: Offer) {
        let Offer { mut task, payload, checkpoint, events, .. } = offer;
        let length = |bytes: &Option<Bytes>| bytes.as_ref().map_or(0, Bytes::len);
        let bytes = payload.len() + length(&checkpoint) + events.iter().map(Bytes::len).sum::<usize>();
        let header = serde_json::to_vec(&task).map_or(0, |task| task.len()) + INDEX_BYTES + events.len() * INDEX_DIGITS;
        let is_full = self.header_bytes + header > TASKS_HEADER_BYTES
            || self.payload_bytes + bytes > protocol_bounds::MESSAGE_PAYLOAD_BYTES
            || self.payloads.len() + 2 + events.len() > protocol_bounds::PAYLOADS
            || self.tasks.tasks.len() == protocol_bounds::ENTRIES;
        if is_full {
            self.flush_tasks();
        }
        self.header_bytes += header;
        self.payload_bytes += bytes;
        task.payload = Some(payload).filter(|payload| !payload.is_empty()).map(|payload| self.push(payload));
        task.checkpoint = checkpoint.map(|checkpoint| self.push(checkpoint));
        if let Some(turn) = &mut task.turn {
            let mut indexes = events.into_iter().map(|events| self.push(events));
            turn.events = indexes.next().unwrap_or_default();
            turn.more = indexes.collect();
        }
        self.tasks.tasks.push(task);
    }

    fn push(&mut self, payload: Bytes) -> usize {
        self.payloads.push(payload);
        self.payloads.len() - 1
    }

    /// Returns every message so far.
    pub(in crate::gateway) fn take(&mut self) -> Vec<Vec<Bytes>> {
        self.flush();
        std::mem::take(&mut self.messages)
    }

    fn flush(&mut self) {
        self.flush_acks();
        self.flush_tasks();
    }

    fn flush_acks(&mut self) {
        if !self.acks.is_empty() {
            let ends = std::mem::take(&mut self.acks);
            self.write(&GatewayMessage::Ack(Ack { ends }), Vec::new());
        }
    }

    fn flush_tasks(&mut self) {
        if self.tasks.tasks.is_empty() {
            return;
        }
        let payloads = std::mem::take(&mut self.payloads);
        let mut tasks = std::mem::take(&mut self.tasks);
        tasks.payloads = payloads.len();
        (self.payload_bytes, self.header_bytes) = (0, 0);
        self.write(&GatewayMessage::Tasks(tasks), payloads);
    }

    fn write(&mut self, message: &GatewayMessage, payloads: Vec<Bytes>) {
        match write_message(message, payloads) {
            Ok(frames) => self.messages.push(frames),
            // Strings, numbers and maps with string keys can always be written.
            Err(error) => tracing::error!(%error, "a message of the gateway cannot be written"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use onward_protocol::gateway::{AckResult, Task, Turn};
    use onward_protocol::{Fence, Id, TaskFence};

    use super::*;

    fn attempt(task: i64) -> TaskFence {
        TaskFence { task: Id(task), fence: Fence(1) }
    }

    /// Returns a task whose description has more than so many bytes.
    fn offer(task: i64, bytes: usize) -> Offer {
        let attempt = attempt(task);
        let task = Task {
            task: attempt.task,
            fence: attempt.fence,
            kind: "k".to_owned(),
            attempt: 1,
            payload: None,
            checkpoint: None,
            queue: None,
            priority: None,
            deadline_ms: None,
            heartbeat_ms: None,
            group: None,
            parent: None,
            tags: BTreeMap::from([("tag".to_owned(), "x".repeat(bytes))]),
            scheduled_at: None,
            items: None,
            turn: None,
        };
        Offer { attempt, task, payload: Bytes::from_static(b"p"), checkpoint: None, events: Vec::new() }
    }

    /// Reads every message, each of which must keep the bounds of the protocol.
    fn read(writer: &mut MessageWriter) -> Vec<GatewayMessage> {
        let messages = writer.take();
        messages
            .iter()
            .map(|frames| {
                assert!(frames[0].len() <= protocol_bounds::HEADER_BYTES, "a header of {} bytes", frames[0].len());
                GatewayMessage::read(frames).unwrap()
            })
            .collect()
    }

    /// Shows: M6
    #[test]
    fn tasks_with_long_descriptions_are_sent_in_headers_within_their_bound() {
        let mut writer = MessageWriter::default();
        (1..=100).for_each(|task| writer.add_task(offer(task, 4000)));
        let messages = read(&mut writer);
        let tasks = messages.iter().flat_map(|message| match message {
            GatewayMessage::Tasks(tasks) => tasks.tasks.iter().map(|task| task.task.0).collect(),
            _ => Vec::new(),
        });
        assert!(messages.len() > 1 && tasks.eq(1..=100));
    }

    /// Shows: M6
    #[test]
    fn acknowledgements_with_reasons_are_sent_in_headers_within_their_bound() {
        let mut writer = MessageWriter::default();
        for task in 1..=2000 {
            let why = (task % 2 == 0).then(|| "x".repeat(1024));
            writer.add_ack(AckEnd { attempt: attempt(task), result: AckResult::Refused, why });
        }
        let acks = read(&mut writer).into_iter().flat_map(|message| match message {
            GatewayMessage::Ack(ack) => ack.ends.into_iter().map(|end| end.attempt.task.0).collect(),
            _ => Vec::new(),
        });
        assert!(acks.eq(1..=2000));
    }

    /// Shows: W9
    #[test]
    fn the_lists_of_a_turn_have_their_indexes_in_order() {
        let mut writer = MessageWriter::default();
        let mut turn = offer(1, 1);
        turn.task.turn = Some(Turn { events: 0, more: Vec::new(), position: 9, generation: 0, new_only: false });
        turn.events = vec![Bytes::from_static(b"[1]"), Bytes::from_static(b"[2]"), Bytes::from_static(b"[3]")];
        writer.add_task(turn);
        let messages = writer.take();
        let Ok(GatewayMessage::Tasks(tasks)) = GatewayMessage::read(&messages[0]) else { panic!("no tasks") };
        let turn = tasks.tasks[0].turn.as_ref().unwrap();
        let lists = [turn.events, turn.more[0], turn.more[1]].map(|index| messages[0][1 + index].clone());
        assert_eq!(lists, ["[1]", "[2]", "[3]"]);
    }
}
