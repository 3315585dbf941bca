//! What a socket has of one peer: a queue each way.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures_core::Stream;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

use super::options::SocketOptions;
use super::queue::{Done, Payload, Queue};
use super::share::Share;
use crate::fair_queue::SourceId;
use crate::protocol::Message;

/// How many messages are read before it is said that they were, so that the driver need not be told of each.
pub(super) const DONE_MESSAGES: usize = 64;

/// What a socket gives to the driver of a connection.
#[derive(Debug, Clone)]
pub(super) enum Outgoing {
    Message(Message),
    Subscribe(Bytes),
    Cancel(Bytes),
}

impl Payload for Outgoing {
    fn bytes(&self) -> usize {
        match self {
            Self::Message(message) => message.byte_len(),
            Self::Subscribe(topic) | Self::Cancel(topic) => topic.len(),
        }
    }
}

impl Payload for Message {
    fn bytes(&self) -> usize {
        self.byte_len()
    }
}

/// One connected peer. A reconnected one is another.
pub(super) struct Pipe {
    pub(super) id: u64,
    pub(super) outgoing: Queue<Outgoing>,
    pub(super) incoming: Queue<Message>,
    /// What a ROUTER knows the peer by; empty for other sockets.
    pub(super) routing: Bytes,
    /// Cancelled when it has ended and nothing that came from it is left to be read.
    pub(super) read_out: CancellationToken,
    /// Ends the connection.
    pub(super) stop: CancellationToken,
    /// Its inbox in the fair queue, if it has one.
    pub(super) source: OnceLock<SourceId>,
    /// The last publication that was meant for it.
    publication: AtomicU64,
}

impl Pipe {
    /// `share` is how much of it may wait to be read by the program.
    pub(super) fn new(
        id: u64,
        routing: Bytes,
        stop: CancellationToken,
        options: &SocketOptions,
        share: Arc<Share>,
    ) -> Self {
        Self {
            id,
            outgoing: Queue::new(options.send_mark, Arc::new(Share::unlimited())),
            incoming: Queue::new(options.receive_mark, share),
            routing,
            read_out: CancellationToken::new(),
            stop,
            source: OnceLock::new(),
            publication: AtomicU64::new(0),
        }
    }

    /// Whether this is the first time that the publication of this number is meant for the peer.
    pub(super) fn is_first(&self, publication: u64) -> bool {
        self.publication.swap(publication, Ordering::Relaxed) != publication
    }
}

/// The messages of one peer, as a source of the socket's fair queue. Ends when the connection has and all was read.
pub(super) struct Inbox {
    pipe: Arc<Pipe>,
    /// What has to be read before.
    before: Option<Pin<Box<WaitForCancellationFutureOwned>>>,
    taken: VecDeque<Message>,
    read: Done,
    report_after: usize,
}

impl Inbox {
    pub(super) fn new(pipe: Arc<Pipe>, before: Option<CancellationToken>) -> Self {
        let before = before.map(|read_out| Box::pin(read_out.cancelled_owned()));
        Self { pipe, before, taken: VecDeque::new(), read: Done::default(), report_after: 1 }
    }
}

impl Stream for Inbox {
    type Item = Message;

    #[inline]
    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Message>> {
        let inbox = &mut *self;
        if let Some(before) = &mut inbox.before {
            ready!(before.as_mut().poll(context));
            inbox.before = None;
        }
        loop {
            if let Some(message) = inbox.taken.pop_front() {
                inbox.read.add(&message);
                if inbox.read.messages >= inbox.report_after {
                    inbox.pipe.incoming.done(&mut inbox.read);
                }
                return Poll::Ready(Some(message));
            }
            match inbox.pipe.incoming.poll_take(context, &mut inbox.taken, &mut inbox.read) {
                Poll::Ready(true) => {
                    inbox.report_after = DONE_MESSAGES.min(inbox.pipe.incoming.mark().messages / 4).max(1);
                }
                Poll::Ready(false) => return Poll::Ready(None),
                Poll::Pending => return Poll::Pending,
            }
        }
    }
}

/// What was not read is dropped, and whatever comes after it.
impl Drop for Inbox {
    fn drop(&mut self) {
        self.pipe.incoming.close_and_take();
        self.pipe.read_out.cancel();
    }
}
