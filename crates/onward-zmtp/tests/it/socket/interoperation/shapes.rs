//! The messages that are sent.

use std::sync::LazyLock;

use bytes::Bytes;
use onward_zmtp::protocol::Message;

/// The lengths of the frames of each shape. The programs at the other end have the same table.
const SHAPES: [&[usize]; 7] = [&[0], &[1], &[255], &[256], &[65_536], &[0, 3, 65_536, 0], &[8 * 1024 * 1024]];

/// Returns a message of each shape.
pub(super) fn shapes() -> Vec<Message> {
    static OCTETS: LazyLock<Bytes> =
        LazyLock::new(|| (0..=250_u8).collect::<Vec<_>>().repeat(8 * 1024 * 1024 / 251 + 1).into());
    SHAPES.iter().map(|lengths| lengths.iter().map(|length| OCTETS.slice(..*length)).collect()).collect()
}

/// Returns the digest of each shape.
pub(super) fn digests() -> &'static [String] {
    static DIGESTS: LazyLock<Vec<String>> = LazyLock::new(|| shapes().iter().map(digest).collect());
    &DIGESTS
}

/// Returns the digest of each shape after the topic.
pub(super) fn topical_digests() -> &'static [String] {
    static DIGESTS: LazyLock<Vec<String>> =
        LazyLock::new(|| shapes().into_iter().map(|shape| digest(&topical(shape))).collect());
    &DIGESTS
}

/// Returns the message behind the topic that the other end subscribes to.
pub(super) fn topical(shape: Message) -> Message {
    enveloped(&["shape"], shape)
}

/// Returns the message behind an envelope.
pub(super) fn enveloped(envelope: &[&'static str], mut message: Message) -> Message {
    envelope.iter().rev().for_each(|frame| message.push_front(*frame));
    message
}

/// Returns the digest that the programs at the other end print of a message: the length and
/// Adler-32 of each frame. Python has Adler-32 built in.
pub(super) fn digest(message: &Message) -> String {
    let of = |frame: &Bytes| {
        let (low, high) = frame.iter().fold((1_u32, 0_u32), |(low, high), octet| {
            let low = (low + u32::from(*octet)) % 65_521;
            (low, (high + low) % 65_521)
        });
        format!("{}:{:08x}", frame.len(), high << 16 | low)
    };
    message.frames().iter().map(of).collect::<Vec<_>>().join(" ")
}
