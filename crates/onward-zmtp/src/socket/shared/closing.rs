//! The end of a socket, and the time for which it lingers.

use std::sync::atomic::Ordering;

use tokio::time::Instant;

use super::state::Shared;

impl Shared {
    /// Closes the socket: from now on it accepts no peers and no messages, and keeps nothing for
    /// the program. Queued messages are sent for as long as the socket lingers.
    pub(in crate::socket) fn close(&self) {
        let mut peer_table = self.peer_table();
        peer_table.is_closed = true;
        let _ = self.closed_at.set(Instant::now());
        self.version.fetch_add(1, Ordering::AcqRel);
        let sender = peer_table.take_sender();
        drop(peer_table);
        if let Some(sender) = sender {
            sender.wake();
        }
        self.token.cancel();
    }

    /// Returns the time until which an ending connection may send queued messages; `None` for no
    /// limit.
    pub(in crate::socket) fn linger_deadline(&self) -> Option<Instant> {
        // An endpoint that is disconnected lingers from now on, a closed socket since its close.
        let since = self.closed_at.get().copied().unwrap_or_else(Instant::now);
        since.checked_add(self.options.linger)
    }

    pub(in crate::socket) fn is_closed(&self) -> bool {
        self.closed_at.get().is_some()
    }
}
