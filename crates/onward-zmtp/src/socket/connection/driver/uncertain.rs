//! The messages of which it is unknown whether they arrive.

use std::collections::VecDeque;

/// The messages that are in the write buffer or partly written, so that it is unknown whether they
/// arrive.
#[derive(Debug, Default)]
pub(super) struct Uncertain {
    /// The batches: the position in the whole output at which the last message of each ends, and
    /// its number of messages.
    batches: VecDeque<(u64, usize)>,
}

impl Uncertain {
    pub(super) fn encoded(&mut self, messages: usize, end: u64) {
        if messages > 0 {
            self.batches.push_back((end, messages));
        }
    }

    pub(super) fn written(&mut self, total: u64) {
        while self.batches.front().is_some_and(|(end, _)| *end <= total) {
            self.batches.pop_front();
        }
    }

    pub(super) fn messages(&self) -> usize {
        self.batches.iter().map(|(_, messages)| messages).sum()
    }
}
