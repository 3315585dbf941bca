//! The route from a ROUTER's message to the peer that it names.

use std::sync::Arc;
use std::task::{Context, Poll, ready};

use crate::protocol::Message;
use crate::socket::connection::pipe::Pipe;
use crate::socket::error::{Error, Result};
use crate::socket::queue::bounded_queue::Refused;
use crate::socket::shared::Shared;

/// A cache of the last peer addressed: most programs reply to one peer for a while.
#[derive(Default)]
pub(in crate::socket) struct RouteCache {
    /// The version of the peer table at the time of the look-up.
    version: u64,
    last: Option<Arc<Pipe>>,
}

impl RouteCache {
    /// Queues the message in `slot` for the peer that its first frame names. The message stays in
    /// `slot` if this returns `Pending` or fails.
    pub(in crate::socket) fn poll_send(
        &mut self,
        shared: &Shared,
        mut context: Option<&mut Context<'_>>,
        slot: &mut Option<Message>,
    ) -> Poll<Result<()>> {
        let Some(message) = slot.as_ref().filter(|message| message.len() > 1) else {
            return Poll::Ready(Err(Error::state(
                "a message of a ROUTER is the identity of a peer and at least one more frame",
            )));
        };
        if shared.is_closed() {
            return Poll::Ready(Err(Error::closed()));
        }
        let identity = &message.frames()[0];
        let Some(pipe) = self.find(shared, identity) else {
            return Poll::Ready(Err(Error::unroutable(format!("no peer with the identity {identity:?} is connected"))));
        };
        loop {
            match offer(pipe, slot) {
                Ok(()) => return Poll::Ready(Ok(())),
                Err(Refused::Full) => ready!(pipe.poll_room(context.as_deref_mut())),
                Err(Refused::Closed) => {
                    let identity = &pipe.routing_id;
                    let text = format!("the peer with the identity {identity:?} has just disconnected");
                    return Poll::Ready(Err(Error::unroutable(text)));
                }
            }
        }
    }

    #[inline]
    fn find(&mut self, shared: &Shared, identity: &[u8]) -> Option<&Arc<Pipe>> {
        let is_last = self.last.as_ref().is_some_and(|pipe| pipe.routing_id == identity);
        if !is_last || self.version != shared.version() {
            self.look_up(shared, identity);
        }
        self.last.as_ref()
    }

    #[inline(never)]
    fn look_up(&mut self, shared: &Shared, identity: &[u8]) {
        let peer_table = shared.peer_table();
        self.version = shared.version();
        self.last = peer_table.by_identity(identity).cloned();
    }
}

/// Queues a message for a peer, without the identity. If the queue is full, the identity is put
/// back, so that the caller gets its message unchanged.
#[inline]
fn offer(pipe: &Pipe, slot: &mut Option<Message>) -> std::result::Result<(), Refused> {
    let identity = slot.as_mut().and_then(Message::pop_front);
    let sent = pipe.send(slot);
    if sent.is_err()
        && let (Some(message), Some(identity)) = (slot, identity)
    {
        message.push_front(identity);
    }
    sent
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::fair_queue::FairQueue;
    use crate::protocol::{Identity, SocketType};
    use crate::socket::options::socket_options::SocketOptions;

    #[test]
    fn a_message_for_a_peer_that_has_just_gone_is_given_back_with_its_identity() {
        let queue = FairQueue::new();
        let shared = Shared::new(SocketType::Router, SocketOptions::new(), queue.handle());
        let pipe = shared
            .attach(None, None, CancellationToken::new(), true, shared.as_remote(&"inproc://test".parse().unwrap()))
            .unwrap();
        pipe.outgoing.close_and_take();
        let message = Message::from_iter([pipe.routing_id.clone(), "hello".into()]);
        let mut slot = Some(message.clone());
        let Poll::Ready(Err(error)) = RouteCache::default().poll_send(&shared, None, &mut slot) else {
            panic!("it was sent")
        };
        assert!(error.is_unroutable());
        assert_eq!(slot, Some(message));
    }

    #[test]
    fn a_message_goes_to_the_peer_that_has_the_identity_now() {
        let queue = FairQueue::new();
        let shared = Shared::new(SocketType::Router, SocketOptions::new(), queue.handle());
        let identity = Identity::new("worker").unwrap();
        let attach = || {
            shared
                .attach(
                    Some(&identity),
                    None,
                    CancellationToken::new(),
                    true,
                    shared.as_remote(&"inproc://test".parse().unwrap()),
                )
                .unwrap()
        };
        let mut route_cache = RouteCache::default();
        let mut send = || route_cache.poll_send(&shared, None, &mut Some(Message::from_iter(["worker", "hello"])));
        let first = attach();
        assert!(send().is_ready());
        shared.detach(&first, VecDeque::new());
        let second = attach();
        assert!(matches!(send(), Poll::Ready(Ok(()))));
        assert_eq!(second.outgoing.size().messages, 1);
    }
}
