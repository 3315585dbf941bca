//! The request state of REQ and REP, which take turns: request, then reply.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;

use crate::protocol::Message;
use crate::socket::connection::pipe::Pipe;
use crate::socket::error::{Error, Result};
use crate::socket::kind::{Rep, Req};
use crate::socket::peers::remote_peer::RemotePeer;
use crate::socket::typed_socket::Socket;

/// The state of the exchange.
pub(in crate::socket) enum RequestState {
    Idle,
    /// A REQ has sent a request to this peer.
    AwaitsReply {
        pipe: Arc<Pipe>,
        /// The number of the request, if the option to number requests is set.
        number: Option<Bytes>,
    },
    /// A REP has received a request from this peer. It sends the reply with this envelope.
    OwesReply {
        peer: u64,
        envelope: Message,
    },
}

impl Socket<Req> {
    /// Sends a request to the next peer in turn that has room, and waits until there is one.
    /// [`recv`](Self::recv) then returns the reply.
    ///
    /// Cancel safe: if the future is dropped before it is ready, the request is not sent.
    ///
    /// # Errors
    ///
    /// - [`Error::is_state`] if the reply to the previous request has not been received. With
    ///   [numbered](crate::socket::SocketOptions::correlate) requests, the previous one is given up
    ///   instead.
    /// - [`Error::is_state`] if the message has no frame.
    /// - [`Error::is_limit`] if the message, with the frames in front of it, is larger than
    ///   [`SocketOptions::send_limits`](crate::socket::SocketOptions::send_limits) allow.
    pub async fn send(&mut self, message: impl Into<Message>) -> Result<()> {
        let options = &self.sender.core.owner.shared.options;
        if matches!(self.request_state, RequestState::AwaitsReply { .. }) && !options.correlates {
            return Err(Error::state(
                "the reply to the last request has not been received; receive it first, or set `SocketOptions::correlate`",
            ));
        }
        let number = options.correlates.then(|| Bytes::copy_from_slice(&fastrand::u32(..).to_be_bytes()));
        let mut message = message.into();
        if message.is_empty() {
            return Err(Error::state("a message needs a frame, even if it is an empty one"));
        }
        message.push_front(Bytes::new());
        if let Some(number) = &number {
            message.push_front(number.clone());
        }
        self.sender.core.owner.shared.send_limits.check(message.frames())?;
        let mut slot = Some(message);
        let core = &mut self.sender.core;
        let sent =
            poll_fn(|context| core.round_robin.poll_send(&core.owner.shared, Some(context), &mut slot, false)).await?;
        if let Some(pipe) = sent.and_then(|index| core.round_robin.pipe(index)) {
            self.request_state = RequestState::AwaitsReply { pipe, number };
        }
        Ok(())
    }

    /// Waits for the reply and returns it.
    ///
    /// Cancel safe.
    ///
    /// # Errors
    ///
    /// - [`Error::is_state`] if no request was sent.
    /// - [`Error::is_gone`] if the peer has disconnected, so that no reply will come. The caller
    ///   can send the request again.
    pub async fn recv(&mut self) -> Result<Message> {
        poll_fn(|context| self.poll_reply(context)).await
    }

    fn poll_reply(&mut self, context: &mut Context<'_>) -> Poll<Result<Message>> {
        let RequestState::AwaitsReply { pipe, number } = &self.request_state else {
            return Poll::Ready(Err(Error::state("no request was sent, so no reply can come; send one first")));
        };
        while let Poll::Ready(received) = self.receiver.core.poll_recv_from(context) {
            let (peer, message) = received?;
            match open_reply(message, number.as_ref()) {
                Some(reply) if peer == pipe.id => {
                    self.request_state = RequestState::Idle;
                    return Poll::Ready(Ok(reply));
                }
                _ => self.receiver.core.owner.shared.drop_incoming(1),
            }
        }
        if pipe.incoming.is_closed() && pipe.incoming.is_idle() {
            self.request_state = RequestState::Idle;
            return Poll::Ready(Err(Error::gone("the peer of the request has disconnected; send the request again")));
        }
        Poll::Pending
    }
}

