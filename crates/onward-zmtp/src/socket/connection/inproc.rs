//! Connections between sockets of one process, without streams.

use std::collections::{HashMap, VecDeque};
use std::future::poll_fn;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use tokio::sync::watch;
use tokio::task::coop;
use tokio::time::{Instant, timeout_at};

use super::connector::patience;
use super::incoming_batch::Delivery;
use super::link::{End, Link};
use super::pipe::Pipe;
use super::queue_items::Outgoing;
use crate::protocol::{self, Message, Peer};
use crate::socket::endpoint::Endpoint;
use crate::socket::error::{Error, Result};
use crate::socket::monitor::events::MonitorEvent;
use crate::socket::peers::remote_peer::RemotePeer;
use crate::socket::queue::bounded_queue::Taken;
use crate::socket::shared::{Shared, TaskContext};
use std::sync::Arc;

/// The bound sockets of this process, by name.
static BOUND: LazyLock<Mutex<HashMap<String, TaskContext>>> = LazyLock::new(Mutex::default);
/// Notifies waiting connectors of a newly bound name.
static NEWS: LazyLock<watch::Sender<()>> = LazyLock::new(|| watch::Sender::new(()));

fn bound() -> MutexGuard<'static, HashMap<String, TaskContext>> {
    BOUND.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A name that a socket is bound to. It is released on drop.
pub(in crate::socket) struct Name(String);

impl Name {
    pub(in crate::socket) fn bind(context: &TaskContext, name: &str) -> Result<Self> {
        let mut bound = bound();
        if bound.contains_key(name) {
            return Err(Error::endpoint(format!("another socket of this process is bound to `inproc://{name}`")));
        }
        bound.insert(name.to_owned(), context.clone());
        drop(bound);
        NEWS.send_replace(());
        Ok(Self(name.to_owned()))
    }
}

impl Drop for Name {
    fn drop(&mut self) {
        let context = bound().remove(&self.0);
        drop(context);
    }
}

/// Waits until a socket is bound to the name, then carries messages until one of the two ends.
pub(super) async fn connect(link: &Link, name: &str) -> End {
    let server = tokio::select! {
        biased;
        () = patience(&link.context.shared, &link.stop) => return End::Stopped,
        server = find(name) => server,
    };
    match attach(link, &server) {
        Ok(wire) => wire.carry().await,
        Err(error) => link.failed(error),
    }
}

async fn find(name: &str) -> TaskContext {
    let mut news = NEWS.subscribe();
    loop {
        news.borrow_and_update();
        let found = bound().get(name).cloned();
        if let Some(context) = found {
            return context;
        }
        // The sender is static, so this never fails.
        let _ = news.changed().await;
    }
}

fn attach(link: &Link, server: &TaskContext) -> Result<Wire> {
    let (ours, theirs) = (&link.context.shared, &server.shared);
    if !ours.socket_type.is_compatible_with(theirs.socket_type) {
        let (ours, theirs) = (ours.socket_type, theirs.socket_type);
        return Err(protocol::Error::incompatible(format!("a {theirs} socket cannot talk to a {ours} socket")).into());
    }
    let their_stop = theirs.token.child_token();
    let their_pipe = theirs.attach(ours.identity(), None, their_stop, false, ours.as_remote(&link.endpoint))?;
    let our_pipe = match ours.attach(
        link.known_as.as_ref().or(theirs.identity()),
        link.connector,
        link.stop.clone(),
        false,
        theirs.as_remote(&link.endpoint),
    ) {
        Ok(pipe) => pipe,
        Err(error) => {
            theirs.detach(&their_pipe, VecDeque::new());
            return Err(error);
        }
    };
    Ok(Wire {
        endpoint: link.endpoint.clone(),
        there: Way::new(ours.clone(), our_pipe.clone(), Delivery::new(theirs.clone(), their_pipe.clone())),
        back: Way::new(theirs.clone(), their_pipe, Delivery::new(ours.clone(), our_pipe)),
        _server: server.clone(),
    })
}

/// A connection of two sockets: one way in each direction.
struct Wire {
    endpoint: Endpoint,
    there: Way,
    back: Way,
    _server: TaskContext,
}

