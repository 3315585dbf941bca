//! The receiving half of a socket.

use std::fmt;
use std::future::poll_fn;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use futures_core::Stream;

use super::connection::inbox::Inbox;
use super::error::{Error, Result};
use super::kind::Receives;
use super::monitor::events::Monitor;
use super::monitor::statistics::Statistics;
use super::owner::Owner;
use super::peers::remote_peer::RemotePeer;
use crate::fair_queue::FairQueue;
use crate::protocol::{Message, SocketType};

/// The receiving part of every socket type: the queues of the peers take turns.
pub(super) struct ReceiveCore {
    pub(super) owner: Arc<Owner>,
    pub(super) queue: FairQueue<u64, Inbox>,
    is_subscriber: bool,
}

impl ReceiveCore {
    pub(super) fn new(owner: Arc<Owner>, queue: FairQueue<u64, Inbox>) -> Self {
        let is_subscriber = matches!(owner.shared.socket_type, SocketType::Sub | SocketType::Xsub);
        Self { owner, queue, is_subscriber }
    }

    /// Returns the next message and the number of the peer that sent it.
    #[inline]
    pub(super) fn poll_recv_from(&mut self, context: &mut Context<'_>) -> Poll<Result<(u64, Message)>> {
        loop {
            match self.queue.poll_recv(context) {
                Poll::Ready(Some((peer, message))) if self.is_wanted(&message) => {
                    return Poll::Ready(Ok((peer, message)));
                }
                Poll::Ready(Some(_)) => {}
                // The queue ends only when no task is left that could insert a source.
                Poll::Ready(None) => return Poll::Ready(Err(Error::closed())),
                Poll::Pending => return self.poll_refusal(),
            }
        }
    }

    #[inline]
    pub(super) fn poll_recv(&mut self, context: &mut Context<'_>) -> Poll<Result<Message>> {
        self.poll_recv_from(context).map_ok(|(_, message)| message)
    }

    /// Returns the next message and the peer that sent it.
    pub(super) fn poll_recv_with_peer(&mut self, context: &mut Context<'_>) -> Poll<Result<(Message, RemotePeer)>> {
        loop {
            let (connection, message) = ready!(self.poll_recv_from(context))?;
            // The peer is registered until the inbox of the message is polled again.
            if let Some(peer) = self.owner.shared.remote_peers.get(connection) {
                return Poll::Ready(Ok((message, peer)));
            }
            self.owner.shared.drop_incoming(1);
        }
    }

    pub(super) fn try_recv(&mut self) -> Option<Message> {
        loop {
            let (_, message) = self.queue.try_recv()?;
            if self.is_wanted(&message) {
                return Some(message);
            }
        }
    }

    pub(super) fn poll_recv_many(
        &mut self,
        context: &mut Context<'_>,
        messages: &mut Vec<Message>,
        limit: usize,
    ) -> Poll<Result<usize>> {
        let before = messages.len();
        loop {
            let Poll::Ready(taken) = self.queue.poll_recv_ahead(context, messages, limit) else {
                return self.poll_refusal();
            };
            if taken == 0 {
                return Poll::Ready(if limit == 0 { Ok(0) } else { Err(Error::closed()) });
            }
            self.drop_unwanted(messages, before);
            // A batch without a wanted message is not returned: zero stands for a limit of zero.
            if messages.len() > before {
                return Poll::Ready(Ok(messages.len() - before));
            }
        }
    }

    /// Waits for a message, unless none can come because every peer refused the socket.
    #[inline]
    fn poll_refusal<R>(&self) -> Poll<Result<R>> {
        match self.owner.shared.refusal() {
            None => Poll::Pending,
            Some(refusal) => Poll::Ready(Err(refusal)),
        }
    }

    /// Drops the messages from `first` on that the subscriptions do not match.
    fn drop_unwanted(&self, messages: &mut Vec<Message>, first: usize) {
        if self.is_subscriber {
            messages.extract_if(first.., |message| !self.matches(message)).for_each(drop);
        }
    }

    /// Returns true if the socket is not a subscriber, or the message matches a subscription. A
    /// subscriber may get messages of a topic that it has just cancelled.
    #[inline]
    fn is_wanted(&self, message: &Message) -> bool {
        !self.is_subscriber || self.matches(message)
    }

    fn matches(&self, message: &Message) -> bool {
        message.frames().first().is_some_and(|frame| self.owner.shared.peer_table().subscriptions.matches(frame))
    }
}

/// The receiving half of a [`Socket`](super::Socket), from [`Socket::split`](super::Socket::split).
pub struct Receiver<T> {
    pub(super) core: ReceiveCore,
    kind: PhantomData<fn() -> T>,
}

impl<T> Receiver<T> {
    pub(super) fn new(core: ReceiveCore) -> Self {
        Self { core, kind: PhantomData }
    }
}

impl<T: Receives> Receiver<T> {
    /// Receives a message, like [`Socket::recv`](super::Socket::recv).
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Socket::recv`](super::Socket::recv).
    pub async fn recv(&mut self) -> Result<Message> {
        poll_fn(|context| self.core.poll_recv(context)).await
    }

    /// Receives a message and its peer, like
    /// [`Socket::recv_with_peer`](super::Socket::recv_with_peer).
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Socket::recv_with_peer`](super::Socket::recv_with_peer).
    pub async fn recv_with_peer(&mut self) -> Result<(Message, RemotePeer)> {
        poll_fn(|context| self.core.poll_recv_with_peer(context)).await
    }

    /// Receives several messages, like [`Socket::recv_many`](super::Socket::recv_many).
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Socket::recv_many`](super::Socket::recv_many).
    pub async fn recv_many(&mut self, messages: &mut Vec<Message>, limit: usize) -> Result<usize> {
        poll_fn(|context| self.core.poll_recv_many(context, messages, limit)).await
    }

    /// Receives a message if one is ready, like [`Socket::try_recv`](super::Socket::try_recv).
    pub fn try_recv(&mut self) -> Option<Message> {
        self.core.try_recv()
    }

    /// Returns a monitor, like [`Socket::monitor`](super::Socket::monitor).
    #[must_use]
    pub fn monitor(&self) -> Monitor {
        self.core.owner.shared.reporter.monitor()
    }

    /// Returns the statistics, like [`Socket::statistics`](super::Socket::statistics).
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        self.core.owner.shared.statistics()
    }
}

impl<T> fmt::Debug for Receiver<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Receiver").field("type", &self.core.owner.shared.socket_type).finish_non_exhaustive()
    }
}

impl<T> Unpin for Receiver<T> {}

/// A stream of the messages. It does not end while the receiver lives.
impl<T: Receives> Stream for Receiver<T> {
    type Item = Result<Message>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Message>>> {
        self.core.poll_recv(context).map(Some)
    }
}
