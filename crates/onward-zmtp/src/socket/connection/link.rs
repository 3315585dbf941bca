//! The life of one connection: handshake, traffic, end.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Buf;
use tokio::io::AsyncWriteExt as _;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::io::poll_read_buf;
use tokio_util::sync::CancellationToken;

use super::driver::{Driver, SharedDriver};
use super::pipe::Pipe;
use super::transport::Stream;
use crate::protocol::{
    self, Connection, Credentials, Entropy, Event, GREETING_BEGINNING, GREETING_BYTES, Identity, Peer,
};
use crate::socket::bounds::GREETING_STEP;
use crate::socket::endpoint::Endpoint;
use crate::socket::error::{Error, Result};
use crate::socket::monitor::events::MonitorEvent;
use crate::socket::peers::remote_peer::RemotePeer;
use crate::socket::security::authentication::{Candidate, Decision};
use crate::socket::shared::{Shared, TaskContext};

/// The time for sending the reason to a peer that is refused.
const REFUSAL_TIME: Duration = Duration::from_millis(100);

/// A stream whose handshake has not begun.
pub(super) struct Link {
    pub(super) context: TaskContext,
    pub(super) endpoint: Endpoint,
    /// The address of the peer, if it was accepted over TCP.
    pub(super) address: Option<SocketAddr>,
    /// The identity that the socket assigns to the peer.
    pub(super) assigned_identity: Option<Identity>,
    /// The number of the connector, if the connection was not accepted.
    pub(super) connector: Option<u64>,
    /// Ends the connection when it is cancelled.
    pub(super) stop: CancellationToken,
}

/// The way in which a connection ended.
pub(super) enum ConnectionEnd {
    /// Stopped by the socket.
    Stopped,
    /// Failed before the handshake was done.
    Failed(Error),
    /// Lost after the handshake.
    Lost {
        /// The time for which it was established.
        lasted: Duration,
    },
}

/// The way in which a socket sends its greeting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Greeting {
    /// All at once.
    Whole,
    /// Signature and version first, and the rest when the peer has sent its greeting. libzmq closes
    /// a connection without a reply if the first octets that it reads name another mechanism than
    /// its own. This step makes it name its own first, so that the reason is known.
    InSteps,
}

impl Greeting {
    /// Returns the way to greet in the attempt after one with this end.
    pub(super) fn after(end: &ConnectionEnd) -> Self {
        let is_closed = |error: &Error| error.protocol().is_some_and(protocol::Error::is_disconnected);
        match end {
            ConnectionEnd::Failed(error) if is_closed(error) => Self::InSteps,
            _ => Self::Whole,
        }
    }
}

impl Link {
    fn shared(&self) -> &Arc<Shared> {
        &self.context.shared
    }

    /// Does the handshake and adds the peer to the socket. The future may be dropped at any time,
    /// which closes the stream.
    pub(super) async fn establish(&self, stream: Stream, greeting: Greeting) -> Result<Established> {
        let (options, entropy) = (self.shared().protocol.clone(), Entropy::from_system()?);
        let begin = if self.connector.is_some() { Connection::new } else { Connection::accepted };
        let connection = begin(options, entropy, Instant::now().into_std());
        let mut handshake = Handshake { stream, connection, pipe: None, greeting };
        match handshake.complete(self).await {
            Ok((peer, pipe)) => Ok(Established { handshake, peer, pipe }),
            Err(error) => {
                if let Some(pipe) = handshake.pipe.take() {
                    self.shared().detach(&pipe, VecDeque::new());
                }
                handshake.send_refusal().await;
                Err(error)
            }
        }
    }

