//! The high-water mark of a queue.

use crate::socket::bounds::{HIGH_WATER_MARK_BYTES, HIGH_WATER_MARK_MESSAGES};

/// The high-water mark of a queue to or from one peer, in messages and bytes. When either is
/// reached, the writer of the queue waits.
///
/// A single message may be larger than `bytes`; it waits until the queue is empty. At least one
/// message always fits.
///
/// Zero means no bound, as with libzmq. A queue without any bound grows until memory ends if its
/// reader is slower than its writer. A high-water mark of zero messages therefore still has the
/// default of bytes, unless `bytes` is zero, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HighWaterMark {
    /// The number of messages. Default: [`HIGH_WATER_MARK_MESSAGES`].
    pub messages: usize,
    /// The size of the payload, in bytes. Default: [`HIGH_WATER_MARK_BYTES`].
    pub bytes: usize,
}

impl HighWaterMark {
    /// A high-water mark without any bound. See the risk above.
    pub const UNLIMITED: Self = Self { messages: 0, bytes: 0 };

    /// Returns a high-water mark with this number of messages (zero for no bound) and the default
    /// of bytes.
    #[must_use]
    pub fn messages(messages: usize) -> Self {
        Self { messages, ..Self::default() }
    }

    /// Replaces zero by the largest value.
    pub(super) fn usable(self) -> Self {
        let or_any = |bound| if bound == 0 { usize::MAX } else { bound };
        Self { messages: or_any(self.messages), bytes: or_any(self.bytes) }
    }
}

impl Default for HighWaterMark {
    fn default() -> Self {
        Self { messages: HIGH_WATER_MARK_MESSAGES, bytes: HIGH_WATER_MARK_BYTES }
    }
}
