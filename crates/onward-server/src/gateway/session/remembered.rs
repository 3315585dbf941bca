//! Acknowledgements that are repeated when an end comes again.

use std::collections::{HashMap, VecDeque};

use onward_protocol::TaskFence;
use onward_protocol::gateway::AckEnd;

use crate::gateway::bounds::REMEMBERED_ACKS;

/// The newest acknowledgements of a session.
#[derive(Debug, Default)]
pub(super) struct RememberedAcks {
    acks: HashMap<TaskFence, AckEnd>,
    order: VecDeque<TaskFence>,
}

impl RememberedAcks {
    pub(super) fn add(&mut self, ack: AckEnd) {
        if self.order.len() == REMEMBERED_ACKS
            && let Some(oldest) = self.order.pop_front()
        {
            self.acks.remove(&oldest);
        }
        if self.acks.insert(ack.attempt, ack.clone()).is_none() {
            self.order.push_back(ack.attempt);
        }
    }

    pub(super) fn get(&self, attempt: TaskFence) -> Option<&AckEnd> {
        self.acks.get(&attempt)
    }
}
