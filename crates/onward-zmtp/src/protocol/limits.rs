//! The limits on what one connection accepts from its peer.

use super::bounds::{
    COMMAND_BYTES, FRAME_BYTES, MESSAGE_BYTES, MESSAGE_PARTS, METADATA_BYTES, METADATA_PROPERTIES, TOPIC_BYTES, TOPICS,
};

/// The limits on what one connection accepts from its peer.
///
/// A peer that exceeds one of them is disconnected with an error for which
/// [`Error::is_limit`](super::Error::is_limit) holds. Memory grows with the bytes received and
/// never with an announced length, so a high limit costs nothing until it is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// The largest body of one frame, in bytes. Default: [`FRAME_BYTES`].
    pub frame_bytes: usize,
    /// The largest message, all frames together, complete or not, in bytes. Default:
    /// [`MESSAGE_BYTES`].
    pub message_bytes: usize,
    /// The largest number of frames in a message, complete or not. Default: [`MESSAGE_PARTS`].
    pub message_parts: usize,
    /// The largest command after the handshake, in bytes. Default: [`COMMAND_BYTES`].
    pub command_bytes: usize,
    /// The largest metadata, in bytes. Default: [`METADATA_BYTES`].
    pub metadata_bytes: usize,
    /// The largest number of properties in metadata. Default: [`METADATA_PROPERTIES`].
    pub metadata_properties: usize,
    /// The longest topic of a subscription, in bytes. Default: [`TOPIC_BYTES`].
    pub topic_bytes: usize,
    /// The largest number of different topics that the peer may be subscribed to. Default:
    /// [`TOPICS`].
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
