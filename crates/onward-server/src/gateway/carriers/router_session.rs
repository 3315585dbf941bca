//! One session of a listening socket.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use onward_protocol::frame::Limits;
use onward_protocol::gateway::ErrorMessage;
use onward_protocol::worker::Hello;
use onward_protocol::{Code, Error, GatewayMessage, write_message};
use tokio::sync::{Notify, mpsc};

use super::outbox::{NotSent, Outbox};
use crate::gateway::bounds::SESSION_QUEUE;
use crate::gateway::options::Gateway;
use crate::gateway::session::Input;
use crate::gateway::worker::{Driver, Event};

/// The pause before a message is offered again to a worker that does not read.
const RETRY: Duration = Duration::from_millis(5);

/// A delivery of the socket to a session.
pub(super) enum Inbound {
    /// A message.
    Message(Vec<Bytes>),
    /// The worker has connected again, with this identity.
    Reattached(Bytes, Box<Hello>),
    /// Another worker has the identity now.
    Replaced,
}

/// One session of a listening socket.
pub(super) struct RouterSession {
    gateway: Gateway,
    driver: Driver,
    events: mpsc::UnboundedReceiver<Event>,
    inbound: mpsc::Receiver<Inbound>,
    overrun: Arc<Notify>,
    identity: Bytes,
    outbox: Outbox,
    /// The messages that the worker has not taken.
    unsent: VecDeque<Vec<Bytes>>,
    /// The time at which the worker took a message for the last time, if some wait.
    blocked_since: Option<Duration>,
}

/// The next thing that happens to a session.
enum SessionInput {
    Inbound(Option<Inbound>),
    Event(Option<Event>),
    Overrun,
    Drain,
    Abort,
    Tick,
}

impl RouterSession {
    pub(super) fn new(
        gateway: &Gateway,
        identity: Bytes,
        outbox: Outbox,
        inbound: mpsc::Receiver<Inbound>,
        overrun: Arc<Notify>,
    ) -> Self {
        let (driver, events) = Driver::new(gateway, true);
        let gateway = gateway.clone();
        Self {
            gateway,
            driver,
            events,
            inbound,
            overrun,
            identity,
            outbox,
            unsent: VecDeque::new(),
            blocked_since: None,
        }
    }

    pub(super) fn name(&self) -> &str {
        self.driver.session()
    }

    /// Serves the worker until its session is over.
    pub(super) async fn serve(mut self) {
        let mut is_draining = false;
        while !self.driver.is_closed() {
            match self.next(is_draining).await {
                SessionInput::Inbound(inbound) => self.received(inbound).await,
                SessionInput::Event(event) => self.driver.events(event, &mut self.events).await,
                SessionInput::Overrun => self.overrun().await,
                SessionInput::Drain => {
                    is_draining = true;
                    self.driver.drain(self.gateway.options.stop_within).await;
                }
                SessionInput::Abort => self.driver.abort().await,
                SessionInput::Tick => self.tick().await,
            }
            self.send().await;
        }
        let Self { driver, events, .. } = self;
        let ended = driver.finish(events).await;
        tracing::info!(why = ended.why, "the session of a worker is over");
    }

    async fn next(&mut self, is_draining: bool) -> SessionInput {
        let retry = self.blocked_since.map(|_| self.driver.now().saturating_add(RETRY));
        let wake = self.driver.wake_at().into_iter().chain(retry).min();
        let wait = wake.map(|at| at.saturating_sub(self.driver.now()));
        tokio::select! {
            biased;
            () = self.gateway.abort.cancelled() => SessionInput::Abort,
            () = self.gateway.drain.cancelled(), if !is_draining => SessionInput::Drain,
            () = self.overrun.notified() => SessionInput::Overrun,
            inbound = self.inbound.recv() => SessionInput::Inbound(inbound),
            // A worker that does not read gets no further tasks.
            event = self.events.recv(), if self.unsent.len() < SESSION_QUEUE => SessionInput::Event(event),
            () = tokio::time::sleep(wait.unwrap_or_default()), if wait.is_some() => SessionInput::Tick,
        }
    }

    async fn received(&mut self, inbound: Option<Inbound>) {
        match inbound {
            Some(Inbound::Message(frames)) => {
                let limits = Limits { payload: self.driver.payload_limit() };
                let input = match limits.check(&frames) {
                    Ok(()) => Input::Message(frames),
                    Err(error) => Input::Malformed(error),
                };
                self.driver.input(input).await;
            }
            Some(Inbound::Reattached(identity, hello)) => {
                self.identity = identity;
                self.forget_unsent();
                self.driver.input(Input::Reattached(hello)).await;
            }
            Some(Inbound::Replaced) => {
                self.driver.input(Input::Gone("another worker has connected with the same identity".to_owned())).await
            }
            None => self.driver.input(Input::Gone("the gateway has closed its socket".to_owned())).await,
        }
    }

    async fn tick(&mut self) {
        let limit = self.driver.heartbeat();
        let now = self.driver.now();
        if self.blocked_since.is_some_and(|since| now >= since.saturating_add(limit)) {
            return self.lost(&format!("the worker took no messages for {limit:?}")).await;
        }
        self.driver.input(Input::Tick).await;
    }

    /// Sends the queued messages that the worker accepts.
    async fn send(&mut self) {
        self.unsent.extend(self.driver.writer.take());
        let is_detached = self.driver.take_detached();
        while let Some(frames) = self.unsent.pop_front() {
            match self.outbox.send(&self.identity, frames) {
                Ok(()) => self.blocked_since = None,
                // The last message before the connection ends is not worth a wait.
                Err(NotSent::Full(_)) if is_detached => break,
                Err(NotSent::Full(frames)) => {
                    self.unsent.push_front(frames);
                    self.blocked_since = self.blocked_since.or_else(|| Some(self.driver.now()));
                    return;
                }
                Err(NotSent::Gone(why)) => return self.lost(&why).await,
            }
        }
        self.blocked_since = None;
        if is_detached {
            self.forget_unsent();
        }
    }

    /// Ends a connection that has lost messages. A ROUTER socket cannot close one connection, so
    /// the worker gets an error, and connects again with the ends that it keeps.
    async fn overrun(&mut self) {
        let why = format!("the worker sent more than {SESSION_QUEUE} messages ahead of a busy gateway");
        let error = GatewayMessage::Error(ErrorMessage::from(&Error::new(Code::Busy, why.clone())));
        if let Ok(frames) = write_message(&error, Vec::new()) {
            // A worker that does not read notices the loss when its own lease has passed.
            drop(self.outbox.send(&self.identity, frames));
        }
        self.lost(&why).await;
    }

    /// Handles the loss of the connection. The worker may connect again.
    async fn lost(&mut self, why: &str) {
        self.driver.input(Input::Disconnected(why.to_owned())).await;
        self.forget_unsent();
        // The messages of the lost connection are dropped with it.
        drop(self.driver.writer.take());
        let _ = self.driver.take_detached();
    }

    fn forget_unsent(&mut self) {
        self.unsent.clear();
        self.blocked_since = None;
    }
}
