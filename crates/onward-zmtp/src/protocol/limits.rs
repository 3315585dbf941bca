//! Every limit on what a peer may make us keep, by name.

/// The largest body of one frame, in bytes, unless the connection was made with another limit.
pub const FRAME_BYTES: usize = 64 * 1024 * 1024;

/// The largest message, all its frames together, in bytes; so also the most that an incomplete
/// message can hold.
pub const MESSAGE_BYTES: usize = 64 * 1024 * 1024;

/// How many frames one message may have; so also how many an incomplete message can hold.
pub const MESSAGE_PARTS: usize = 1024;

/// The largest body of one command after the handshake, in bytes.
pub const COMMAND_BYTES: usize = 8 * 1024;

/// The largest metadata (properties of `READY` or `INITIATE`) of a peer, in bytes.
pub const METADATA_BYTES: usize = 8 * 1024;

/// How many properties a peer's metadata may have.
pub const METADATA_PROPERTIES: usize = 64;

/// The longest topic that a peer may subscribe to, in bytes.
pub const TOPIC_BYTES: usize = 1024;

/// How many different topics one peer may be subscribed to at a time.
pub const TOPICS: usize = 65_536;

/// The longest identity, in bytes; the protocol fixes it.
pub const IDENTITY_BYTES: usize = 255;

/// The longest user name and the longest password of PLAIN, in bytes; the protocol fixes it.
pub const PLAIN_FIELD_BYTES: usize = 255;

/// The longest context of a `PING`, in bytes; the protocol fixes it.
pub const PING_CONTEXT_BYTES: usize = 16;

/// The longest reason that an `ERROR` may carry, in bytes; the protocol fixes it.
pub const ERROR_REASON_BYTES: usize = 255;

/// How many bytes of answers to heartbeats may wait to be written before no more is decoded.
pub const ANSWER_BYTES: usize = 4 * 1024;

/// What is received is kept here until it is decoded, in bytes; until the handshake is done it is
/// [`HANDSHAKE_BUFFER_BYTES`].
pub const READ_BUFFER_BYTES: usize = 64 * 1024;

/// The same while a peer sends as much as fills [`READ_BUFFER_BYTES`] with one read, and then at
/// least half of this, and until there is nothing to be read. Half of it where frames come that
/// could be [shared](SHARED_PART) then.
pub const LARGE_READ_BUFFER_BYTES: usize = 256 * 1024;

/// The payload of a frame of at least so many bytes may share memory with what was received
/// together with it, in place of being copied, if it is large enough beside that ([`SHARED_PART`]),
/// if that is at least half a read buffer, and if such frames made up at least half of what was
/// received before.
///
/// So a message that is smaller and is kept pins nothing but itself; and messages that wait to be
/// read take at most some four times what they count.
pub const SHARE_BYTES: usize = 4 * 1024;

/// Which part of the read buffer a frame is at least that shares memory with what was received
/// together with it: if it is kept, it pins at most so many times its own size.
pub const SHARED_PART: usize = 32;

/// The buffer of a connection whose handshake is not done, in bytes: what a silent connection
/// costs.
pub const HANDSHAKE_BUFFER_BYTES: usize = 512;

/// By how much a frame that is larger than the read buffer may be larger in memory than what has
/// been received of it, in bytes. (Beyond that memory doubles with what was received.)
pub const BODY_STEP_BYTES: usize = 64 * 1024;

/// A connection takes no more messages to send while so many bytes wait to be written.
pub const WRITE_BATCH_BYTES: usize = 256 * 1024;

/// What is kept of the write buffer's memory when everything has been written, in bytes.
pub const WRITE_BUFFER_KEPT_BYTES: usize = 512 * 1024;

/// What is kept of the write buffer's memory while there is nothing to be written, in bytes.
pub const IDLE_WRITE_BUFFER_BYTES: usize = 128 * 1024;

/// Short messages that follow one another are queued together while they are fewer bytes than this,
/// with their headers.
///
/// A connection keeps memory for a few such runs, however long nothing passes.
pub const RUN_BYTES: usize = 64 * 1024;

/// A payload of at least so many bytes is not copied into the write buffer but written from where
/// it is, unless the connection was made with another bound. (With CURVE every payload is copied,
/// since it is encrypted.)
///
/// On some processors the operating system takes a batch from one piece faster than from many, by
/// more than it costs to make one piece of payloads of 4 KiB ([`JOIN_BYTES`]).
pub const GATHER_BYTES: usize = 8 * 1024;

/// A payload of at least so many bytes that is below [`GATHER_BYTES`] is copied by the sockets when
/// it is written, where that is quicker than to write it from where it is, and a smaller one when
/// it is taken from the queue.
///
/// What is copied when it is written goes into a buffer of the thread, which stays in the
/// processor's cache, however many connections the thread serves.
pub const JOIN_BYTES: usize = 2 * 1024;

/// What one connection accepts from its peer.
///
/// A peer that goes beyond is disconnected, with an error for which
/// [`Error::is_limit`](super::Error::is_limit) holds. Memory grows with what was received and never
/// with an announced length, so a high limit costs nothing until it is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// The largest body of one frame, in bytes. Default: [`FRAME_BYTES`].
    pub frame_bytes: usize,
    /// The largest message, all frames together, complete or not, in bytes. Default:
    /// [`MESSAGE_BYTES`].
    pub message_bytes: usize,
    /// How many frames a message may have, complete or not. Default: [`MESSAGE_PARTS`].
    pub message_parts: usize,
    /// The largest command after the handshake, in bytes. Default: [`COMMAND_BYTES`].
    pub command_bytes: usize,
    /// The largest metadata, in bytes. Default: [`METADATA_BYTES`].
    pub metadata_bytes: usize,
    /// How many properties metadata may have. Default: [`METADATA_PROPERTIES`].
    pub metadata_properties: usize,
    /// The longest topic of a subscription, in bytes. Default: [`TOPIC_BYTES`].
    pub topic_bytes: usize,
    /// How many different topics the peer may be subscribed to. Default: [`TOPICS`].
    pub topics: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            frame_bytes: FRAME_BYTES,
            message_bytes: MESSAGE_BYTES,
            message_parts: MESSAGE_PARTS,
            command_bytes: COMMAND_BYTES,
            metadata_bytes: METADATA_BYTES,
            metadata_properties: METADATA_PROPERTIES,
            topic_bytes: TOPIC_BYTES,
            topics: TOPICS,
        }
    }
}
