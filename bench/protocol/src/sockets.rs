//! What the rows of sockets vary.

use serde::{Deserialize, Serialize};

/// A row of sockets: who is connected how, and when messages are sent and received.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sockets {
    /// The types of the sockets.
    pub pair: Pair,
    /// How they are connected.
    pub transport: Transport,
    /// How messages are sent and received.
    pub shape: Shape,
    /// How many sockets send to the one that receives.
    #[serde(default = "one")]
    pub peers: usize,
}

fn one() -> usize {
    1
}

/// Who sends to whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pair {
    /// PUSH to PULL.
    PushPull,
    /// DEALER to ROUTER.
    DealerRouter,
}

/// How sockets are connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Transport {
    /// A Unix stream.
    Ipc,
    /// TCP over the loopback interface.
    Tcp,
}

/// When messages are sent and received.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Shape {
    /// At the same time, by a task for each socket.
    Stream,
    /// The same, and many taken at once.
    Many,
    /// By one task: 1024 out, then 1024 in.
    Batch,
    /// By one task: one out and back, and so on.
    RoundTrip,
    /// As `Stream`; the figure is allocations.
    Allocations,
    /// Each sends so many a second; the figure is how long they take.
    Paced,
    /// The same, and one socket more sends as fast as it can.
    Flooded,
}
