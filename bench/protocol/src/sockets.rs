//! The variables of the rows of sockets.

use serde::{Deserialize, Serialize};

/// A row of sockets: their types and connections, and when messages are sent and received.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sockets {
    /// The types of the sockets.
    pub pair: Pair,
    /// The transport between the sockets.
    pub transport: Transport,
    /// The order in which messages are sent and received.
    pub shape: Shape,
    /// The number of sockets that send to the receiving socket.
    #[serde(default = "one")]
    pub peers: usize,
}

fn one() -> usize {
    1
}

/// The types of the sending and the receiving socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pair {
    /// PUSH to PULL.
    PushPull,
    /// DEALER to ROUTER.
    DealerRouter,
}

/// The transport between sockets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Transport {
    /// A Unix stream.
    Ipc,
    /// TCP over the loopback interface.
    Tcp,
}

/// The order in which messages are sent and received.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Shape {
    /// Sends and receives at the same time, with a task for each socket.
    Stream,
    /// As `Stream`, with many messages sent and received in one call.
    Many,
    /// One task sends 1024 messages, then receives 1024.
    Batch,
    /// One task sends a message out and back, repeatedly.
    RoundTrip,
    /// As `Stream`; the figure is allocations.
    Allocations,
    /// Each socket sends at a fixed rate; the figure is the latency.
    Paced,
    /// As `Paced`, and one more socket sends as fast as it can.
    Flooded,
}
