//! The table of connected peers, and the backlog of messages for peers to come.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::task::{Context, Waker};

use bytes::Bytes;
use foldhash::fast::RandomState;

use super::per_peer_order::PerPeerOrder;
use crate::socket::connection::pipe::Pipe;
use crate::socket::connection::queue_items::Outgoing;
use crate::socket::error::Error;
use crate::socket::options::high_water_mark::HighWaterMark;
use crate::socket::patterns::local_subscriptions::LocalSubscriptions;
use crate::socket::queue::items::{Amount, QueueItem as _, keep_last};

/// The number of messages that a driver takes from the backlog at a time, so that other drivers get
/// some, too.
const BACKLOG_BATCH: usize = 64;

/// The peers of a socket. The lock of [`Shared`](crate::socket::shared::Shared) protects them.
#[derive(Default)]
pub(in crate::socket) struct PeerTable {
    /// The connected peers, oldest first.
    pub(in crate::socket) connected: Vec<Arc<Pipe>>,
    by_id: HashMap<u64, Arc<Pipe>, RandomState>,
    /// The peers by identity; only for a ROUTER. Peers choose their identities, so the hash has a
    /// random seed.
    by_identity: HashMap<Bytes, Arc<Pipe>, RandomState>,
    /// The number of endpoints that the socket connects to.
    pub(in crate::socket) connecting: usize,
    /// The number of endpoints that the socket is bound to.
    listening: usize,
    /// The reason of the last endpoint that refused the socket or ended by itself.
    refusal: Option<Error>,
    pub(in crate::socket) subscriptions: LocalSubscriptions,
    pub(in crate::socket) order: PerPeerOrder,
    pub(in crate::socket) is_closed: bool,
    backlog: VecDeque<Outgoing>,
    backlog_size: Amount,
    /// The task that waits for a peer, or for room in the backlog.
    sender: Option<Waker>,
}

impl PeerTable {
    pub(in crate::socket) fn add(&mut self, pipe: Arc<Pipe>) {
        self.by_id.insert(pipe.id, pipe.clone());
        if !pipe.routing_id.is_empty() {
            self.by_identity.insert(pipe.routing_id.clone(), pipe.clone());
        }
        self.connected.push(pipe);
    }

    pub(in crate::socket) fn remove(&mut self, pipe: &Pipe) {
        self.connected.retain(|known| known.id != pipe.id);
        self.by_id.remove(&pipe.id);
        // A newer connection may have taken over the identity.
        if self.by_identity.get(&pipe.routing_id).is_some_and(|known| known.id == pipe.id) {
            self.by_identity.remove(&pipe.routing_id);
        }
    }

    pub(in crate::socket) fn by_id(&self, id: u64) -> Option<&Arc<Pipe>> {
        self.by_id.get(&id)
    }

    pub(in crate::socket) fn by_identity(&self, identity: &[u8]) -> Option<&Arc<Pipe>> {
        self.by_identity.get(identity)
    }

    /// Registers `context` to be woken when a peer connects or disconnects.
    pub(in crate::socket) fn wait(&mut self, context: &Context<'_>) {
        match &self.sender {
            Some(known) if known.will_wake(context.waker()) => {}
            _ => self.sender = Some(context.waker().clone()),
        }
    }

    /// Returns the waker of the task that waits for a change. The caller wakes it after it has
    /// released the lock.
    #[must_use]
    pub(in crate::socket) fn take_sender(&mut self) -> Option<Waker> {
        self.sender.take()
    }

    /// Counts one more endpoint to connect to. An earlier refusal is forgotten, because the new
    /// endpoint may accept.
    pub(in crate::socket) fn begin_connecting(&mut self) {
        self.connecting += 1;
        self.refusal = None;
    }

    /// Counts one less endpoint to connect to.
    pub(in crate::socket) fn end_connecting(&mut self, refusal: Option<Error>) {
        self.connecting = self.connecting.saturating_sub(1);
        self.refusal = refusal.or(self.refusal.take());
    }

    /// Counts one more endpoint that the socket is bound to.
    pub(in crate::socket) fn begin_listening(&mut self) {
        self.listening += 1;
        self.refusal = None;
    }

    /// Counts one less endpoint that the socket is bound to.
    pub(in crate::socket) fn end_listening(&mut self, reason: Option<Error>) {
        self.listening = self.listening.saturating_sub(1);
        self.refusal = reason.or(self.refusal.take());
    }

    /// Returns the reason of the refusal if the socket has no peer and no way to get one.
    pub(in crate::socket) fn refusal(&self) -> Option<&Error> {
        let is_alone = self.connected.is_empty() && self.connecting == 0 && self.listening == 0;
        self.refusal.as_ref().filter(|_| is_alone)
    }

