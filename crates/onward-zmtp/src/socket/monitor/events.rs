//! The events of a socket's connections.

use std::sync::OnceLock;
use std::time::Duration;

use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tokio::sync::broadcast::{Receiver, Sender, channel};

use crate::socket::bounds::MONITOR_EVENTS;
use crate::socket::endpoint::Endpoint;
use crate::socket::error::Error;
use crate::socket::peers::remote_peer::RemotePeer;

/// An event of a socket.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum MonitorEvent {
    /// The socket listens. The endpoint has the port that was chosen.
    Listening {
        /// The endpoint that the socket is bound to.
        endpoint: Endpoint,
    },
    /// The socket no longer listens: it was unbound or closed, or its runtime has ended.
    ListeningEnded {
        /// The endpoint that the socket was bound to.
        endpoint: Endpoint,
    },
    /// The operating system could not accept a connection. The socket tries again.
    AcceptFailed {
        /// The endpoint that the socket is bound to.
        endpoint: Endpoint,
        /// The error of the operating system.
        reason: Error,
    },
    /// A handshake is done, and messages can be exchanged.
    Connected {
        /// The local endpoint: bound to, or connected to.
        endpoint: Endpoint,
        /// The peer at the other end.
        peer: RemotePeer,
    },
    /// The options enable [heartbeats](crate::socket::SocketOptions::heartbeat), but this peer
    /// speaks ZMTP 3.0, which has none. A failure of its machine therefore goes unnoticed.
    /// [`SocketOptions::tcp_keepalive`](crate::socket::SocketOptions::tcp_keepalive) does not need
    /// the peer's support.
    HeartbeatUnavailable {
        /// The local endpoint: bound to, or connected to.
        endpoint: Endpoint,
        /// The peer at the other end.
        peer: RemotePeer,
    },
    /// A connection failed before its handshake was done.
    ConnectionFailed {
        /// The local endpoint: bound to, or connected to.
        endpoint: Endpoint,
        /// The reason of the failure.
        reason: Error,
    },
    /// An established connection ended.
    Disconnected {
        /// The local endpoint: bound to, or connected to.
        endpoint: Endpoint,
        /// The peer that was at the other end.
        peer: RemotePeer,
        /// The reason of the end.
        reason: Error,
        /// The number of messages that were being written, so that it is unknown whether they
        /// arrived. They are not sent again. Messages that were written before and are still
        /// buffered by one of the two operating systems cannot be counted, and are not included.
        uncertain: usize,
        /// The number of messages that were queued for this peer alone and are lost with it. PUSH,
        /// DEALER and PAIR keep theirs for other peers.
        lost: usize,
    },
    /// The socket will connect again.
    WillReconnect {
        /// The endpoint that the socket connects to.
        endpoint: Endpoint,
        /// The delay before the attempt.
        after: Duration,
    },
    /// The socket no longer connects to this endpoint: it was disconnected or closed, the peer
    /// refused it for good, or its runtime has ended.
    ConnectingEnded {
        /// The endpoint that the socket connected to.
        endpoint: Endpoint,
    },
    /// The socket was closed or dropped with unsent messages, and all of its tasks have ended. The
    /// linger time was over, or the runtime ended. Messages that were queued for one peer alone are
    /// counted in [`Disconnected`](Self::Disconnected). This is the last event.
    Unsent {
        /// The number of messages.
        messages: u64,
    },
    /// The reader of events was late and lost this number of them.
    Missed(u64),
}

/// A reader of a socket's events, starting when the monitor is created. It keeps [`MONITOR_EVENTS`]
/// events for a late reader.
#[derive(Debug)]
pub struct Monitor(Receiver<MonitorEvent>);

impl Monitor {
    /// Waits for the next event. Returns `None` when the socket is closed and all its connections
    /// have ended.
    ///
    /// Cancel safe.
    pub async fn next(&mut self) -> Option<MonitorEvent> {
        match self.0.recv().await {
            Ok(event) => Some(event),
            Err(RecvError::Lagged(missed)) => Some(MonitorEvent::Missed(missed)),
            Err(RecvError::Closed) => None,
        }
    }

    /// Returns the next event if there is one now.
    pub fn try_next(&mut self) -> Option<MonitorEvent> {
        match self.0.try_recv() {
            Ok(event) => Some(event),
            Err(TryRecvError::Lagged(missed)) => Some(MonitorEvent::Missed(missed)),
            Err(TryRecvError::Empty | TryRecvError::Closed) => None,
        }
    }
}

/// The sender of events. Its memory is allocated when the first monitor is created.
#[derive(Default)]
pub(in crate::socket) struct Reporter(OnceLock<Sender<MonitorEvent>>);

impl Reporter {
    pub(in crate::socket) fn monitor(&self) -> Monitor {
        Monitor(self.0.get_or_init(|| channel(MONITOR_EVENTS).0).subscribe())
    }

    pub(in crate::socket) fn report(&self, event: MonitorEvent) {
        if let Some(sender) = self.0.get() {
            // An error means that no monitor is left.
            let _ = sender.send(event);
        }
    }
}