/// Returns the body of the reply to the request of this number.
fn open_reply(mut message: Message, number: Option<&Bytes>) -> Option<Message> {
    if let Some(number) = number {
        message.pop_front().filter(|found| found == number)?;
    }
    message.pop_front().filter(Bytes::is_empty)?;
    (!message.is_empty()).then_some(message)
}

impl Socket<Rep> {
    /// Waits for the next request and returns it. Peers take turns. [`send`](Self::send) sends the
    /// reply.
    ///
    /// Cancel safe.
    ///
    /// # Errors
    ///
    /// Returns an error ([`Error::is_state`]) if the previous request has no reply yet.
    pub async fn recv(&mut self) -> Result<Message> {
        poll_fn(|context| self.poll_request(context)).await
    }

    /// Waits for the next request and returns it with the peer that sent it, like
    /// [`recv`](Self::recv). The peer has its address, and the key of CURVE that it proved to have.
    ///
    /// Cancel safe.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`recv`](Self::recv).
    pub async fn recv_with_peer(&mut self) -> Result<(Message, RemotePeer)> {
        poll_fn(|context| self.poll_request_with_peer(context)).await
    }

    fn poll_request_with_peer(&mut self, context: &mut Context<'_>) -> Poll<Result<(Message, RemotePeer)>> {
        loop {
            let request = ready!(self.poll_request(context))?;
            let shared = &self.receiver.core.owner.shared;
            let RequestState::OwesReply { peer, .. } = &self.request_state else { continue };
            // The peer is registered until the inbox of the message is polled again.
            if let Some(peer) = shared.remote_peers.get(*peer) {
                return Poll::Ready(Ok((request, peer)));
            }
            shared.drop_incoming(1);
            self.request_state = RequestState::Idle;
        }
    }

    fn poll_request(&mut self, context: &mut Context<'_>) -> Poll<Result<Message>> {
        if !matches!(self.request_state, RequestState::Idle) {
            return Poll::Ready(Err(Error::state("the last request has no reply yet; send it first")));
        }
        loop {
            let (peer, message) = ready!(self.receiver.core.poll_recv_from(context))?;
            let Some((envelope, request)) = open_request(message) else {
                self.receiver.core.owner.shared.drop_incoming(1);
                continue;
            };
            self.request_state = RequestState::OwesReply { peer, envelope };
            return Poll::Ready(Ok(request));
        }
    }

    /// Sends the reply to the last request. If the peer has disconnected, the reply is dropped and
    /// counted.
    ///
    /// Cancel safe: if the future is dropped before it is ready, the request is still open.
    ///
    /// # Errors
    ///
    /// - [`Error::is_state`] if there is no open request, or the message has no frame.
    /// - [`Error::is_limit`] if the message, with the envelope of the request, is larger than
    ///   [`SocketOptions::send_limits`](crate::socket::SocketOptions::send_limits) allow.
    pub async fn send(&mut self, message: impl Into<Message>) -> Result<()> {
        let message = message.into();
        let RequestState::OwesReply { peer, envelope } = &self.request_state else {
            return Err(Error::state("there is no request to reply to; receive one first"));
        };
        if message.is_empty() {
            return Err(Error::state("a message needs a frame, even if it is an empty one"));
        }
        let shared = self.sender.core.owner.shared.clone();
        // A peer that has reconnected has another number: the reply belongs to the old connection.
        let pipe = shared.peer_table().by_id(*peer).cloned();
        let reply: Message = envelope.frames().iter().cloned().chain(message).collect();
        shared.send_limits.check(reply.frames())?;
        let mut slot = Some(reply);
        let sent = match &pipe {
            Some(pipe) => {
                poll_fn(|context| pipe.poll_room(Some(context))).await;
                pipe.send(&mut slot).is_ok()
            }
            None => false,
        };
        if !sent {
            shared.drop_outgoing(1);
        }
        self.request_state = RequestState::Idle;
        Ok(())
    }
}

/// Splits a message into the envelope, up to and including the first empty frame, and the body
/// after it.
fn open_request(message: Message) -> Option<(Message, Message)> {
    let end = message.frames().iter().position(Bytes::is_empty)? + 1;
    if end == message.len() {
        return None;
    }
    let mut frames = message.into_iter();
    let envelope = frames.by_ref().take(end).collect();
    Some((envelope, frames.collect()))
}