    /// Carries messages until the connection ends.
    pub(super) async fn run(&self, established: Established) -> ConnectionEnd {
        let Established { handshake: Handshake { stream, connection, .. }, peer, pipe } = established;
        let (shared, began) = (self.shared(), Instant::now());
        shared.report(MonitorEvent::Connected { endpoint: self.endpoint.clone(), peer: peer.clone() });
        if shared.protocol.lacks_heartbeat(peer.peer()) {
            shared.report(MonitorEvent::HeartbeatUnavailable { endpoint: self.endpoint.clone(), peer: peer.clone() });
        }
        let driver = Driver::new(stream, connection, shared.clone(), pipe.clone());
        let driver = Arc::new(SharedDriver::new(driver));
        pipe.allow_direct_writes(driver.direct_writer());
        let mut guard = DetachGuard { link: self, driver: Some(driver), pipe: &pipe, peer, reason: None };
        // Only the drop of the guard takes the driver, so it is here.
        let Some(driver) = &guard.driver else { return ConnectionEnd::Stopped };
        guard.reason = driver.run(&self.stop).await;
        match &guard.reason {
            None => {
                shared.retire(&pipe);
                driver.finish(shared.linger_deadline()).await;
                ConnectionEnd::Stopped
            }
            Some(reason) => {
                if reason.protocol().is_some_and(protocol::Error::is_limit) {
                    // The peer gets no more messages while it is sent the reason.
                    shared.retire(&pipe);
                    driver.flush_and_shut_down(Instant::now() + REFUSAL_TIME).await;
                }
                ConnectionEnd::Lost { lasted: began.elapsed() }
            }
        }
    }

    /// Returns the reason for a task that ends without having been stopped.
    pub(super) fn runtime_end(&self) -> Option<Error> {
        let what = if self.connector.is_some() { "connected to" } else { "bound to" };
        (!self.stop.is_cancelled()).then(|| Error::runtime_ended(what, &self.endpoint))
    }

    fn attach(&self, peer: &RemotePeer) -> Result<Arc<Pipe>> {
        let identity = self.assigned_identity.as_ref().or(peer.identity());
        self.shared().attach(identity, self.connector, self.stop.clone(), true, peer.clone())
    }

    /// Reports that a connection failed before the handshake was done.
    pub(super) fn failed(&self, reason: Error) -> ConnectionEnd {
        self.report_failure(reason.clone());
        ConnectionEnd::Failed(reason)
    }

    pub(super) fn report_failure(&self, reason: Error) {
        self.shared().report(MonitorEvent::ConnectionFailed { endpoint: self.endpoint.clone(), reason });
    }

    async fn decide(&self, credentials: Credentials) -> Decision {
        let Some(authenticator) = &self.shared().options.authenticator else { return Decision::refuse() };
        let (endpoint, address) = (self.endpoint.clone(), self.address);
        authenticator(Candidate { endpoint, address, credentials }).await
    }
}

/// The end of an established connection. It runs on drop, so also if the runtime ends and drops the
/// task. Every lost message is therefore counted.
struct DetachGuard<'a> {
    link: &'a Link,
    driver: Option<Arc<SharedDriver>>,
    pipe: &'a Arc<Pipe>,
    peer: RemotePeer,
    reason: Option<Error>,
}

impl Drop for DetachGuard<'_> {
    fn drop(&mut self) {
        let Some(driver) = self.driver.take() else { return };
        let (unsent, uncertain) = driver.take_unsent();
        // The stream is closed before the end is reported.
        drop(driver);
        let shared = self.link.shared();
        let lost = shared.detach(self.pipe, unsent);
        shared.drop_outgoing(uncertain);
        let (endpoint, peer) = (self.link.endpoint.clone(), self.peer.clone());
        let reason = self.reason.take().or_else(|| self.link.runtime_end()).unwrap_or_else(Error::closed);
        shared.report(MonitorEvent::Disconnected { endpoint, peer, reason, uncertain, lost });
    }
}

/// A connection whose handshake is done.
pub(super) struct Established {
    handshake: Handshake,
    peer: RemotePeer,
    pipe: Arc<Pipe>,
}

struct Handshake {
    stream: Stream,
    connection: Connection,
    /// The pipe of an accepted peer, created before that peer is allowed to send.
    pipe: Option<Arc<Pipe>>,
    greeting: Greeting,
}

