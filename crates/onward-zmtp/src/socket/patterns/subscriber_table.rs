//! The subscriptions of the peers, on the publisher's side.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use bytes::Bytes;
use foldhash::fast::RandomState;

use crate::protocol::topic_lengths::TopicLengths;
use crate::socket::connection::pipe::Pipe;

type Map<K, V> = HashMap<K, V, RandomState>;

/// The subscriptions of all peers. The connection of a peer limits the number of its subscriptions.
///
/// No function here recurses, so a topic cannot overflow the stack.
#[derive(Default)]
pub(in crate::socket) struct SubscriberTable {
    subscribers: Map<Bytes, Map<u64, Subscriber>>,
    lengths: TopicLengths,
    /// The topics of each peer.
    topics_by_peer: Map<u64, HashSet<Bytes, RandomState>>,
    publications: u64,
}

struct Subscriber {
    pipe: Arc<Pipe>,
    /// The number of its subscriptions.
    count: u64,
}

impl SubscriberTable {
    /// Adds a subscription. Returns true if it is the first to this topic.
    pub(in crate::socket) fn subscribe(&mut self, pipe: &Arc<Pipe>, topic: &Bytes) -> bool {
        let subscribers = self.subscribers.entry(topic.clone()).or_default();
        let is_new = subscribers.is_empty();
        subscribers.entry(pipe.id).or_insert_with(|| Subscriber { pipe: pipe.clone(), count: 0 }).count += 1;
        self.topics_by_peer.entry(pipe.id).or_default().insert(topic.clone());
        if is_new {
            self.lengths.add(topic);
        }
        is_new
    }

    /// Cancels one subscription. Returns true if it was the last to this topic.
    pub(in crate::socket) fn cancel(&mut self, peer: u64, topic: &Bytes) -> bool {
        let Some(subscriber) = self.subscribers.get_mut(topic).and_then(|of_topic| of_topic.get_mut(&peer)) else {
            return false;
        };
        subscriber.count -= 1;
        if subscriber.count > 0 {
            return false;
        }
        if let Some(topics) = self.topics_by_peer.get_mut(&peer) {
            topics.remove(topic);
        }
        self.remove(peer, topic)
    }

    /// Cancels all subscriptions of a peer. Returns the topics that have no subscriber left.
    pub(in crate::socket) fn forget(&mut self, peer: u64) -> Vec<Bytes> {
        let topics = self.topics_by_peer.remove(&peer).unwrap_or_default();
        topics.into_iter().filter(|topic| self.remove(peer, topic)).collect()
    }

    fn remove(&mut self, peer: u64, topic: &Bytes) -> bool {
        let Some(subscribers) = self.subscribers.get_mut(topic) else { return false };
        subscribers.remove(&peer);
        if !subscribers.is_empty() {
            return false;
        }
        self.subscribers.remove(topic);
        self.lengths.remove(topic);
        true
    }

    /// Calls `found` once with each peer that is subscribed to a prefix of this frame. The cost is
    /// linear in the number of different topic lengths and in the number of peers found.
    pub(super) fn each_match(&mut self, frame: &[u8], mut found: impl FnMut(&Arc<Pipe>)) {
        self.publications += 1;
        for prefix in self.lengths.prefixes(frame) {
            let Some(subscribers) = self.subscribers.get(prefix) else { continue };
            for subscriber in subscribers.values().filter(|subscriber| subscriber.pipe.is_first(self.publications)) {
                found(&subscriber.pipe);
            }
        }
    }
}
