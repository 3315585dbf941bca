//! Sources to read from. No source ever ends, is empty or allocates, so that all other costs are
//! those of the queue.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Buf as _, Bytes};
use futures_core::Stream;

/// A source for a measurement.
pub(crate) trait Endless: Stream + Unpin {
    /// The name of the source in tables.
    const NAME: &'static str;

    fn new() -> Self;
}

/// A source that counts up, the cheapest possible.
pub(crate) struct Counter(u64);

impl Endless for Counter {
    const NAME: &'static str = "counter";

    fn new() -> Self {
        Self(0)
    }
}

impl Stream for Counter {
    type Item = u64;

    // Not inlined, as a source of ordinary size is not inlined into its caller.
    #[inline(never)]
    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<u64>> {
        self.0 += 1;
        Poll::Ready(Some(self.0))
    }
}

const FRAME: usize = 64;
const FRAMES: usize = 256;

/// A source that cuts frames of 64 bytes with a header of two bytes out of a buffer, as a
/// connection does with the result of one read.
pub(crate) struct Frames {
    all: Bytes,
    rest: Bytes,
}

impl Endless for Frames {
    const NAME: &'static str = "frames";

    fn new() -> Self {
        let frame: Vec<u8> = [0, FRAME as u8].into_iter().chain([7; FRAME]).collect();
        let all = Bytes::from(frame.repeat(FRAMES));
        Self { rest: all.clone(), all }
    }
}

impl Stream for Frames {
    type Item = Bytes;

    #[inline(never)]
    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if self.rest.len() < 2 {
            self.rest = self.all.clone();
        }
        let _flags = self.rest.get_u8();
        let length = usize::from(self.rest.get_u8());
        if length > self.rest.len() {
            return Poll::Ready(None);
        }
        Poll::Ready(Some(self.rest.split_to(length)))
    }
}
