//! Connections between sockets of one process, without streams.

use std::collections::{HashMap, VecDeque};
use std::future::poll_fn;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use tokio::sync::watch;
use tokio::task::coop;
use tokio::time::{Instant, timeout_at};

use super::connector::until_connecting_ends;
use super::incoming_batch::IncomingBatch;
use super::link::{ConnectionEnd, Link};
use super::pipe::Pipe;
use super::queue_items::Outgoing;
use crate::protocol::{self, Message, Peer};
use crate::socket::endpoint::Endpoint;
use crate::socket::error::{Error, Result};
use crate::socket::monitor::events::MonitorEvent;
use crate::socket::peers::remote_peer::RemotePeer;
use crate::socket::queue::items::Taken;
use crate::socket::shared::{Shared, TaskContext};
use std::sync::Arc;

/// The bound sockets of this process, by name.
static BOUND: LazyLock<Mutex<HashMap<String, TaskContext>>> = LazyLock::new(Mutex::default);
/// Notifies waiting connectors of a newly bound name.
static BINDINGS_CHANGED: LazyLock<watch::Sender<()>> = LazyLock::new(|| watch::Sender::new(()));

fn bound() -> MutexGuard<'static, HashMap<String, TaskContext>> {
    BOUND.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A name that a socket is bound to. It is released on drop.
pub(in crate::socket) struct BoundName(String);

impl BoundName {
    pub(in crate::socket) fn bind(context: &TaskContext, name: &str) -> Result<Self> {
        let mut bound = bound();
        if bound.contains_key(name) {
            return Err(Error::endpoint(format!(
                "another socket of this process is bound to `inproc://{name}`; unbind it, or use another name"
            )));
        }
        bound.insert(name.to_owned(), context.clone());
        drop(bound);
        BINDINGS_CHANGED.send_replace(());
        Ok(Self(name.to_owned()))
    }
}

impl Drop for BoundName {
    fn drop(&mut self) {
        // The lock is released before the context is dropped: it may be the last reference to the
        // socket's state, which contains functions of the program.
        let context = bound().remove(&self.0);
        drop(context);
    }
}

/// Waits until a socket is bound to the name, then carries messages until one of the two ends.
pub(super) async fn connect(link: &Link, name: &str) -> ConnectionEnd {
    let server = tokio::select! {
        biased;
        () = until_connecting_ends(&link.context.shared, &link.stop) => return ConnectionEnd::Stopped,
        server = find(name) => server,
    };
    match attach(link, &server) {
        Ok(connection) => connection.run().await,
        Err(error) => link.failed(error),
    }
}

async fn find(name: &str) -> TaskContext {
    let mut changes = BINDINGS_CHANGED.subscribe();
    loop {
        changes.borrow_and_update();
        let found = bound().get(name).cloned();
        if let Some(context) = found {
            return context;
        }
        // The sender is static, so this never fails.
        let _ = changes.changed().await;
    }
}

