//! What happens to a socket's connections, as events.

use std::sync::OnceLock;
use std::time::Duration;

use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tokio::sync::broadcast::{Receiver, Sender, channel};

use super::endpoint::Endpoint;
use super::error::Error;
use super::limits::MONITOR_EVENTS;
use super::origin::RemotePeer;

/// Something that happened to a socket.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum MonitorEvent {
    /// The socket listens; the endpoint has the port that was chosen.
    Listening {
        /// Where.
        endpoint: Endpoint,
    },
    /// The socket does not listen any more: it was unbound or closed.
    ListeningEnded {
        /// Where.
        endpoint: Endpoint,
    },
    /// The operating system could not accept a connection; it is tried again.
    AcceptFailed {
        /// Where.
        endpoint: Endpoint,
        /// Why.
        reason: Error,
    },
    /// A handshake is done: messages come and go.
    Connected {
        /// The endpoint of ours: bound to, or connected to.
        endpoint: Endpoint,
        /// Who is at the other end.
        peer: RemotePeer,
    },
    /// The options ask peers for [heartbeats](super::SocketOptions::heartbeat), and this one is not asked: it speaks ZMTP 3.0, which has none. If its machine
    /// is gone, nobody notices; [`SocketOptions::tcp_keepalive`](super::SocketOptions::tcp_keepalive) does not need the peer's help.
    HeartbeatUnavailable {
        /// The endpoint of ours: bound to, or connected to.
        endpoint: Endpoint,
        /// Who is at the other end.
        peer: RemotePeer,
    },
    /// A connection came to nothing, before or in its handshake.
    ConnectionFailed {
        /// The endpoint of ours: bound to, or connected to.
        endpoint: Endpoint,
        /// Why.
        reason: Error,
    },
    /// An established connection ended.
    Disconnected {
        /// The endpoint of ours: bound to, or connected to.
        endpoint: Endpoint,
        /// Who was at the other end.
        peer: RemotePeer,
        /// Why.
        reason: Error,
        /// How many messages were being written, so that nobody knows whether they arrived. They are not sent again. What was written before, and is
        /// still on its way through the operating systems of the two ends, is not among them: nobody can count that.
        uncertain: usize,
        /// How many messages were queued for this peer alone, and are lost with it. (Those of PUSH, DEALER and PAIR are kept for others.)
        lost: usize,
    },
    /// The socket will connect again.
    WillReconnect {
        /// The endpoint that it connects to.
        endpoint: Endpoint,
        /// After this time.
        after: Duration,
    },
    /// The socket does not connect to this endpoint any more: it was disconnected or closed, or the peer refused it for good.
    ConnectingEnded {
        /// The endpoint that it connected to.
        endpoint: Endpoint,
    },
    /// The socket was closed or dropped, all of its tasks have ended, and it could not send so many messages that it had accepted: the time to linger
    /// was over, or the runtime ended. Those that were queued for one peer alone are in [`Disconnected`](Self::Disconnected). It is the last event.
    Unsent {
        /// How many.
        messages: u64,
    },
    /// The reader of events was late, and so many are lost to it.
    Missed(u64),
}

/// Reads what happens to a socket from the moment in which it was made. Keeps [`MONITOR_EVENTS`] events for a reader that is late.
#[derive(Debug)]
pub struct Monitor(Receiver<MonitorEvent>);

impl Monitor {
    /// The next event; `None` when the socket is closed and all its connections have ended.
    ///
    /// Cancel safe.
    pub async fn next(&mut self) -> Option<MonitorEvent> {
        match self.0.recv().await {
            Ok(event) => Some(event),
            Err(RecvError::Lagged(missed)) => Some(MonitorEvent::Missed(missed)),
            Err(RecvError::Closed) => None,
        }
    }

    /// The next event if there is one now.
    pub fn try_next(&mut self) -> Option<MonitorEvent> {
        match self.0.try_recv() {
            Ok(event) => Some(event),
            Err(TryRecvError::Lagged(missed)) => Some(MonitorEvent::Missed(missed)),
            Err(TryRecvError::Empty | TryRecvError::Closed) => None,
        }
    }
}

/// Where events are told. The memory for them is there once somebody listens.
#[derive(Default)]
pub(super) struct Reporter(OnceLock<Sender<MonitorEvent>>);

impl Reporter {
    pub(super) fn monitor(&self) -> Monitor {
        Monitor(self.0.get_or_init(|| channel(MONITOR_EVENTS).0).subscribe())
    }

    pub(super) fn tell(&self, event: MonitorEvent) {
        if let Some(sender) = self.0.get() {
            // An error says that nobody listens any more.
            let _ = sender.send(event);
        }
    }
}
