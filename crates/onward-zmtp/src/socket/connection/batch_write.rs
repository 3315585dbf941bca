//! Writes of a batch: as one piece, joined into one, or gathered from many.

use std::cell::RefCell;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Buf as _;
use tokio::io::AsyncWrite as _;
use tokio::time::Instant;

use super::transport::Stream;
use super::write_costs::{WriteCosts, WriteMethod};
use crate::protocol::Output;
use crate::socket::bounds::WRITE_PIECES;

thread_local! {
    static JOIN_BUFFER: RefCell<JoinBuffer> = RefCell::default();
}

/// The buffer with which a thread writes many small pieces.
///
/// It belongs to the thread so that it stays in the cache of its processor. One buffer for each of
/// many connections would not fit there. A thread that has joined pieces keeps
/// [`Output::JOINED_BYTES`] of memory for it.
#[derive(Default)]
struct JoinBuffer {
    joined: Vec<u8>,
    costs: WriteCosts,
}

/// Writes the front of the output, as much as the stream takes at once. Returns the number of bytes
/// taken, which are removed from the output.
pub(super) fn poll_write(
    stream: Pin<&mut Stream>,
    context: &mut Context<'_>,
    output: &mut Output,
) -> Poll<io::Result<usize>> {
    let written = if let Some(whole) = output.whole() {
        // The plain write costs the operating system less than a vectored write of one piece.
        ready!(stream.poll_write(context, whole))?
    } else if output.has_small_pieces() {
        // The stream must be ready first. Joining pieces that are then not written costs as much as
        // a write, and a write that has to wait gives no measurement of its cost.
        ready!(stream.poll_write_ready(context));
        ready!(JOIN_BUFFER.with_borrow_mut(|join_buffer| join_buffer.poll_write(stream, context, output)))?
    } else {
        ready!(gather(stream, context, output))?
    };
    output.advance(written);
    Poll::Ready(Ok(written))
}

impl JoinBuffer {
    /// Joins or gathers the pieces, whichever is measured to be faster. Some processors take more
    /// time to copy many pieces than to join them and copy one, others less.
    fn poll_write(
        &mut self,
        stream: Pin<&mut Stream>,
        context: &mut Context<'_>,
        output: &Output,
    ) -> Poll<io::Result<usize>> {
        let (method, begun) = (self.costs.next_method(), Instant::now());
        let written = ready!(match method {
            WriteMethod::Joined => stream.poll_write(context, self.join(output)),
            WriteMethod::Gathered => gather(stream, context, output),
        })?;
        self.costs.record(method, written, begun.elapsed());
        Poll::Ready(Ok(written))
    }

    fn join(&mut self, output: &Output) -> &[u8] {
        self.joined.clear();
        self.joined.reserve_exact(Output::JOINED_BYTES);
        output.join(&mut self.joined);
        &self.joined
    }
}

fn gather(stream: Pin<&mut Stream>, context: &mut Context<'_>, output: &Output) -> Poll<io::Result<usize>> {
    let mut pieces = [IoSlice::new(&[]); WRITE_PIECES];
    let count = output.slices(&mut pieces);
    stream.poll_write_vectored(context, &pieces[..count])
}
