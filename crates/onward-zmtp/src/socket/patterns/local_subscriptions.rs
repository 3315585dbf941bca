//! The subscriptions of a socket, on the subscriber's side.

use std::collections::HashMap;

use bytes::Bytes;
use foldhash::fast::RandomState;

use crate::protocol::bounds::TOPIC_BYTES;
use crate::protocol::topic_lengths::TopicLengths;
use crate::socket::bounds::SUBSCRIPTIONS;
use crate::socket::error::{Error, Result};

/// The topics of a SUB or XSUB, with the number of subscriptions to each: two subscriptions need
/// two cancellations. Peers are notified of the first subscription and of the last cancellation.
#[derive(Default)]
pub(in crate::socket) struct LocalSubscriptions {
    counts: HashMap<Bytes, u64, RandomState>,
    lengths: TopicLengths,
}

impl LocalSubscriptions {
    /// Adds a subscription. Returns true if it is the first to its topic.
    pub(in crate::socket) fn subscribe(&mut self, topic: &Bytes) -> Result<bool> {
        if topic.len() > TOPIC_BYTES {
            return Err(Error::limit(format!("a topic has at most {TOPIC_BYTES} bytes, not {}", topic.len())));
        }
        if let Some(count) = self.counts.get_mut(topic) {
            *count += 1;
            return Ok(false);
        }
        if self.counts.len() >= SUBSCRIPTIONS {
            return Err(Error::limit(format!("a socket is subscribed to at most {SUBSCRIPTIONS} topics; cancel some")));
        }
        self.counts.insert(topic.clone(), 1);
        self.lengths.add(topic);
        Ok(true)
    }

    /// Cancels a subscription. Returns true if it was the last to its topic.
    pub(in crate::socket) fn cancel(&mut self, topic: &Bytes) -> bool {
        let Some(count) = self.counts.get_mut(topic) else { return false };
        *count -= 1;
        if *count > 0 {
            return false;
        }
        self.counts.remove(topic);
        self.lengths.remove(topic);
        true
    }

    /// Returns true if a subscription matches a message that begins with this frame.
    pub(in crate::socket) fn matches(&self, frame: &[u8]) -> bool {
        self.lengths.prefixes(frame).any(|prefix| self.counts.contains_key(prefix))
    }

    /// Returns all topics.
    pub(in crate::socket) fn topics(&self) -> impl Iterator<Item = &Bytes> {
        self.counts.keys()
    }
}
