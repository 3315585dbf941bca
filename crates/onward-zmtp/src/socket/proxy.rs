//! The proxy, which joins two sockets.

use std::future::poll_fn;
use std::task::{Context, Poll};

use super::error::{Error, Result};
use super::kind::Kind;
use super::options::policies::Overflow;
use super::receive::ReceiveCore;
use super::send::SendCore;
use super::typed_socket::Socket;
use crate::protocol::{Message, SocketType};

/// The number of messages that are forwarded before other tasks get a turn.
const MESSAGES_BEFORE_YIELD: usize = 256;

/// A proxy that forwards every message between two sockets, in both directions where the types
/// allow it. It is the core of a broker.
///
/// | frontend | backend | for |
/// |---|---|---|
/// | ROUTER | DEALER | requests and replies |
/// | XSUB | XPUB | publications and subscriptions |
/// | PULL | PUSH | work |
///
/// It takes a message only when it can forward it. A full backend therefore slows down the peers
/// that send to the frontend. A ROUTER drops and counts a message whose peer is gone, or [does not
/// read](Self::overflow). A proxy that is dropped while it waits for room counts the message that
/// it has taken as dropped.
///
/// ```no_run
/// use onward_zmtp::socket::Proxy;
/// use onward_zmtp::{DealerSocket, RouterSocket};
///
/// # async fn broker() -> Result<(), onward_zmtp::socket::Error> {
/// let (mut clients, mut workers) = (RouterSocket::new(), DealerSocket::new());
/// clients.bind("tcp://127.0.0.1:5559").await?;
/// workers.bind("tcp://127.0.0.1:5560").await?;
/// let mut proxy = Proxy::new(&mut clients, &mut workers)
///     .capture(|message| println!("{} frames", message.len()));
/// proxy.run().await
/// # }
/// ```
pub struct Proxy<'a> {
    types: (SocketType, SocketType),
    forward: Direction<'a>,
    backward: Direction<'a>,
    capture: Box<dyn FnMut(&Message) + Send + 'a>,
}

struct Direction<'a> {
    from: &'a mut ReceiveCore,
    to: &'a mut SendCore,
    /// The message that was received and not sent.
    pending: Option<Message>,
    is_open: bool,
    /// True if a peer whose queue is full misses its messages, so that other peers get theirs.
    drops_when_full: bool,
}

impl<'a> Proxy<'a> {
    /// Joins two sockets. REQ and REP take turns, so they cannot be joined; use ROUTER and DEALER
    /// instead.
    pub fn new<F: Kind, B: Kind>(frontend: &'a mut Socket<F>, backend: &'a mut Socket<B>) -> Self {
        let (forward, backward) = (receives(F::TYPE) && sends(B::TYPE), receives(B::TYPE) && sends(F::TYPE));
        let (front, rear) = (frontend, backend);
        Self {
            types: (F::TYPE, B::TYPE),
            forward: Direction {
                from: &mut front.receiver.core,
                to: &mut rear.sender.core,
                pending: None,
                is_open: forward,
                drops_when_full: names_peers(B::TYPE),
            },
            backward: Direction {
                from: &mut rear.receiver.core,
                to: &mut front.sender.core,
                pending: None,
                is_open: backward,
                drops_when_full: names_peers(F::TYPE),
            },
            capture: Box::new(|_| {}),
        }
    }

    /// Sets a function that is called with every message before it is forwarded. It can log the
    /// message, or [`try_send`](Socket::try_send) a copy to a third socket. The proxy waits until
    /// it returns.
    #[must_use]
    pub fn capture(mut self, capture: impl FnMut(&Message) + Send + 'a) -> Self {
        self.capture = Box::new(capture);
        self
    }

    /// Sets the reaction to a peer of a ROUTER whose queue is full. Default: [`Overflow::Drop`], as
    /// in libzmq. The peer then misses the message, which the socket
    /// [counts](crate::socket::Statistics::dropped), and other peers get theirs. With
    /// [`Overflow::Wait`], a peer that does not read stops all others. The queue of a client that
    /// has one request at a time, such as a REQ, is never full.
    #[must_use]
    pub fn overflow(mut self, overflow: Overflow) -> Self {
        let (front, back) = self.types;
        self.forward.drops_when_full = overflow == Overflow::Drop && names_peers(back);
        self.backward.drops_when_full = overflow == Overflow::Drop && names_peers(front);
        self
    }

    /// Forwards messages until an error occurs.
    ///
    /// Cancel safe: the future can be dropped and `run` called again. No message is lost while the
    /// proxy exists.
    ///
    /// # Errors
    ///
    /// - [`Error::is_closed`] if one of the sockets is closed.
    /// - [`Error::is_refused`] or [`Error::is_gone`] if one of the sockets has no peer and will get
    ///   none. Messages that wait for it stay in the other socket.
    /// - [`Error::is_misuse`] if messages can pass in neither direction between the two types, for
    ///   example from a PUSH to a PUSH.
    pub async fn run(&mut self) -> Result<()> {
        if !self.forward.is_open && !self.backward.is_open {
            let (front, back) = self.types;
            return Err(Error::misuse(format!(
                "nothing passes between a {front} and a {back}; join a ROUTER and a DEALER, an XSUB and an XPUB, or a PULL and a PUSH"
            )));
        }
        poll_fn(|context| self.poll(context)).await
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Result<()>> {
        for _ in 0..MESSAGES_BEFORE_YIELD {
            let forward = self.forward.advance(context, &mut self.capture)?;
            let backward = self.backward.advance(context, &mut self.capture)?;
            if !forward && !backward {
                return Poll::Pending;
            }
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }
}

impl Direction<'_> {
    /// Forwards one message. Returns `false` if that has to wait.
    fn advance(&mut self, context: &mut Context<'_>, capture: &mut dyn FnMut(&Message)) -> Result<bool> {
        if !self.is_open {
            return Ok(false);
        }
        if self.pending.is_none() {
            // A message that was received could not be given back.
            self.to.owner.shared.check_reachable()?;
            let Poll::Ready(received) = self.from.poll_recv(context) else { return Ok(false) };
            let message = received?;
            capture(&message);
            self.pending = Some(message);
        }
        let context = if self.drops_when_full { None } else { Some(context) };
        match self.to.poll_send(context, &mut self.pending) {
            Poll::Pending if self.drops_when_full => {
                self.drop_pending();
                Ok(true)
            }
            Poll::Pending => Ok(false),
            Poll::Ready(Err(error)) if error.concerns_message() => {
                self.drop_pending();
                Ok(true)
            }
            Poll::Ready(outcome) => outcome.map(|()| true),
        }
    }

    fn drop_pending(&mut self) {
        if self.pending.take().is_some() {
            self.to.owner.shared.drop_outgoing(1);
        }
    }
}

impl Drop for Direction<'_> {
    fn drop(&mut self) {
        self.drop_pending();
    }
}

/// Returns true if each message names its peer, so that a full queue concerns one peer only.
fn names_peers(socket_type: SocketType) -> bool {
    socket_type == SocketType::Router
}

fn receives(socket_type: SocketType) -> bool {
    !matches!(socket_type, SocketType::Push | SocketType::Pub | SocketType::Req | SocketType::Rep)
}

fn sends(socket_type: SocketType) -> bool {
    !matches!(socket_type, SocketType::Pull | SocketType::Sub | SocketType::Req | SocketType::Rep)
}
