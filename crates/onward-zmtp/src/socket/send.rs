//! The sending half of a socket.

use std::fmt;
use std::future::poll_fn;
use std::marker::PhantomData;
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures_sink::Sink;
use tokio::task::coop;

use super::error::{Error, Result};
use super::kind::Sends;
use super::monitor::events::Monitor;
use super::monitor::statistics::Statistics;
use super::owner::Owner;
use super::patterns::publish::{poll_publish, poll_upstream};
use super::patterns::round_robin::RoundRobin;
use super::patterns::router::RouteCache;
use super::shared::Shared;
use crate::protocol::{Message, SocketType};

/// The sending part of every socket type.
pub(super) struct SendCore {
    pub(super) owner: Arc<Owner>,
    pub(super) round_robin: RoundRobin,
    route_cache: RouteCache,
    /// The message that a `Sink` has accepted and not sent.
    pending: Option<Message>,
}

impl SendCore {
    pub(super) fn new(owner: Arc<Owner>) -> Self {
        Self { owner, round_robin: RoundRobin::default(), route_cache: RouteCache::default(), pending: None }
    }

    /// Sends the message in `slot`. It stays there while this is `Pending`, and if it fails.
    #[inline]
    pub(super) fn poll_send(
        &mut self,
        context: Option<&mut Context<'_>>,
        slot: &mut Option<Message>,
    ) -> Poll<Result<()>> {
        let shared = &self.owner.shared;
        check(shared, slot.as_ref())?;
        match shared.socket_type {
            SocketType::Router => self.route_cache.poll_send(shared, context, slot),
            SocketType::Pub | SocketType::Xpub => poll_publish(shared, context, slot),
            SocketType::Xsub => poll_upstream(shared, &mut self.round_robin, context, slot),
            _ => self.round_robin.poll_send(shared, context, slot, true).map_ok(drop),
        }
    }

    /// Sends like [`Self::poll_send`], and yields to other tasks of the runtime now and then.
    #[inline]
    pub(super) fn poll_send_in_turn(
        &mut self,
        context: &mut Context<'_>,
        slot: &mut Option<Message>,
    ) -> Poll<Result<()>> {
        let progress = ready!(coop::poll_proceed(context));
        let sent = ready!(self.poll_send(Some(context), slot));
        progress.made_progress();
        Poll::Ready(sent)
    }

    /// Sends all messages of the list that were not sent yet.
    fn poll_send_many(&mut self, context: &mut Context<'_>, list: &mut List<'_>) -> Poll<Result<()>> {
        while list.sent < list.messages.len() {
            let progress = ready!(coop::poll_proceed(context));
            list.sent += match self.offer_each(&mut list.messages[list.sent..]) {
                0 => ready!(self.poll_send_first(context, &mut list.messages[list.sent]))?,
                several => several,
            };
            progress.made_progress();
        }
        Poll::Ready(Ok(()))
    }

    /// Sends as many of the first messages as can be sent at once, without a search for a peer for
    /// each. Returns their number, which may be zero.
    fn offer_each(&mut self, messages: &mut [Message]) -> usize {
        let shared = &self.owner.shared;
        match shared.socket_type {
            SocketType::Push | SocketType::Dealer | SocketType::Pair => self.round_robin.offer_each(shared, messages),
            _ => 0,
        }
    }

    fn poll_send_first(&mut self, context: &mut Context<'_>, message: &mut Message) -> Poll<Result<usize>> {
        let mut slot = Some(mem::take(message));
        let sent = self.poll_send(Some(context), &mut slot);
        if let Some(unsent) = slot {
            *message = unsent;
        }
        sent.map_ok(|()| 1)
    }

    pub(super) fn try_send(&mut self, message: Message) -> std::result::Result<(), TrySendError> {
        let mut slot = Some(message);
        match self.poll_send(None, &mut slot) {
            Poll::Ready(Ok(())) => Ok(()),
            Poll::Ready(Err(error)) => Err(TrySendError::new(error, slot)),
            Poll::Pending => Err(TrySendError::new(Error::full(), slot)),
        }
    }

    /// Sends the message that a `Sink` has accepted.
    fn poll_pending(&mut self, context: &mut Context<'_>) -> Poll<Result<()>> {
        let mut slot = self.pending.take();
        if slot.is_none() {
            return Poll::Ready(Ok(()));
        }
        let sent = self.poll_send_in_turn(context, &mut slot);
        if sent.is_pending() {
            self.pending = slot;
        }
        sent
    }

    pub(super) fn poll_sink_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<()>> {
        self.poll_pending(context)
    }

    pub(super) fn start_sink_send(&mut self, message: Message) -> Result<()> {
        if self.pending.is_some() {
            return Err(Error::state("`start_send` was called before `poll_ready` was ready"));
        }
        check(&self.owner.shared, Some(&message))?;
        self.pending = Some(message);
        Ok(())
    }
}

