//! Counters of a socket.

use super::queue::Done;

/// What is on its way through a socket, and what was lost in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Statistics {
    /// Peers that are connected.
    pub peers: usize,
    /// What waits to be sent, to connected peers and to whoever will be.
    pub outgoing: QueueSize,
    /// What was received and waits for the program, from those who are connected and those who were. What it has just taken may count for a
    /// while.
    pub incoming: QueueSize,
    /// Messages that were given to the socket and will not arrive, or may not have: a peer's queue was full (PUB), a peer is gone (ROUTER, REP,
    /// PUB), or a connection ended while they were being written.
    pub dropped: u64,
    /// Messages that were received and not given to the program: they came to a type that receives none, or an answer came too late.
    pub discarded: u64,
}

/// How full queues are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct QueueSize {
    /// Messages.
    pub messages: usize,
    /// Payload, in bytes.
    pub bytes: usize,
}

impl From<Done> for QueueSize {
    fn from(size: Done) -> Self {
        Self { messages: size.messages, bytes: size.bytes }
    }
}
