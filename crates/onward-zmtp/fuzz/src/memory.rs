//! The memory that a connection keeps, counted by the allocator. It must not exceed what the limits
//! allow and what the connection needs.

use allocation_counter::measure;
use onward_zmtp::protocol::bounds::{
    BODY_STEP_BYTES, ERROR_REASON_BYTES, HANDSHAKE_BUFFER_BYTES, IDLE_READ_BUFFER_BYTES, LARGE_READ_BUFFER_BYTES,
    PLAIN_FIELD_BYTES, READ_BUFFER_BYTES, SHARED_PART,
};
use onward_zmtp::protocol::{Connection, SocketType};

use super::{Manner, Outcome, drain, feed, limits, pieces};

/// The memory of a connection beside the data from its peer, in bytes: the mechanism with its keys,
/// the peer's description, the timers and the reason of the end.
const CONNECTION_BYTES: usize = 1024 + ERROR_REASON_BYTES;

/// The bytes of a handshake command beside its metadata: the name and the password of PLAIN, or the
/// vouch of CURVE.
const BESIDE_METADATA_BYTES: usize = 2 * PLAIN_FIELD_BYTES + 8;

/// The memory of a property, a part of a message or a topic beside its text, in bytes: its entry in
/// a list that grows by doubling, and the reference to the text.
const ENTRY_BYTES: usize = 128;

const GREETING_BYTES: usize = 64;
const MORE: u8 = 1;
const LONG: u8 = 2;
const COMMAND: u8 = 4;

/// Checks that a connection never keeps more memory than it needs, however the bytes are cut.
pub(crate) fn check(new: impl FnOnce() -> Connection, bytes: &[u8], manner: Manner<'_>) {
    let mut connection = None;
    let mut kept = kept_by(|| connection = Some(new()));
    let Some(connection) = &mut connection else { return };
    let mut account = Account::new();
    for piece in pieces(bytes, manner.cuts) {
        let (mut goes_on, mut written) = (true, 0);
        kept += kept_by(|| {
            let mut outcome = Outcome::default();
            goes_on = feed(connection, piece, manner.wanted, &mut outcome);
            written = outcome.written.len() + drain(connection).len();
        });
        // Every account then contains the read buffer of a peer that sends little.
        kept += kept_by(|| _ = connection.receive(&[]));
        account.add(&bytes[..account.received + piece.len()], piece.len(), written);
        let most = account.most(connection, kept, goes_on);
        assert!(kept <= most, "{kept} bytes are kept and {most} are allowed: {account:?}");
        if !goes_on {
            break;
        }
    }
}

/// Returns the growth of the allocated bytes during `work`.
fn kept_by(work: impl FnOnce()) -> i64 {
    measure(work).bytes_current
}

/// The bytes received and written so far. All events and all output were taken.
#[derive(Debug)]
struct Account {
    received: usize,
    /// The bytes of a message or a command that is not complete.
    unfinished: usize,
    frames: Frames,
    /// The largest number of bytes received at once.
    piece: usize,
    /// The largest number of bytes that waited to be written.
    written: usize,
    /// The bytes that were kept when the handshake was done.
    kept_at_first: Option<i64>,
}

impl Account {
    fn new() -> Self {
        let frames = Frames { message: GREETING_BYTES, frame: GREETING_BYTES };
        Self { received: 0, unfinished: 0, frames, piece: 0, written: GREETING_BYTES, kept_at_first: None }
    }

    fn add(&mut self, received: &[u8], piece: usize, written: usize) {
        self.received = received.len();
        self.piece = self.piece.max(piece);
        self.unfinished = self.frames.follow(received);
        self.written = self.written.max(written);
    }

    /// Returns the largest number of bytes that may be kept.
    fn most(&mut self, connection: &Connection, kept: i64, goes_on: bool) -> i64 {
        let limits = limits();
        let metadata = limits.metadata_bytes + limits.metadata_properties * ENTRY_BYTES;
        // The write buffer grows by doubling.
        let always = CONNECTION_BYTES + metadata + 2 * self.written;
        let Some(peer) = connection.peer() else {
            return (always + HANDSHAKE_BUFFER_BYTES + limits.metadata_bytes + BESIDE_METADATA_BYTES) as i64;
        };
        let traffic = topics(peer.socket_type()) + message(self.unfinished);
        let most = (always + read_buffer(self.received, self.unfinished) + traffic) as i64;
        let at_first = *self.kept_at_first.get_or_insert(kept);
        // At first there was neither an error nor a larger read buffer, which small pieces never
        // fill.
        let may_compare = goes_on && self.piece < IDLE_READ_BUFFER_BYTES / 4;
        if may_compare { most.min(at_first + (2 * self.written + traffic) as i64) } else { most }
    }
}

fn topics(peer: SocketType) -> usize {
    let limits = limits();
    match peer {
        SocketType::Sub | SocketType::Xsub => limits.topics * (limits.topic_bytes + 2 * ENTRY_BYTES),
        _ => 0,
    }
}

/// Returns the memory of the read buffer. Parts of a message hold the bytes that arrived with them
/// only where a peer fills the buffer.
fn read_buffer(received: usize, unfinished: usize) -> usize {
    if received < READ_BUFFER_BYTES {
        READ_BUFFER_BYTES
    } else {
        LARGE_READ_BUFFER_BYTES + SHARED_PART * unfinished.min(limits().message_bytes)
    }
}

/// Returns the memory of a message that has this many bytes and no end yet.
fn message(unfinished: usize) -> usize {
    let limits = limits();
    let parts = unfinished.div_ceil(2).min(limits.message_parts);
    let step = if unfinished > 0 { BODY_STEP_BYTES.min(limits.frame_bytes) } else { 0 };
    step + parts * ENTRY_BYTES + (2 * unfinished).min(limits.message_bytes + limits.frame_bytes)
}

/// The offsets in the received bytes at which the incomplete message or command begins, and at
/// which its last frame begins.
#[derive(Debug)]
struct Frames {
    message: usize,
    frame: usize,
}

impl Frames {
    /// Follows the frames to the end of the received bytes, and returns the number of bytes without
    /// an end. A frame encrypted by CURVE counts as the end of a message.
    fn follow(&mut self, received: &[u8]) -> usize {
        while let Some((flags, length)) = received.get(self.frame..).and_then(whole_frame) {
            let is_between_parts = self.message < self.frame;
            self.frame += length;
            if flags & MORE == 0 && !(flags & COMMAND > 0 && is_between_parts) {
                self.message = self.frame;
            }
        }
        received.len().saturating_sub(self.message)
    }
}

/// Returns the flags and the length of the first frame, if it is complete.
fn whole_frame(bytes: &[u8]) -> Option<(u8, usize)> {
    let (flags, rest) = bytes.split_first()?;
    let (header, body) =
        if flags & LONG > 0 { (9, u64::from_be_bytes(*rest.first_chunk()?)) } else { (2, u64::from(*rest.first()?)) };
    let length = usize::try_from(body).ok()?.checked_add(header)?;
    (length <= bytes.len()).then_some((*flags, length))
}
