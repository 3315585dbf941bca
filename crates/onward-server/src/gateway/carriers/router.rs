//! The messages of many workers on one socket, and their delivery to sessions.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use onward_protocol::gateway::ErrorMessage;
use onward_protocol::worker::Hello;
use onward_protocol::{Code, Error, GatewayMessage, write_message};
use onward_zmtp::RouterSocket;
use onward_zmtp::protocol::Message;
use onward_zmtp::socket::{Receiver, kind};
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinSet;

use super::outbox::Outbox;
use super::router_session::{Inbound, RouterSession};
use crate::gateway::bounds::{CATCH_UP, SESSION_QUEUE, SESSIONS};
use crate::gateway::options::Gateway;
use crate::gateway::worker::Driver;

/// The sessions of a listening gateway.
pub(super) struct Router {
    gateway: Gateway,
    receiver: Receiver<kind::Router>,
    outbox: Outbox,
    sessions: HashMap<String, Handle>,
    /// The session of each connection.
    connections: HashMap<Bytes, String>,
    tasks: JoinSet<String>,
}

/// The sending end of the queue to a session.
struct Handle {
    inbound: mpsc::Sender<Inbound>,
    /// Notified when a message was dropped because the session does not read.
    overrun: Arc<Notify>,
    /// True from such a message until the session takes one again. Other workers wait for it once.
    is_behind: bool,
    hello: Option<Box<Hello>>,
}

impl Router {
    pub(super) fn new(gateway: Gateway, socket: RouterSocket) -> Self {
        let (sender, receiver) = socket.split();
        Self {
            gateway,
            receiver,
            outbox: Outbox::new(sender),
            sessions: HashMap::new(),
            connections: HashMap::new(),
            tasks: JoinSet::new(),
        }
    }

    pub(super) async fn run(mut self) {
        loop {
            let is_stopping = self.gateway.drain.is_cancelled() || self.gateway.abort.is_cancelled();
            if is_stopping && self.tasks.is_empty() {
                return;
            }
            tokio::select! {
                message = self.receiver.recv() => match message {
                    Ok(message) => self.message(message).await,
                    Err(error) => {
                        tracing::error!(%error, "the gateway can receive no more");
                        self.gateway.drain();
                    }
                },
                Some(ended) = self.tasks.join_next() => self.ended(&ended.unwrap_or_default()),
                () = self.gateway.drain.cancelled(), if !is_stopping => {}
                () = self.gateway.abort.cancelled(), if !is_stopping => {}
            }
        }
    }

    fn ended(&mut self, session: &str) {
        self.sessions.remove(session);
        self.connections.retain(|_, of| of != session);
    }

    async fn message(&mut self, mut message: Message) {
        let Some(identity) = message.pop_front() else { return };
        let frames = message.frames().to_vec();
        match (Driver::is_hello(&frames), self.connections.get(&identity).cloned()) {
            (None, Some(session)) => self.deliver(&session, Inbound::Message(frames)).await,
            (None, None) => self.open(identity, None, frames).await,
            (Some(hello), known) => self.hello(identity, hello, known, frames).await,
        }
    }

    /// Handles a `hello`: of a new worker, or of one that has connected again.
    async fn hello(&mut self, identity: Bytes, hello: Box<Hello>, known: Option<String>, frames: Vec<Bytes>) {
        let resumed = hello.resume.as_ref().map(|resume| resume.session.clone());
        let continues = resumed.filter(|session| self.sessions.get(session).is_some_and(|it| it.continues_as(&hello)));
        if let Some(session) = continues {
            self.connections.retain(|_, of| *of != session);
            self.connections.insert(identity.clone(), session.clone());
            return self.deliver(&session, Inbound::Reattached(identity, hello)).await;
        }
        if let Some(session) = known {
            // The worker chose the identity of its last connection, but does not continue it.
            self.connections.remove(&identity);
            self.deliver(&session, Inbound::Replaced).await;
        }
        self.open(identity, Some(hello), frames).await;
    }

    async fn open(&mut self, identity: Bytes, hello: Option<Box<Hello>>, frames: Vec<Bytes>) {
        let refusal = if self.gateway.drain.is_cancelled() {
            Some(Error::new(Code::ShuttingDown, "the gateway stops"))
        } else if self.sessions.len() >= SESSIONS {
            Some(Error::new(Code::Busy, format!("the gateway has {SESSIONS} sessions, which is the bound")))
        } else {
            None
        };
        if let Some(error) = refusal {
            return self.refuse(&identity, &error);
        }
        let (inbound, received) = mpsc::channel(SESSION_QUEUE);
        let overrun = Arc::new(Notify::new());
        let session =
            RouterSession::new(&self.gateway, identity.clone(), self.outbox.clone(), received, Arc::clone(&overrun));
        let name = session.name().to_owned();
        self.sessions.insert(name.clone(), Handle { inbound, overrun, is_behind: false, hello });
        self.connections.insert(identity, name.clone());
        let ended = name.clone();
        self.tasks.spawn(async move {
            session.serve().await;
            ended
        });
        self.deliver(&name, Inbound::Message(frames)).await;
    }

    fn refuse(&self, identity: &Bytes, error: &Error) {
        let message = GatewayMessage::Error(ErrorMessage::from(error));
        if let Ok(frames) = write_message(&message, Vec::new()) {
            // A worker that does not read finds out when it connects again.
            drop(self.outbox.send(identity, frames));
        }
    }

    async fn deliver(&mut self, session: &str, inbound: Inbound) {
        let Some(handle) = self.sessions.get_mut(session) else { return };
        // A closed queue belongs to a session that has ended.
        let Err(mpsc::error::TrySendError::Full(inbound)) = handle.inbound.try_send(inbound) else {
            handle.is_behind = false;
            return;
        };
        // A worker may send many messages at once. Its session reads them in a moment, for which
        // the other workers wait.
        if handle.is_behind || tokio::time::timeout(CATCH_UP, handle.inbound.send(inbound)).await.is_err() {
            handle.is_behind = true;
            handle.overrun.notify_one();
        }
    }
}

impl Handle {
    /// Returns true if a worker with this `hello` may continue the session: it must handle the same
    /// kinds.
    fn continues_as(&self, hello: &Hello) -> bool {
        self.hello.as_ref().is_some_and(|first| first.kinds == hello.kinds)
    }
}
