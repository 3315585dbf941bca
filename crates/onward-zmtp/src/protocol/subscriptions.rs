//! The subscriptions of one peer.

use std::collections::HashMap;

use bytes::Bytes;

use super::error::{Error, Result};
use super::limits::Limits;
use super::topic_lengths::TopicLengths;

/// The topics of one subscriber, each with the number of its subscriptions: two subscriptions need
/// two cancellations.
///
/// No operation recurses, whatever the peer sends. Memory is bounded by [`Limits::topics`] times
/// [`Limits::topic_bytes`].
#[derive(Debug, Default)]
pub struct Subscriptions {
    counts: HashMap<Bytes, u64>,
    lengths: TopicLengths,
}

impl Subscriptions {
    /// Returns whether a message with this first frame goes to the subscriber. The time is
    /// proportional to the number of different lengths of topics.
    #[must_use]
    pub fn matches(&self, frame: &[u8]) -> bool {
        self.lengths.prefixes(frame).any(|prefix| self.counts.contains_key(prefix))
    }

    /// Returns the number of different topics.
    #[must_use]
    pub fn len(&self) -> usize {
        self.counts.len()
    }

    /// Returns whether there is no subscription.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    pub(crate) fn subscribe(&mut self, topic: &Bytes, limits: &Limits) -> Result<()> {
        if topic.len() > limits.topic_bytes {
            return Err(Error::limit("a topic", topic.len() as u64, "bytes", limits.topic_bytes as u64));
        }
        if let Some(count) = self.counts.get_mut(topic) {
            *count = count.saturating_add(1);
            return Ok(());
        }
        if self.counts.len() >= limits.topics {
            return Err(Error::limit("subscriptions", self.counts.len() as u64 + 1, "topics", limits.topics as u64));
        }
        self.counts.insert(topic.clone(), 1);
        self.lengths.add(topic);
        Ok(())
    }

    /// Cancels one subscription and returns whether there was one.
    pub(crate) fn cancel(&mut self, topic: &Bytes) -> bool {
        let Some(count) = self.counts.get_mut(topic) else { return false };
        *count -= 1;
        if *count == 0 {
            self.counts.remove(topic);
            self.lengths.remove(topic);
        }
        true
    }
}
