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
        let header =
            serde_json::to_vec(&task).map_or(0, |task| task.len()) + INDEX_BYTES + events.len() * INDEX_DIGITS;
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
