//! The limits of the sockets. [`protocol::bounds`](crate::protocol::bounds) has the limits of what
//! one peer may send.

use std::time::Duration;

/// The default high-water mark in messages of a queue to or from one peer.
pub const HIGH_WATER_MARK_MESSAGES: usize = 1000;

/// The default high-water mark in bytes of payload of a queue to or from one peer.
pub const HIGH_WATER_MARK_BYTES: usize = 16 * 1024 * 1024;

/// The number of connections of one listener that may be in their handshakes at a time. The next
/// one replaces the oldest.
pub const PENDING_HANDSHAKES: usize = 1024;

/// The default limit of peers of one socket at a time.
pub const PEERS: usize = 65_536;

/// The number of endpoints that one socket may be connected and bound to at a time.
pub const ENDPOINTS: usize = 4096;

/// The number of different topics that one socket may be subscribed to at a time.
pub const SUBSCRIPTIONS: usize = 65_536;

/// The number of items at which a queue removes unsent subscriptions that were cancelled. Later on,
/// it is twice the number left.
pub const COMPACT_ITEMS: usize = 1024;

/// The number of events that a monitor keeps for a late reader.
pub const MONITOR_EVENTS: usize = 256;

/// The default time for which a closed socket continues to send queued messages.
pub const LINGER: Duration = Duration::from_secs(1);

/// The default delay before the first reconnect.
pub const RECONNECT_FIRST: Duration = Duration::from_millis(100);

/// The shortest delay between two attempts to connect, before it is multiplied by a random number.
/// Options cannot lower it.
pub const RECONNECT_SHORTEST: Duration = Duration::from_millis(1);

/// The default of the longest delay between two attempts to connect.
pub const RECONNECT_LONGEST: Duration = Duration::from_secs(5);

/// The number of times in a row that a server of CURVE may close the connection without a reply.
/// Then the client takes it for a refusal.
pub const UNANSWERED_HANDSHAKES: u32 = 3;

/// The time for which a client that greets in steps waits for the greeting of the server, before it
/// sends the rest of its own.
pub const GREETING_STEP: Duration = Duration::from_secs(1);

/// The default time limit of one attempt to connect a stream.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The pause of a listener after the operating system could not accept a connection, for example
/// because no file descriptors are left.
pub const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The number of connections that the operating system keeps for a listener until they are
/// accepted.
pub const ACCEPT_QUEUE: i32 = 1024;

/// The size of the buffers requested from the operating system for a Unix stream, in bytes each
/// way. The system's own default is too small for batches. Data much larger than one batch does not
/// stay in a processor's cache until it is read.
pub const IPC_BUFFER_BYTES: usize = 384 * 1024;

/// The longest text of an endpoint, in bytes.
pub const ENDPOINT_BYTES: usize = 1024;

/// The number of pieces that one write gathers. The header and the payload of a large message are
/// two.
pub const WRITE_PIECES: usize = 128;

/// The least number of messages of each peer that are read ahead of the program, if the high-water
/// mark allows it. It holds for any number of peers that share one high-water mark.
pub const READ_AHEAD_MESSAGES: usize = 64;

/// The idle time after which a connection gives back the memory that only a busy one needs. Until
/// then it may soon be busy again.
pub const IDLE_SHRINK_AFTER: Duration = Duration::from_millis(10);

/// The memory that an idle connection keeps for each of the lists and buffers of its queues, in
/// bytes. It suffices for a few short messages at a time.
pub const IDLE_QUEUE_BYTES: usize = 1024;

/// The number of bytes that the task of a connection writes and reads before it yields to other
/// tasks of the runtime.
pub const TURN_BYTES: usize = 256 * 1024;

/// The limit of [`TURN_BYTES`] for a socket that has other peers, so that none of them waits long
/// for a peer that sends much.
pub const SHARED_TURN_BYTES: usize = 64 * 1024;
