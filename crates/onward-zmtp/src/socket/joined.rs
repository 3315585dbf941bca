//! Small pieces, written as one.

use std::cell::RefCell;

use crate::protocol::Output;

thread_local! {
    /// Where pieces are copied. It belongs to the thread, so that it is in its processor's cache, which would not hold one for each of many connections.
    static JOINED: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Hands the front of what is to be written to `write`, in one piece.
///
/// A thread that has done this keeps [`Output::JOINED_BYTES`] of memory for it.
pub(super) fn with<T>(output: &Output, write: impl FnOnce(&[u8]) -> T) -> T {
    JOINED.with_borrow_mut(|joined| {
        joined.clear();
        joined.reserve_exact(Output::JOINED_BYTES);
        output.join(joined);
        write(joined)
    })
}
