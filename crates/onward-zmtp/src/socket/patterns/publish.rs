//! Sending to all peers: publications to subscribers, and subscriptions to publishers.

use std::task::{Context, Poll, ready};

use super::round_robin::RoundRobin;
use crate::protocol::Message;
use crate::socket::connection::pipe::Pipe;
use crate::socket::error::{Error, Result};
use crate::socket::options::policies::Overflow;
use crate::socket::queue::bounded_queue::Refused;
use crate::socket::shared::Shared;

/// Sends a message to all subscribers.
pub(in crate::socket) fn poll_publish(
    shared: &Shared,
    context: Option<&mut Context<'_>>,
    slot: &mut Option<Message>,
) -> Poll<Result<()>> {
    if shared.is_closed() {
        return Poll::Ready(Err(Error::closed()));
    }
    let Some(message) = slot.as_ref() else { return Poll::Ready(Ok(())) };
    let first = &message.frames()[0];
    let mut subscribers = shared.subscribers();
    if shared.options.overflow == Overflow::Wait {
        let mut gate = Gate { context, is_open: true };
        subscribers.each_match(first, |pipe| gate.pass(pipe));
        if !gate.is_open {
            return Poll::Pending;
        }
    }
    let mut dropped = 0;
    subscribers.each_match(first, |pipe| dropped += offer_copy(pipe, message));
    drop(subscribers);
    shared.drop_outgoing(dropped);
    *slot = None;
    Poll::Ready(Ok(()))
}

/// Sends a subscription or a message of an XSUB to all publishers.
pub(in crate::socket) fn poll_upstream(
    shared: &Shared,
    round_robin: &mut RoundRobin,
    context: Option<&mut Context<'_>>,
    slot: &mut Option<Message>,
) -> Poll<Result<()>> {
    if shared.is_closed() {
        return Poll::Ready(Err(Error::closed()));
    }
    let Some(message) = slot.as_ref() else { return Poll::Ready(Ok(())) };
    match (message.len(), message.frames()[0].first()) {
        (1, Some(1)) => shared.subscribe(message.frames()[0].slice(1..))?,
        (1, Some(0)) => shared.cancel(&message.frames()[0].slice(1..)),
        _ => ready!(poll_broadcast(shared, round_robin, context, message)),
    }
    *slot = None;
    Poll::Ready(Ok(()))
}

fn poll_broadcast(
    shared: &Shared,
    round_robin: &mut RoundRobin,
    context: Option<&mut Context<'_>>,
    message: &Message,
) -> Poll<()> {
    let pipes = round_robin.pipes(shared);
    if shared.options.overflow == Overflow::Wait {
        let mut gate = Gate { context, is_open: true };
        pipes.iter().for_each(|pipe| gate.pass(pipe));
        if !gate.is_open {
            return Poll::Pending;
        }
    }
    shared.drop_outgoing(pipes.iter().map(|pipe| offer_copy(pipe, message)).sum());
    Poll::Ready(())
}

/// Queues a copy for a peer. Returns the number of messages that were dropped.
fn offer_copy(pipe: &Pipe, message: &Message) -> usize {
    match pipe.send_copy(message) {
        Err(Refused::Full) => 1,
        Ok(()) | Err(Refused::Closed) => 0,
    }
}

/// A check that is open while every peer has room.
struct Gate<'a, 'b> {
    context: Option<&'a mut Context<'b>>,
    is_open: bool,
}

impl Gate<'_, '_> {
    fn pass(&mut self, pipe: &Pipe) {
        // Every pipe is polled, also after a full one: each full queue must register the task.
        self.is_open &= pipe.poll_room(self.context.as_deref_mut()).is_ready();
    }
}
