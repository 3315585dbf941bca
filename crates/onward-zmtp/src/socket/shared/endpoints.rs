//! The number of endpoints, and the reason why the last one ended.

use std::sync::atomic::Ordering;

use super::state::Shared;
use crate::socket::endpoint::Endpoint;
use crate::socket::error::{Error, Result};
use crate::socket::monitor::events::MonitorEvent;
use crate::socket::peers::peer_table::PeerTable;

impl Shared {
    /// Counts one more endpoint to connect to.
    pub(in crate::socket) fn begin_connecting(&self) {
        self.change_endpoint_counts(PeerTable::begin_connecting);
    }

    /// Counts one less endpoint to connect to. `refusal` is the reason, if the program did not end
    /// it.
    pub(in crate::socket) fn end_connecting(&self, refusal: Option<Error>) {
        if refusal.is_some() {
            self.was_refused.store(true, Ordering::Release);
        }
        self.change_endpoint_counts(|peer_table| peer_table.end_connecting(refusal));
        self.wake_refused();
    }

    /// Counts and reports one more endpoint that the socket is bound to.
    pub(in crate::socket) fn begin_listening(&self, endpoint: &Endpoint) {
        self.change_endpoint_counts(PeerTable::begin_listening);
        self.report(MonitorEvent::Listening { endpoint: endpoint.clone() });
    }

    /// Counts and reports one less endpoint that the socket is bound to. `reason` is the reason, if
    /// the program did not end it.
    pub(in crate::socket) fn end_listening(&self, endpoint: &Endpoint, reason: Option<Error>) {
        if reason.is_some() {
            self.was_refused.store(true, Ordering::Release);
        }
        self.change_endpoint_counts(|peer_table| peer_table.end_listening(reason));
        self.wake_refused();
        self.report(MonitorEvent::ListeningEnded { endpoint: endpoint.clone() });
    }

    /// Changes the counts of endpoints, and wakes a sender that waits for a peer.
    pub(super) fn change_endpoint_counts(&self, change: impl FnOnce(&mut PeerTable)) {
        let mut peer_table = self.peer_table();
        change(&mut peer_table);
        let sender = peer_table.take_sender();
        drop(peer_table);
        if let Some(sender) = sender {
            sender.wake();
        }
    }

    /// Wakes the receiver, because it may be waiting without any peer left.
    pub(super) fn wake_refused(&self) {
        if self.was_refused.load(Ordering::Acquire) {
            self.sources.wake_reader();
        }
    }

    /// Returns the reason why no message will come, if every peer refused the socket and all
    /// messages were read. Costs one load otherwise.
    #[inline]
    pub(in crate::socket) fn refusal(&self) -> Option<Error> {
        if self.was_refused.load(Ordering::Acquire) { self.look_for_refusal() } else { None }
    }

    /// Returns the reason why no message can be sent, if every peer refused the socket. Costs one
    /// load otherwise.
    #[inline]
    pub(in crate::socket) fn check_reachable(&self) -> Result<()> {
        let refusal =
            if self.was_refused.load(Ordering::Acquire) { self.peer_table().refusal().cloned() } else { None };
        refusal.map_or(Ok(()), Err)
    }

    #[cold]
    fn look_for_refusal(&self) -> Option<Error> {
        let peer_table = self.peer_table();
        let unread = peer_table.incoming_size(self.unread_backlog.size()).messages;
        peer_table.refusal().filter(|_| unread == 0).cloned()
    }
}
