//! The lengths of topics, by which the topics that a frame begins with are found.

use std::collections::BTreeMap;

/// The number of topics of each length.
///
/// A frame needs one look-up for each different length, however many topics there are and however
/// long they are. No operation recurses.
#[derive(Debug, Default)]
pub(crate) struct TopicLengths(BTreeMap<usize, usize>);

impl TopicLengths {
    pub(crate) fn add(&mut self, topic: &[u8]) {
        *self.0.entry(topic.len()).or_default() += 1;
    }

    /// Removes a topic that was added.
    pub(crate) fn remove(&mut self, topic: &[u8]) {
        if let Some(topics) = self.0.get_mut(&topic.len()) {
            *topics -= 1;
            if *topics == 0 {
                self.0.remove(&topic.len());
            }
        }
    }

    /// Returns the prefixes of a frame that have the length of a topic, shortest first.
    pub(crate) fn prefixes<'a>(&'a self, frame: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
        self.0.range(..=frame.len()).map(|(length, _)| &frame[..*length])
    }
}
