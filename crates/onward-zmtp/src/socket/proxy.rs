//! Two sockets that are joined.

use std::future::poll_fn;
use std::task::{Context, Poll};

use super::error::{Error, Result};
use super::kind::Kind;
use super::receive::ReceiveCore;
use super::send::SendCore;
use super::typed::Socket;
use crate::protocol::{Message, SocketType};

/// How many messages are handed over before other tasks have their turn.
const MESSAGES_IN_A_ROW: usize = 256;

/// Hands everything that comes to one socket over to another, both ways where the types allow it: the middle of a broker.
///
/// | frontend | backend | for |
/// |---|---|---|
/// | ROUTER | DEALER | questions and answers |
/// | XSUB | XPUB | publications and subscriptions |
/// | PULL | PUSH | work |
///
/// It takes a message only when it can hand it over, so that a backend that is full is felt by those who send to the frontend. A message
/// that a ROUTER cannot deliver, since its peer is gone, is dropped and counted there.
///
/// ```no_run
/// use onward_zmtp::socket::Proxy;
/// use onward_zmtp::{DealerSocket, RouterSocket};
///
/// # async fn broker() -> Result<(), onward_zmtp::socket::Error> {
/// let (mut clients, mut workers) = (RouterSocket::new(), DealerSocket::new());
/// clients.bind("tcp://127.0.0.1:5559").await?;
/// workers.bind("tcp://127.0.0.1:5560").await?;
/// Proxy::new(&mut clients, &mut workers).capture(|message| println!("{} frames", message.len())).run().await
/// # }
/// ```
pub struct Proxy<'a> {
    types: (SocketType, SocketType),
    there: Way<'a>,
    back: Way<'a>,
    capture: Box<dyn FnMut(&Message) + Send + 'a>,
}

struct Way<'a> {
    from: &'a mut ReceiveCore,
    to: &'a mut SendCore,
    /// What was received and not sent.
    held: Option<Message>,
    is_open: bool,
}

impl<'a> Proxy<'a> {
    /// Joins two sockets. REQ and REP take turns, and are not joined to anything: ROUTER and DEALER stand between them.
    pub fn new<F: Kind, B: Kind>(frontend: &'a mut Socket<F>, backend: &'a mut Socket<B>) -> Self {
        let (there, back) = (receives(F::TYPE) && sends(B::TYPE), receives(B::TYPE) && sends(F::TYPE));
        let (front, rear) = (frontend, backend);
        Self {
            types: (F::TYPE, B::TYPE),
            there: Way { from: &mut front.receiver.core, to: &mut rear.sender.core, held: None, is_open: there },
            back: Way { from: &mut rear.receiver.core, to: &mut front.sender.core, held: None, is_open: back },
            capture: Box::new(|_| {}),
        }
    }

    /// Has `capture` called with every message that is handed over, before it is: to log it, or to [`try_send`](Socket::try_send) a copy to
    /// a third socket. What it waits for, the proxy waits for.
    #[must_use]
    pub fn capture(mut self, capture: impl FnMut(&Message) + Send + 'a) -> Self {
        self.capture = Box::new(capture);
        self
    }

    /// Hands over for ever.
    ///
    /// Cancel safe: after the future was dropped, it can be run again, and no message is lost while the proxy lives.
    ///
    /// # Errors
    ///
    /// If one of the sockets is closed; if messages can pass neither way between the two types, from a PUSH to a PUSH say ([`Error::is_misuse`]).
    pub async fn run(&mut self) -> Result<()> {
        if !self.there.is_open && !self.back.is_open {
            let (front, back) = self.types;
            return Err(Error::misuse(format!(
                "nothing passes between a {front} and a {back}; join a ROUTER and a DEALER, an XSUB and an XPUB, or a PULL and a PUSH"
            )));
        }
        poll_fn(|context| self.poll(context)).await
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Result<()>> {
        for _ in 0..MESSAGES_IN_A_ROW {
            let there = self.there.advance(context, &mut self.capture)?;
            let back = self.back.advance(context, &mut self.capture)?;
            if !there && !back {
                return Poll::Pending;
            }
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }
}

impl Way<'_> {
    /// Hands one message over; `false` if that has to wait.
    fn advance(&mut self, context: &mut Context<'_>, capture: &mut dyn FnMut(&Message)) -> Result<bool> {
        if !self.is_open {
            return Ok(false);
        }
        if self.held.is_none() {
            let Poll::Ready(received) = self.from.poll_recv(context) else { return Ok(false) };
            let message = received?;
            capture(&message);
            self.held = Some(message);
        }
        match self.to.poll_send(Some(context), &mut self.held) {
            Poll::Pending => Ok(false),
            Poll::Ready(Err(error)) if error.is_closed() => Err(error),
            Poll::Ready(outcome) => {
                if outcome.is_err() {
                    self.held = None;
                    self.to.owner.shared.drop_outgoing(1);
                }
                Ok(true)
            }
        }
    }
}

fn receives(socket_type: SocketType) -> bool {
    !matches!(socket_type, SocketType::Push | SocketType::Pub | SocketType::Req | SocketType::Rep)
}

fn sends(socket_type: SocketType) -> bool {
    !matches!(socket_type, SocketType::Pull | SocketType::Sub | SocketType::Req | SocketType::Rep)
}
