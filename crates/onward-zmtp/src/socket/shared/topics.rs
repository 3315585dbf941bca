//! Subscriptions of the socket at its peers, and of peers at the socket.

use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};

use super::state::Shared;
use crate::protocol::{Message, SocketType};
use crate::socket::connection::pipe::Pipe;
use crate::socket::connection::queue_items::{Incoming, Outgoing};
use crate::socket::error::Result;
use crate::socket::peers::peer_table::PeerTable;

impl Shared {
    /// Records the subscription of a peer. Returns the notice for an XPUB to receive.
    pub(in crate::socket) fn subscribed(&self, pipe: &Arc<Pipe>, topic: &Bytes) -> Option<Message> {
        if self.options.is_manual {
            return Some(notice(1, topic));
        }
        let is_new = self.subscribers().subscribe(pipe, topic);
        (self.socket_type == SocketType::Xpub && (is_new || self.options.is_verbose)).then(|| notice(1, topic))
    }

    /// Records a cancellation by a peer. Returns the notice for an XPUB to receive.
    pub(in crate::socket) fn cancelled(&self, pipe: &Arc<Pipe>, topic: &Bytes) -> Option<Message> {
        if self.options.is_manual {
            return Some(notice(0, topic));
        }
        let was_last = self.subscribers().cancel(pipe.id, topic);
        (self.socket_type == SocketType::Xpub && (was_last || self.options.is_verbose)).then(|| notice(0, topic))
    }

    /// Adds or cancels a subscription of a peer, as the program decided. Returns `false` if the
    /// peer has disconnected.
    pub(in crate::socket) fn decide_topic(&self, peer: u64, topic: &Bytes, is_subscribed: bool) -> bool {
        let peer_table = self.peer_table();
        let Some(pipe) = peer_table.by_id(peer) else { return false };
        // This happens under the lock of the peer table, so that the peer's end removes the
        // subscription.
        if is_subscribed {
            self.subscribers().subscribe(pipe, topic);
        } else {
            self.subscribers().cancel(peer, topic);
        }
        true
    }

    /// Subscribes to a topic at all current and future peers.
    pub(in crate::socket) fn subscribe(&self, topic: Bytes) -> Result<()> {
        let mut peer_table = self.peer_table();
        if peer_table.subscriptions.subscribe(&topic)? {
            Self::send_to_peers(&peer_table, &Outgoing::Subscribe(topic));
        }
        Ok(())
    }

    /// Cancels a subscription.
    pub(in crate::socket) fn cancel(&self, topic: &Bytes) {
        let mut peer_table = self.peer_table();
        if peer_table.subscriptions.cancel(topic) {
            Self::send_to_peers(&peer_table, &Outgoing::Cancel(topic.clone()));
        }
    }

    /// Sends a subscription or a cancellation to all peers. The caller holds the lock of the
    /// peer table, so that a peer that connects at the same time gets it exactly once.
    fn send_to_peers(peer_table: &PeerTable, item: &Outgoing) {
        for pipe in &peer_table.connected {
            pipe.outgoing.push_uncounted(item.clone());
        }
    }

    /// Removes subscriptions that the program made for a peer that was disconnecting. The peer has
    /// left the peer table, so the program cannot add more.
    pub(super) fn forget_decisions(&self, pipe: &Pipe) {
        if self.options.is_manual {
            self.subscribers().forget(pipe.id);
        }
    }

    pub(super) fn forget_subscriptions(&self, pipe: &Pipe) {
        if !self.publishes() {
            return;
        }
        let topics = self.subscribers().forget(pipe.id);
        if self.socket_type == SocketType::Xpub {
            for topic in topics {
                pipe.incoming.push_over_high_water_mark(Incoming::Message(notice(0, &topic)));
            }
        }
    }
}

/// Returns the notice that an XPUB receives about a topic: 1 or 0, then the topic.
pub(in crate::socket) fn notice(first: u8, topic: &[u8]) -> Message {
    let mut frame = BytesMut::with_capacity(1 + topic.len());
    frame.put_u8(first);
    frame.put_slice(topic);
    Message::from(frame.freeze())
}