/// Returns an error if the message has no frame, or is larger than the socket may send.
#[inline]
fn check(shared: &Shared, message: Option<&Message>) -> Result<()> {
    match message.map(Message::frames) {
        // The fast path for nearly every message. A message of one frame to a ROUTER has only an
        // identity; that error is found later.
        Some([frame]) if shared.send_limits.allow_single(frame) => Ok(()),
        frames => check_each(shared, frames),
    }
}

#[inline(never)]
fn check_each(shared: &Shared, frames: Option<&[Bytes]>) -> Result<()> {
    match frames {
        None | Some([]) => Err(Error::state("a message needs a frame, even if it is an empty one")),
        // The identity is not sent, so it does not count.
        Some([_, frames @ ..]) if shared.socket_type == SocketType::Router => shared.send_limits.check(frames),
        Some(frames) => shared.send_limits.check(frames),
    }
}

/// A list of messages to send. On drop it removes those that were sent, also if the future is
/// dropped.
struct List<'a> {
    messages: &'a mut Vec<Message>,
    sent: usize,
}

impl Drop for List<'_> {
    fn drop(&mut self) {
        self.messages.drain(..self.sent);
    }
}

/// The error of a message that was not sent at once. It contains the message.
#[derive(Debug)]
pub struct TrySendError(Box<Unsent>);

#[derive(Debug)]
struct Unsent {
    error: Error,
    message: Option<Message>,
}

impl TrySendError {
    #[cold]
    fn new(error: Error, message: Option<Message>) -> Self {
        Self(Box::new(Unsent { error, message }))
    }

    /// Returns the error of a closed socket.
    pub(crate) fn closed(message: Message) -> Self {
        Self::new(Error::closed(), Some(message))
    }

    /// Returns true if the call would have had to wait. The caller can try again later, or use
    /// `send`.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.0.error.is_full()
    }

    /// Returns the reason why the message was not sent.
    #[must_use]
    pub fn error(&self) -> &Error {
        &self.0.error
    }

    /// Returns the message that was not sent, unchanged.
    #[must_use]
    pub fn into_message(self) -> Option<Message> {
        self.0.message
    }
}

impl From<TrySendError> for Error {
    fn from(error: TrySendError) -> Self {
        error.0.error
    }
}

impl fmt::Display for TrySendError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.error.fmt(formatter)
    }
}

impl std::error::Error for TrySendError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.error.source()
    }
}

/// The sending half of a [`Socket`](super::Socket), from [`Socket::split`](super::Socket::split).
pub struct Sender<T> {
    pub(super) core: SendCore,
    kind: PhantomData<fn() -> T>,
}

impl<T> Sender<T> {
    pub(super) fn new(core: SendCore) -> Self {
        Self { core, kind: PhantomData }
    }
}

impl<T: Sends> Sender<T> {
    /// Sends a message, like [`Socket::send`](super::Socket::send).
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Socket::send`](super::Socket::send).
    pub async fn send(&mut self, message: impl Into<Message>) -> Result<()> {
        let mut slot = Some(message.into());
        poll_fn(|context| self.core.poll_send_in_turn(context, &mut slot)).await
    }

    /// Sends several messages, like [`Socket::send_many`](super::Socket::send_many).
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Socket::send_many`](super::Socket::send_many).
    pub async fn send_many(&mut self, messages: &mut Vec<Message>) -> Result<()> {
        let mut list = List { messages, sent: 0 };
        poll_fn(|context| self.core.poll_send_many(context, &mut list)).await
    }

    /// Sends a message if there is room, like [`Socket::try_send`](super::Socket::try_send).
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Socket::try_send`](super::Socket::try_send).
    pub fn try_send(&mut self, message: impl Into<Message>) -> std::result::Result<(), TrySendError> {
        self.core.try_send(message.into())
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

impl<T> fmt::Debug for Sender<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Sender").field("type", &self.core.owner.shared.socket_type).finish_non_exhaustive()
    }
}

impl<T> Unpin for Sender<T> {}

/// A sink that keeps one message beyond the queues.
///
/// Flushing moves the message to a queue; it does not wait until the message has left the machine.
/// Closing the sink flushes it and leaves the socket open. A message that is dropped before it was
/// flushed is not sent and not counted.
impl<T: Sends> Sink<Message> for Sender<T> {
    type Error = Error;

    fn poll_ready(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        self.core.poll_sink_ready(context)
    }

    fn start_send(mut self: Pin<&mut Self>, message: Message) -> Result<()> {
        self.core.start_sink_send(message)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        self.core.poll_sink_ready(context)
    }

    fn poll_close(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        self.core.poll_sink_ready(context)
    }
}