fn attach(link: &Link, server: &TaskContext) -> Result<InprocConnection> {
    let (ours, theirs) = (&link.context.shared, &server.shared);
    if !ours.socket_type.is_compatible_with(theirs.socket_type) {
        let (ours, theirs) = (ours.socket_type, theirs.socket_type);
        return Err(protocol::Error::incompatible(format!("a {theirs} socket cannot talk to a {ours} socket")).into());
    }
    let their_stop = theirs.token.child_token();
    let their_pipe = theirs.attach(ours.identity(), None, their_stop, false, ours.as_remote(&link.endpoint))?;
    let our_pipe = match ours.attach(
        link.assigned_identity.as_ref().or(theirs.identity()),
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
    Ok(InprocConnection {
        endpoint: link.endpoint.clone(),
        forward: Direction::new(ours.clone(), our_pipe.clone(), IncomingBatch::new(theirs.clone(), their_pipe.clone())),
        backward: Direction::new(theirs.clone(), their_pipe, IncomingBatch::new(ours.clone(), our_pipe)),
        _server: server.clone(),
    })
}

/// A connection of two sockets: a [`Direction`] each way.
struct InprocConnection {
    endpoint: Endpoint,
    forward: Direction,
    backward: Direction,
    _server: TaskContext,
}

impl InprocConnection {
    async fn run(mut self) -> ConnectionEnd {
        self.forward.report_connected(&self.endpoint, &self.backward.shared);
        self.backward.report_connected(&self.endpoint, &self.forward.shared);
        let began = Instant::now();
        let (our_stop, their_stop) = (self.forward.pipe.stop.clone(), self.backward.pipe.stop.clone());
        let end = tokio::select! {
            biased;
            () = our_stop.cancelled() => ConnectionEnd::Stopped,
            () = their_stop.cancelled() => ConnectionEnd::Lost { lasted: began.elapsed() },
            () = poll_fn(|context| self.poll(context)) => ConnectionEnd::Lost { lasted: began.elapsed() },
        };
        match end {
            ConnectionEnd::Stopped => self.forward.finish().await,
            _ => self.backward.finish().await,
        }
        end
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let forward = self.forward.poll(context);
        let backward = self.backward.poll(context);
        if forward.is_ready() || backward.is_ready() { Poll::Ready(()) } else { Poll::Pending }
    }
}

/// Ends the connection on drop, which also covers a task that is dropped because the runtime ends.
impl Drop for InprocConnection {
    fn drop(&mut self) {
        self.forward.detach(&self.endpoint, &self.backward.shared);
        self.backward.detach(&self.endpoint, &self.forward.shared);
    }
}

/// One direction of a connection.
struct Direction {
    shared: Arc<Shared>,
    pipe: Arc<Pipe>,
    taken: Taken<Outgoing>,
    incoming_batch: IncomingBatch,
}

impl Direction {
    fn new(shared: Arc<Shared>, pipe: Arc<Pipe>, incoming_batch: IncomingBatch) -> Self {
        Self { shared, pipe, taken: Taken::nothing(), incoming_batch }
    }

    /// Delivers messages while there are any and there is room for them. Returns `Ready` when there
    /// will be no more.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        loop {
            let progress = ready!(coop::poll_proceed(context));
            ready!(self.incoming_batch.poll_room(context));
            if self.taken.items.list.is_empty() {
                let Self { shared, pipe, taken, .. } = self;
                if !ready!(shared.poll_next_batch(pipe, context, taken)) {
                    return Poll::Ready(());
                }
            }
            self.deliver();
            progress.made_progress();
        }
    }

    fn deliver(&mut self) {
        while self.incoming_batch.has_room() {
            match self.taken.items.list.pop_front() {
                Some(Outgoing::Message(message)) => self.message(message),
                Some(Outgoing::Hello(message)) => self.incoming_batch.message(message),
                // No run can be here, because only messages for a stream are encoded. This would
                // still deliver one.
                Some(Outgoing::Run(run)) => run.for_each(|message| self.message(message)),
                Some(Outgoing::Subscribe(topic)) => self.incoming_batch.subscribed(&topic),
                Some(Outgoing::Cancel(topic)) => self.incoming_batch.cancelled(&topic),
                None => break,
            }
        }
        self.incoming_batch.flush();
        self.pipe.outgoing.done(&mut self.taken.done);
    }

    fn message(&mut self, message: Message) {
        self.taken.done.add(&message);
        self.incoming_batch.message(message);
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

    fn report_connected(&self, endpoint: &Endpoint, other: &Shared) {
        self.shared.report(MonitorEvent::Connected {
            endpoint: endpoint.clone(),
            peer: other.as_remote(endpoint).numbered(self.pipe.id),
        });
    }

    fn detach(&mut self, endpoint: &Endpoint, other: &Shared) {
        let lost = self.shared.detach(&self.pipe, std::mem::take(&mut self.taken.items.list));
        let (endpoint, peer) = (endpoint.clone(), other.as_remote(endpoint).numbered(self.pipe.id));
        self.shared.report(MonitorEvent::Disconnected { endpoint, peer, reason: Error::closed(), uncertain: 0, lost });
    }
}

impl Shared {
    fn identity(&self) -> Option<&protocol::Identity> {
        self.protocol.identity.as_ref().filter(|_| self.socket_type.sends_identity())
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