    pub(in crate::socket) fn backlog_size(&self) -> Amount {
        self.backlog_size
    }

    /// Returns true if the backlog has room for one more message.
    pub(in crate::socket) fn backlog_has_room(&self, high_water_mark: HighWaterMark) -> bool {
        self.backlog_size.messages < high_water_mark.messages && self.backlog_size.bytes < high_water_mark.bytes
    }

    pub(in crate::socket) fn push_backlog(&mut self, item: Outgoing) {
        self.backlog_size.add(&item);
        self.backlog.push_back(item);
    }

    /// Puts messages that a peer did not get back into the backlog, in order. Messages that the
    /// driver had taken go to the front. Messages still in the queue go to the end, because they
    /// were sent later than those in the backlog.
    pub(in crate::socket) fn return_to_backlog(&mut self, taken: VecDeque<Outgoing>, queued: VecDeque<Outgoing>) {
        for item in into_single_messages(taken).into_iter().rev() {
            self.backlog_size.add(&item);
            self.backlog.push_front(item);
        }
        into_single_messages(queued).into_iter().for_each(|item| self.push_backlog(item));
    }

    /// Drops all of the backlog but its last message.
    pub(in crate::socket) fn keep_last(&mut self) {
        let dropped = keep_last(&mut self.backlog);
        self.backlog_size.messages -= dropped.messages;
        self.backlog_size.bytes -= dropped.bytes;
    }

    /// Takes a batch from the backlog. Returns its size.
    pub(in crate::socket) fn take_backlog(&mut self, taken: &mut VecDeque<Outgoing>) -> Amount {
        let mut size = Amount::default();
        for item in self.backlog.drain(..self.backlog.len().min(BACKLOG_BATCH)) {
            size.add(&item);
            taken.push_back(item);
        }
        self.backlog_size.messages -= size.messages;
        self.backlog_size.bytes -= size.bytes;
        size
    }

    /// Returns the amount that waits to be sent to any peer.
    pub(in crate::socket) fn outgoing_size(&self) -> Amount {
        sum(self.backlog_size, self.connected.iter().map(|pipe| pipe.outgoing.size()))
    }

    /// Returns the amount that was received from any peer and waits to be read, including
    /// `unread_backlog` of ended connections.
    pub(in crate::socket) fn incoming_size(&self, unread_backlog: Amount) -> Amount {
        sum(unread_backlog, self.connected.iter().map(|pipe| pipe.incoming.size()))
    }
}

fn sum(first: Amount, sizes: impl Iterator<Item = Amount>) -> Amount {
    sizes.fold(first, |sum, size| Amount { messages: sum.messages + size.messages, bytes: sum.bytes + size.bytes })
}

/// Splits the items into single messages, because the backlog is shared out among peers by message.
fn into_single_messages(items: VecDeque<Outgoing>) -> VecDeque<Outgoing> {
    let mut messages = VecDeque::with_capacity(count_messages(&items));
    for item in items {
        match item {
            Outgoing::Message(_) => messages.push_back(item),
            Outgoing::Run(run) => messages.extend(run.map(Outgoing::Message)),
            Outgoing::Hello(_) | Outgoing::Subscribe(_) | Outgoing::Cancel(_) => {}
        }
    }
    messages
}

/// Returns the number of messages in the items.
pub(in crate::socket) fn count_messages(items: &VecDeque<Outgoing>) -> usize {
    items.iter().map(|item| item.size().messages).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::Message;

    fn item(text: &'static str) -> Outgoing {
        Outgoing::Message(Message::from(text))
    }

    fn texts(items: &VecDeque<Outgoing>) -> Vec<String> {
        items.iter().map(|item| format!("{item:?}")).collect()
    }

    #[test]
    fn what_is_given_back_goes_where_it_would_be_had_it_never_left() {
        let mut peer_table = PeerTable::default();
        peer_table.push_backlog(item("three"));
        peer_table.return_to_backlog(VecDeque::from([item("one"), item("two")]), VecDeque::from([item("four")]));
        let mut taken = VecDeque::new();
        assert_eq!(peer_table.take_backlog(&mut taken).messages, 4);
        assert_eq!(texts(&taken), texts(&VecDeque::from([item("one"), item("two"), item("three"), item("four")])));
        assert_eq!(peer_table.backlog_size().bytes, 0);
    }

    #[test]
    fn subscriptions_of_a_lost_peer_are_not_given_back() {
        let mut peer_table = PeerTable::default();
        let subscription = || Outgoing::Subscribe(Bytes::from("a"));
        peer_table.return_to_backlog(VecDeque::from([subscription(), item("one")]), VecDeque::from([subscription()]));
        assert_eq!(peer_table.backlog_size().messages, 1);
    }
}
