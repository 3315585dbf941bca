//! Every limit of the sockets, by name. What one peer may send is limited in [`protocol::limits`](crate::protocol::limits).

use std::time::Duration;

/// How many messages a queue to or from one peer holds, unless the socket was made with another mark.
pub const HIGH_WATER_MARK_MESSAGES: usize = 1000;

/// How many bytes of payload a queue to or from one peer holds, unless the socket was made with another mark.
pub const HIGH_WATER_MARK_BYTES: usize = 16 * 1024 * 1024;

/// How many connections one listener has in their handshakes at a time; the oldest gives way to the next.
pub const PENDING_HANDSHAKES: usize = 1024;

/// How many peers one socket has at a time, unless it was made with another limit.
pub const PEERS: usize = 65_536;

/// How many endpoints one socket is connected and bound to at a time.
pub const ENDPOINTS: usize = 4096;

/// How many different topics one socket is subscribed to at a time.
pub const SUBSCRIPTIONS: usize = 65_536;

/// How many items a queue may have until subscriptions are taken out that were taken back before they were sent: later on twice as many as were left.
pub const SETTLE_ITEMS: usize = 1024;

/// How many events a monitor keeps for a reader that is late.
pub const MONITOR_EVENTS: usize = 256;

/// How long a closed socket goes on sending what was queued, unless it was made with another time.
pub const LINGER: Duration = Duration::from_secs(1);

/// How long a socket waits before it connects again for the first time, unless it was made with another time.
pub const RECONNECT_FIRST: Duration = Duration::from_millis(100);

/// The shortest time between two attempts to connect, whatever a socket was made with, before it is multiplied by a random number.
pub const RECONNECT_SHORTEST: Duration = Duration::from_millis(1);

/// The longest time between two attempts to connect, unless the socket was made with another time.
pub const RECONNECT_LONGEST: Duration = Duration::from_secs(5);

/// How often in a row a server of CURVE may close the connection in place of an answer until a client takes that for a refusal.
pub const UNANSWERED_HANDSHAKES: u32 = 3;

/// How long one attempt to connect a stream may take, unless the socket was made with another time.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a listener waits after the operating system could not accept a connection: there are no file descriptors left, say.
pub const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// How many connections a listener has the operating system keep until they are accepted.
pub const ACCEPT_QUEUE: i32 = 1024;

/// What the operating system is asked to buffer for a Unix stream, in bytes each way; its own default is too little for batches, and what is much more
/// than one batch does not stay in a processor's cache until it is read.
pub const IPC_BUFFER_BYTES: usize = 384 * 1024;

/// The longest text of an endpoint, in bytes.
pub const ENDPOINT_BYTES: usize = 1024;

/// How many pieces one write gathers: the header and the payload of a large message are two.
pub const WRITE_PIECES: usize = 128;

/// How many messages of each peer are read ahead of the program at least, if the mark allows it, however many peers share one mark.
pub const READ_AHEAD_MESSAGES: usize = 64;

/// How long a connection over which nothing passes any more keeps the memory that only a busy one needs, in which it may soon be busy again.
pub const REST_AFTER: Duration = Duration::from_millis(10);

/// When the task of a connection has written and read so many bytes, it lets other tasks of the runtime go first.
pub const TURN_BYTES: usize = 256 * 1024;

/// The same where the socket has other peers, so that none of them waits long for one that sends much.
pub const SHARED_TURN_BYTES: usize = 64 * 1024;
