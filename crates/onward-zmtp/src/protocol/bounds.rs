//! The bounds on what a peer can make a connection keep. [`Limits`](super::Limits) can change some
//! of them.

/// The default for the largest body of one frame, in bytes.
pub const FRAME_BYTES: usize = 64 * 1024 * 1024;

/// The default for the largest message, in bytes. It counts all frames, also those of an incomplete
/// message.
pub const MESSAGE_BYTES: usize = 64 * 1024 * 1024;

/// The default for the number of frames in one message. It also bounds an incomplete message.
pub const MESSAGE_PARTS: usize = 1024;

/// The default for the largest body of one command after the handshake, in bytes.
pub const COMMAND_BYTES: usize = 8 * 1024;

/// The default for the largest metadata (properties of `READY` or `INITIATE`) of a peer, in bytes.
pub const METADATA_BYTES: usize = 8 * 1024;

/// The default for the number of properties in a peer's metadata.
pub const METADATA_PROPERTIES: usize = 64;

/// The default for the longest topic that a peer may subscribe to, in bytes.
pub const TOPIC_BYTES: usize = 1024;

/// The default for the number of different topics that one peer may be subscribed to at a time.
pub const TOPICS: usize = 65_536;

/// The longest identity, in bytes. The protocol fixes it.
pub const IDENTITY_BYTES: usize = 255;

/// The longest user name and the longest password of PLAIN, in bytes. The protocol fixes it.
pub const PLAIN_FIELD_BYTES: usize = 255;

/// The longest context of a `PING`, in bytes. The protocol fixes it.
pub const PING_CONTEXT_BYTES: usize = 16;

/// The longest reason that an `ERROR` may carry, in bytes. The protocol fixes it.
pub const ERROR_REASON_BYTES: usize = 255;

/// The number of bytes of unwritten `PONG` replies at which a connection stops decoding.
pub const UNWRITTEN_PONG_BYTES: usize = 4 * 1024;

/// The size of the read buffer, in bytes, which holds received bytes until they are decoded. Until
/// the handshake is done the size is [`HANDSHAKE_BUFFER_BYTES`], and while the peer sends little it
/// is [`IDLE_READ_BUFFER_BYTES`].
pub const READ_BUFFER_BYTES: usize = 64 * 1024;

/// The size of the read buffer of a peer that sends little, in bytes. A read that fills it makes
/// the buffer larger until the connection is idle.
pub const IDLE_READ_BUFFER_BYTES: usize = 4 * 1024;

/// The size of the read buffer while a peer sends fast, in bytes.
///
/// The buffer grows to this size when one read fills [`READ_BUFFER_BYTES`]. It keeps the size as
/// long as the peer fills at least half of it and until nothing is left to be read. If frames
/// arrive that only a smaller buffer can [share](SHARED_PART), it has half this size.
pub const LARGE_READ_BUFFER_BYTES: usize = 256 * 1024;

/// The size of a payload, in bytes, from which it may share memory with the bytes received together
/// with it. A smaller payload is always copied.
///
/// A payload is shared if all of these hold: it is large enough beside the read buffer
/// ([`SHARED_PART`]), the buffer is at least half full, and such frames made up at least half of
/// the previous buffer. A smaller message that the program keeps therefore holds only its own
/// memory. Messages that wait to be read take at most about four times the bytes they count.
pub const SHARE_BYTES: usize = 4 * 1024;

/// The divisor of the read buffer's size that gives the smallest frame to share. A shared frame
/// that the program keeps holds at most this many times its own size.
pub const SHARED_PART: usize = 32;

/// The size of the read buffer until the handshake is done, in bytes. It is the cost of a silent
/// connection.
pub const HANDSHAKE_BUFFER_BYTES: usize = 512;

/// The memory that a frame larger than the read buffer may reserve beyond the bytes received of it,
/// in bytes. Above this size the memory doubles with the received bytes.
pub const BODY_STEP_BYTES: usize = 64 * 1024;

/// The number of unwritten bytes at which a connection takes no more messages to send.
pub const WRITE_BATCH_BYTES: usize = 256 * 1024;

/// The write buffer's memory that is kept when everything has been written, in bytes.
pub const WRITE_BUFFER_KEPT_BYTES: usize = 512 * 1024;

/// The write buffer's memory that is kept while there is nothing to be written, in bytes.
pub const IDLE_WRITE_BUFFER_BYTES: usize = 4 * 1024;

/// The number of bytes, headers included, below which consecutive short messages are queued
/// together. A connection that is not idle keeps memory for a few such runs.
pub const RUN_BYTES: usize = 64 * 1024;

/// The default for the size of a payload, in bytes, from which it is written from where it is. A
/// smaller payload is copied into the write buffer. CURVE copies every payload, because it encrypts
/// it.
///
/// On some processors the operating system takes one piece faster than many, by more than it costs
/// to copy payloads of 4 KiB into one piece ([`JOIN_BYTES`]).
pub const GATHER_BYTES: usize = 8 * 1024;

/// The size of a payload, in bytes, from which the sockets copy it when they write it. The range
/// ends below [`GATHER_BYTES`], and the copy happens only where it is faster than a write from
/// where the payload is. A smaller payload is copied when it is taken from the queue.
///
/// A payload copied at the write goes into a buffer of the thread. That buffer stays in the
/// processor's cache, however many connections the thread serves.
pub const JOIN_BYTES: usize = 2 * 1024;