impl Wire {
    async fn carry(mut self) -> End {
        self.there.tell_connected(&self.endpoint, &self.back.shared);
        self.back.tell_connected(&self.endpoint, &self.there.shared);
        let began = Instant::now();
        let (our_stop, their_stop) = (self.there.pipe.stop.clone(), self.back.pipe.stop.clone());
        let end = tokio::select! {
            biased;
            () = our_stop.cancelled() => End::Stopped,
            () = their_stop.cancelled() => End::Lost { lasted: began.elapsed() },
            () = poll_fn(|context| self.poll(context)) => End::Lost { lasted: began.elapsed() },
        };
        match end {
            End::Stopped => self.there.finish().await,
            _ => self.back.finish().await,
        }
        end
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let there = self.there.poll(context);
        let back = self.back.poll(context);
        if there.is_ready() || back.is_ready() { Poll::Ready(()) } else { Poll::Pending }
    }
}

/// Ends the connection on drop, which also covers a task that is dropped because the runtime ends.
impl Drop for Wire {
    fn drop(&mut self) {
        self.there.leave(&self.endpoint, &self.back.shared);
        self.back.leave(&self.endpoint, &self.there.shared);
    }
}

/// One direction of a connection.
struct Way {
    shared: Arc<Shared>,
    pipe: Arc<Pipe>,
    taken: Taken<Outgoing>,
    delivery: Delivery,
}

impl Way {
    fn new(shared: Arc<Shared>, pipe: Arc<Pipe>, delivery: Delivery) -> Self {
        Self { shared, pipe, taken: Taken::nothing(), delivery }
    }

    /// Delivers messages while there are any and there is room for them. Returns `Ready` when there
    /// will be no more.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        loop {
            let progress = ready!(coop::poll_proceed(context));
            ready!(self.delivery.poll_room(context));
            if self.taken.items.list.is_empty() {
                let Self { shared, pipe, taken, .. } = self;
                if !ready!(shared.poll_next_batch(pipe, context, taken)) {
                    return Poll::Ready(());
                }
            }
            self.hand_over();
            progress.made_progress();
        }
    }

    fn hand_over(&mut self) {
        while self.delivery.has_room() {
            match self.taken.items.list.pop_front() {
                Some(Outgoing::Message(message)) => self.message(message),
                Some(Outgoing::Hello(message)) => self.delivery.message(message),
                // No run can be here, because only messages for a stream are encoded. This would
                // still deliver one.
                Some(Outgoing::Run(run)) => run.for_each(|message| self.message(message)),
                Some(Outgoing::Subscribe(topic)) => self.delivery.subscribed(&topic),
                Some(Outgoing::Cancel(topic)) => self.delivery.cancelled(&topic),
                None => break,
            }
        }
        self.delivery.flush();
        self.pipe.outgoing.done(&mut self.taken.done);
    }

    fn message(&mut self, message: Message) {
        self.taken.done.add(&message);
        self.delivery.message(message);
    }

    /// Delivers what is queued, for as long as the socket lingers.
    async fn finish(&mut self) {
        self.shared.retire(&self.pipe);
        let deadline = self.shared.linger_deadline();
        let flush = poll_fn(|context| self.poll(context));
        match deadline {
            // Messages left at the deadline are counted as dropped.
            Some(deadline) => drop(timeout_at(deadline, flush).await),
            None => flush.await,
        }
    }

    fn tell_connected(&self, endpoint: &Endpoint, other: &Shared) {
        self.shared.tell(MonitorEvent::Connected {
            endpoint: endpoint.clone(),
            peer: other.as_remote(endpoint).numbered(self.pipe.id),
        });
    }

    fn leave(&mut self, endpoint: &Endpoint, other: &Shared) {
        let lost = self.shared.detach(&self.pipe, std::mem::take(&mut self.taken.items.list));
        let (endpoint, peer) = (endpoint.clone(), other.as_remote(endpoint).numbered(self.pipe.id));
        self.shared.tell(MonitorEvent::Disconnected { endpoint, peer, reason: Error::closed(), uncertain: 0, lost });
    }
}

impl Shared {
    fn identity(&self) -> Option<&protocol::Identity> {
        self.protocol.identity.as_ref().filter(|_| self.socket_type.tells_identity())
    }

    /// Describes this socket as another socket of the process sees it.
    pub(in crate::socket) fn as_remote(&self, endpoint: &Endpoint) -> RemotePeer {
        let peer = Peer {
            socket_type: self.socket_type,
            identity: self.identity().cloned(),
            version: (3, 1),
            client_key: None,
            metadata: protocol::Metadata::of(self.socket_type, self.identity(), &self.protocol.properties),
        };
        RemotePeer::new(endpoint.clone(), None, peer)
    }
}