impl Handshake {
    async fn complete(&mut self, link: &Link) -> Result<(RemotePeer, Arc<Pipe>)> {
        let Some(deadline) = self.connection.next_timeout() else { return self.proceed(link).await };
        match timeout_at(Instant::from_std(deadline), self.proceed(link)).await {
            Ok(outcome) => outcome,
            Err(_) => {
                // The timer has fired, so at least the deadline is reached, even if the clock says
                // less.
                self.connection.handle_timeout(deadline.max(Instant::now().into_std()))?;
                Err(protocol::Error::timeout("the peer did not complete the handshake in time").into())
            }
        }
    }

    async fn proceed(&mut self, link: &Link) -> Result<(RemotePeer, Arc<Pipe>)> {
        if self.greeting == Greeting::InSteps {
            self.begin_greeting().await?;
        }
        loop {
            match self.connection.poll_event(Instant::now().into_std())? {
                Some(Event::Introduced(peer)) => {
                    self.pipe = Some(link.attach(&self.remote(link, *peer))?);
                    self.connection.accept()?;
                }
                Some(Event::Ready(peer)) => {
                    let peer = self.remote(link, *peer);
                    let pipe = self.pipe.take().map_or_else(|| link.attach(&peer), Ok)?;
                    return Ok((peer.numbered(pipe.id), pipe));
                }
                Some(Event::Authenticate(credentials)) => match link.decide(credentials).await {
                    Decision::Accept => self.connection.accept()?,
                    Decision::Refuse(reason) => self.connection.refuse(&reason)?,
                },
                Some(_) => {}
                None => self.exchange().await?,
            }
        }
    }

    fn remote(&self, link: &Link, peer: Peer) -> RemotePeer {
        // The other end of a stream through a proxy is the proxy, not the peer.
        let is_direct = link.connector.is_none() || link.shared().options.socks_proxy.is_none();
        let address = self.stream.peer_address().filter(|_| is_direct);
        RemotePeer::new(link.endpoint.clone(), address, peer)
    }

    /// Writes everything, then reads once. It reads also after a failed write, because the peer may
    /// have sent the reason why it closed.
    async fn exchange(&mut self) -> Result<()> {
        let written = self.stream.write_all_buf(self.connection.output()).await;
        self.read_behind(written).await.map(drop)
    }

    /// Writes signature and version, and reads the greeting of the peer. A peer that waits for the
    /// whole greeting gets it after [`GREETING_STEP`].
    async fn begin_greeting(&mut self) -> Result<()> {
        let mut beginning = Buf::take(self.connection.output(), GREETING_BEGINNING);
        let written = self.stream.write_all_buf(&mut beginning).await;
        let greeting = async {
            let mut received = self.read_behind(written).await?;
            while received < GREETING_BYTES {
                received += self.read_behind(Ok(())).await?;
            }
            Ok(())
        };
        timeout(GREETING_STEP, greeting).await.unwrap_or(Ok(()))
    }

    /// Reads once, behind a write with this result. Returns the number of octets.
    async fn read_behind(&mut self, written: io::Result<()>) -> Result<usize> {
        let (stream, connection) = (&mut self.stream, &mut self.connection);
        let read = poll_fn(|context| poll_read_buf(Pin::new(&mut *stream), context, &mut connection.read_buf())).await;
        match (written, read) {
            (_, Ok(read @ 1..)) => Ok(read),
            (Err(error), _) => Err(Error::io("writing to the peer failed", error)),
            (Ok(()), Ok(0)) => Err(self.connection.end_of_stream().into()),
            (Ok(()), Err(error)) => Err(Error::io("reading from the peer failed", error)),
        }
    }

    /// Sends the reason of the refusal to the peer, if that is possible at once.
    async fn send_refusal(&mut self) {
        if self.connection.wants_write() {
            let closing = async {
                self.stream.write_all_buf(self.connection.output()).await?;
                self.stream.shutdown().await
            };
            // The peer may be gone, or may not read, so the result does not matter.
            let _ = timeout(REFUSAL_TIME, closing).await;
        }
    }
}
