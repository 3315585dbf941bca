//! Peers that join and leave a socket.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio_util::sync::CancellationToken;

use super::state::Shared;
use crate::protocol::{self, SocketType};
use crate::socket::connection::inbox::Inbox;
use crate::socket::connection::pipe::Pipe;
use crate::socket::connection::queue_items::Outgoing;
use crate::socket::error::{Error, Result};
use crate::socket::options::policies::DuplicateIdentity;
use crate::socket::peers::peer_table::{PeerTable, count_messages};
use crate::socket::peers::per_peer_order::PeerKey;
use crate::socket::peers::remote_peer::RemotePeer;

impl Shared {
    /// Adds a connected peer. From now on messages are sent to it and received from it.
    ///
    /// `connector` is the number of the connector that made the connection, if this socket
    /// connected. `encodes` is true if the connection has a stream.
    pub(in crate::socket) fn attach(
        &self,
        identity: Option<&protocol::Identity>,
        connector: Option<u64>,
        stop: CancellationToken,
        encodes: bool,
        remote: RemotePeer,
    ) -> Result<Arc<Pipe>> {
        let id = self.next_id();
        let mut peer_table = self.peer_table();
        let routing_id = self.choose_routing_id(&peer_table, id, identity);
        let peer_key = match identity {
            Some(_) if !routing_id.is_empty() => Some(PeerKey::Identity(routing_id.clone())),
            _ => connector.map(PeerKey::Connector),
        };
        let pipe = Arc::new(Pipe::new(id, routing_id, stop, &self.options, self.quota.clone(), encodes));
        self.admit(&peer_table, &pipe)?;
        for topic in peer_table.subscriptions.topics() {
            pipe.outgoing.push_uncounted(Outgoing::Subscribe(topic.clone()));
        }
        peer_table.add(pipe.clone());
        self.divide_high_water_mark(&peer_table);
        // A socket that receives nothing has no order of reads to keep.
        let peer_key = peer_key.filter(|_| self.receives());
        let predecessor = peer_key.and_then(|peer_key| peer_table.order.follow(peer_key, pipe.fully_read.clone()));
        self.version.fetch_add(1, Ordering::AcqRel);
        let sender = peer_table.take_sender();
        drop(peer_table);
        if let Some(sender) = sender {
            sender.wake();
        }
        self.insert_source(&pipe, predecessor, remote)?;
        Ok(pipe)
    }

    fn admit(&self, peer_table: &PeerTable, pipe: &Pipe) -> Result<()> {
        // A closed socket accepts a peer only for the messages of its backlog.
        if peer_table.is_closed && !self.has_backlog() {
            return Err(Error::closed());
        }
        let limit = self.limit();
        if peer_table.connected.len() >= limit {
            return Err(Error::refused(format!("the socket has {limit} peers already, which is its limit")));
        }
        match peer_table.by_identity(&pipe.routing_id) {
            None => Ok(()),
            Some(known) if self.options.duplicate_identity == DuplicateIdentity::TakeOver => {
                known.stop.cancel();
                Ok(())
            }
            Some(_) => Err(Error::refused("another peer has the same identity; give them different ones")),
        }
    }

    pub(super) fn limit(&self) -> usize {
        if self.socket_type == SocketType::Pair { 1 } else { self.options.peers }
    }

    fn insert_source(
        &self,
        pipe: &Arc<Pipe>,
        predecessor: Option<CancellationToken>,
        remote: RemotePeer,
    ) -> Result<()> {
        if !self.receives() {
            return Ok(());
        }
        // This comes before the inbox, which removes the remote peer at its end.
        self.remote_peers.insert(remote.numbered(pipe.id));
        match self.sources.insert(pipe.id, Inbox::new(pipe.clone(), predecessor, self.remote_peers.clone())) {
            Ok(source) => {
                // Only this call sets it, so it cannot have been set before.
                let _ = pipe.source.set(source);
                Ok(())
            }
            // The receiving half was dropped. Dropping the error also drops the inbox, which closes
            // the queue.
            Err(error) if error.is_closed() => Ok(()),
            Err(error) => {
                self.detach(pipe, VecDeque::new());
                Err(Error::limit(error.to_string()))
            }
        }
    }

    /// Divides the high-water mark by the new number of peers. The caller holds the lock of the
    /// peer table.
    fn divide_high_water_mark(&self, peer_table: &PeerTable) {
        if self.quota.divide(self.options.receive_high_water_mark.messages, peer_table.connected.len()) {
            peer_table.connected.iter().for_each(|pipe| pipe.incoming.wake_writer());
        }
    }

    /// Stops new messages to and from this peer. Queued messages can still be sent and read.
    pub(in crate::socket) fn retire(&self, pipe: &Pipe) {
        self.end_incoming(pipe);
        let mut peer_table = self.peer_table();
        peer_table.remove(pipe);
        self.divide_high_water_mark(&peer_table);
        self.version.fetch_add(1, Ordering::AcqRel);
        let sender = peer_table.take_sender();
        drop(peer_table);
        pipe.outgoing.close();
        self.forget_decisions(pipe);
        if let Some(sender) = sender {
            sender.wake();
        }
    }

    /// Removes the peer of an ended connection. Unsent messages are kept for other peers if the
    /// socket type allows it. Received messages can still be read. Returns the number of messages
    /// that are lost.
    pub(in crate::socket) fn detach(&self, pipe: &Arc<Pipe>, unsent: VecDeque<Outgoing>) -> usize {
        self.end_incoming(pipe);
        let mut peer_table = self.peer_table();
        peer_table.remove(pipe);
        self.divide_high_water_mark(&peer_table);
        self.version.fetch_add(1, Ordering::AcqRel);
        // The lock of the peer table is held until the items are in the backlog. A sender that
        // finds the queue closed needs that lock, so its message follows these.
        let queued = pipe.outgoing.close_and_take();
        let lost = if self.may_redistribute() { 0 } else { count_messages(&unsent) + count_messages(&queued) };
        if self.may_redistribute() && !(unsent.is_empty() && queued.is_empty()) {
            peer_table.return_to_backlog(unsent, queued);
            if self.options.conflates {
                peer_table.keep_last();
            }
            self.has_backlog.store(true, Ordering::Release);
        }
        let (sender, others) = (peer_table.take_sender(), peer_table.connected.clone());
        drop(peer_table);
        self.dropped_outgoing.fetch_add(lost as u64, Ordering::Relaxed);
        self.remove_source(pipe);
        self.forget_decisions(pipe);
        self.wake_refused();
        if let Some(sender) = sender {
            sender.wake();
        }
        if self.has_backlog.load(Ordering::Acquire) {
            // The other drivers wait for their own queues, so they must be woken for the backlog.
            others.iter().for_each(|other| other.outgoing.wake_reader());
        }
        lost
    }

    /// Removes the inbox of a disconnected peer from the fair queue if it has nothing to read.
    /// Otherwise the inbox leaves once it is read. Without this, inboxes would pile up in a program
    /// that never receives.
    pub(super) fn remove_source(&self, pipe: &Pipe) {
        if let Some(source) = pipe.source.get().filter(|_| pipe.incoming.is_idle()) {
            self.sources.remove(*source);
        }
    }

    /// Ends the receipt from this peer. An XPUB is notified first. The notice belongs to this
    /// connection, so it is read before the messages of the next one.
    pub(super) fn end_incoming(&self, pipe: &Pipe) {
        self.forget_subscriptions(pipe);
        pipe.incoming.close_into(&self.unread_backlog);
        self.unread_backlog.forget(pipe.id);
    }
}
