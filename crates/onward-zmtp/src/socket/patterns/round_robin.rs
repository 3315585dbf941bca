//! The round robin of peers for sending.

use std::sync::Arc;
use std::task::{Context, Poll};

use crate::protocol::Message;
use crate::socket::connection::pipe::Pipe;
use crate::socket::error::{Error, Result};
use crate::socket::shared::Shared;

/// The sender's own list of peers. It is refreshed when a peer has connected or disconnected, so a
/// send takes no lock of the peer table.
#[derive(Default)]
pub(in crate::socket) struct RoundRobin {
    version: u64,
    pipes: Vec<Arc<Pipe>>,
    next: usize,
}

impl RoundRobin {
    /// Queues the message in `slot` for the next peer that has room. Without any peer it goes to
    /// the backlog if `may_wait_for_peer`. Returns the index of the [peer](Self::pipe). On
    /// `Pending` the message is still in `slot`, and the task is woken if there is a context.
    pub(in crate::socket) fn poll_send(
        &mut self,
        shared: &Shared,
        mut context: Option<&mut Context<'_>>,
        slot: &mut Option<Message>,
        may_wait_for_peer: bool,
    ) -> Poll<Result<Option<usize>>> {
        loop {
            self.refresh(shared);
            if self.pipes.is_empty() {
                let version = self.version;
                match poll_without_peers(shared, version, context.as_deref_mut(), slot, may_wait_for_peer) {
                    Poll::Ready(Ok(true)) => return Poll::Ready(Ok(None)),
                    Poll::Ready(Ok(false)) => continue,
                    Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                    Poll::Pending => return Poll::Pending,
                }
            }
            if let Some(index) = self.offer(slot) {
                return Poll::Ready(Ok(Some(index)));
            }
            let Some(context) = context.as_deref_mut() else { return Poll::Pending };
            // Room may have appeared between the offer and the registration.
            if !self.wait(shared, context) {
                return Poll::Pending;
            }
        }
    }

    /// Queues messages for the only peer, as many of the first as it has room for. Returns zero if
    /// there are several peers.
    #[inline]
    pub(in crate::socket) fn offer_each(&mut self, shared: &Shared, messages: &mut [Message]) -> usize {
        self.refresh(shared);
        match &self.pipes[..] {
            [pipe] => pipe.send_each(messages, &shared.send_limits).unwrap_or(0),
            _ => 0,
        }
    }

    /// Returns the peer that a message was just queued for.
    pub(super) fn pipe(&self, index: usize) -> Option<Arc<Pipe>> {
        self.pipes.get(index).cloned()
    }

    /// Returns the peers, oldest first.
    pub(super) fn pipes(&mut self, shared: &Shared) -> &[Arc<Pipe>] {
        self.refresh(shared);
        &self.pipes
    }

    #[inline]
    fn refresh(&mut self, shared: &Shared) {
        if shared.version() != self.version {
            self.reload(shared);
        }
    }

    #[cold]
    fn reload(&mut self, shared: &Shared) {
        let peer_table = shared.peer_table();
        self.version = shared.version();
        self.pipes.clear();
        if !peer_table.is_closed {
            self.pipes.extend(peer_table.connected.iter().cloned());
        }
    }

    /// Queues the message for the next peer with room. Returns the index of that peer.
    #[inline]
    fn offer(&mut self, slot: &mut Option<Message>) -> Option<usize> {
        for _ in 0..self.pipes.len() {
            let index = if self.next < self.pipes.len() { self.next } else { 0 };
            self.next = index + 1;
            if self.pipes[index].send(slot).is_ok() {
                return Some(index);
            }
        }
        None
    }

    /// Registers the task to be woken. Returns true if something has changed already.
    fn wait(&self, shared: &Shared, context: &mut Context<'_>) -> bool {
        let mut peer_table = shared.peer_table();
        if shared.version() != self.version {
            return true;
        }
        peer_table.wait(context);
        drop(peer_table);
        // A closed queue is skipped: its peer is about to leave, and that change wakes the task.
        self.pipes.iter().any(|pipe| !pipe.outgoing.is_closed() && pipe.outgoing.poll_room(context).is_ready())
    }
}

/// Sends without peers: returns `Ready(Ok(true))` if the message was put into the backlog, and
/// `Ready(Ok(false))` if there are peers after all.
fn poll_without_peers(
    shared: &Shared,
    version: u64,
    context: Option<&mut Context<'_>>,
    slot: &mut Option<Message>,
    may_wait_for_peer: bool,
) -> Poll<Result<bool>> {
    let mut peer_table = shared.peer_table();
    if peer_table.is_closed {
        return Poll::Ready(Err(Error::closed()));
    }
    if shared.version() != version {
        return Poll::Ready(Ok(false));
    }
    if let Some(refusal) = peer_table.refusal() {
        return Poll::Ready(Err(refusal.clone()));
    }
    let may_queue = may_wait_for_peer && !shared.options.waits_for_peer && peer_table.connecting > 0;
    if may_queue && (shared.options.conflates || peer_table.backlog_has_room(shared.options.send_high_water_mark)) {
        if let Some(message) = slot.take() {
            shared.push_backlog(&mut peer_table, message);
        }
        return Poll::Ready(Ok(true));
    }
    if let Some(context) = context {
        peer_table.wait(context);
    }
    Poll::Pending
}
