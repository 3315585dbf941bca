//! Counters of a socket.

use crate::socket::queue::items::Amount;

/// A snapshot of the messages in a socket, and counters of those it lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Statistics {
    /// The number of connected peers.
    pub peers: usize,
    /// Messages that wait to be sent, to connected peers and to peers to come.
    pub outgoing: QueueSize,
    /// Messages that were received and wait for the program, from current and former peers.
    /// Messages that the program has just taken may still count for a while.
    pub incoming: QueueSize,
    /// The number of messages that were given to the socket and will not arrive, or may not have
    /// arrived. The reasons are: the queue of a peer was full (PUB), a peer is gone (ROUTER, REP,
    /// PUB), or a connection ended while they were being written.
    pub dropped: u64,
    /// The number of messages that were received and not given to the program: the socket type
    /// receives none, or a reply came too late.
    pub discarded: u64,
}

/// The fill level of queues.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct QueueSize {
    /// The number of messages.
    pub messages: usize,
    /// The size of their payload, in bytes.
    pub bytes: usize,
}

impl From<Amount> for QueueSize {
    fn from(size: Amount) -> Self {
        Self { messages: size.messages, bytes: size.bytes }
    }
}
