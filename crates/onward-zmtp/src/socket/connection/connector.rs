//! A connector: it connects to an endpoint, and reconnects when the connection ends.

use std::future::pending;
use std::io;

use tokio::time::{sleep, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use super::backoff::Backoff;
use super::inproc;
use super::link::{ConnectionEnd, Established, Greeting, Link};
use super::refusal::Refusals;
use super::transport::Stream;
use crate::protocol::Identity;
use crate::socket::endpoint::Endpoint;
use crate::socket::error::{Error, Result};
use crate::socket::monitor::events::MonitorEvent;
use crate::socket::shared::{Shared, TaskContext};

/// Connects, and reconnects after every end of a connection, until `stop` is cancelled or the peer
/// refuses the socket for good.
pub(in crate::socket) async fn connect(
    context: TaskContext,
    endpoint: Endpoint,
    assigned_identity: Option<Identity>,
    stop: CancellationToken,
) {
    let shared = context.shared.clone();
    let connector = Some(shared.next_id());
    let mut guard = ConnectorGuard(Some(Link { connector, context, endpoint, address: None, assigned_identity, stop }));
    // Only the end below takes the link, so it is here.
    let Some(link) = &guard.0 else { return };
    let mut backoff = Backoff::new(shared.options.reconnect);
    let mut refusals = Refusals::new(shared.options.on_refusal);
    let (mut refusal, mut greeting) = (None, Greeting::Whole);
    // A closed socket still connects while messages wait for a peer. Its linger time ends that.
    while !link.stop.is_cancelled() || shared.has_backlog() {
        let end = attempt(link, greeting).await;
        greeting = Greeting::after(&end);
        match end {
            ConnectionEnd::Stopped => break,
            ConnectionEnd::Failed(error) if refusals.is_final(&error) => {
                refusal = Some(Error::refused_by(&link.endpoint, &error));
                break;
            }
            ConnectionEnd::Failed(_) | ConnectionEnd::Lost { .. } if shared.options.connects_once => {
                refusal =
                    Some(Error::gone(format!("the one connection to `{}` is gone; connect again", link.endpoint)));
                break;
            }
            ConnectionEnd::Failed(_) => {}
            ConnectionEnd::Lost { lasted } => {
                refusals.was_accepted();
                backoff.connection_lasted(lasted);
            }
        }
        let after = backoff.delay(fastrand::f64());
        shared.report(MonitorEvent::WillReconnect { endpoint: link.endpoint.clone(), after });
        tokio::select! {
            biased;
            () = until_connecting_ends(&shared, &link.stop) => break,
            () = sleep(after) => {}
        }
    }
    guard.end(refusal);
}

/// The link of a connector. If the runtime drops the task, the socket no longer connects to the
/// endpoint either, and its program is notified.
struct ConnectorGuard(Option<Link>);

impl ConnectorGuard {
    fn end(&mut self, reason: Option<Error>) {
        let Some(link) = self.0.take() else { return };
        // This allows the program to connect to the endpoint again.
        link.stop.cancel();
        link.context.shared.end_connecting(reason);
        link.context.shared.report(MonitorEvent::ConnectingEnded { endpoint: link.endpoint });
    }
}

impl Drop for ConnectorGuard {
    fn drop(&mut self) {
        let reason = self.0.as_ref().and_then(Link::runtime_end);
        self.end(reason);
    }
}

async fn attempt(link: &Link, greeting: Greeting) -> ConnectionEnd {
    if let Endpoint::Inproc(name) = &link.endpoint {
        return inproc::connect(link, name).await;
    }
    let opened = tokio::select! {
        biased;
        () = until_connecting_ends(&link.context.shared, &link.stop) => return ConnectionEnd::Stopped,
        opened = open(link, greeting) => opened,
    };
    match opened {
        Ok(established) => link.run(established).await,
        Err(error) => link.failed(error),
    }
}

async fn open(link: &Link, greeting: Greeting) -> Result<Established> {
    let options = &link.context.shared.options;
    let limit = options.connect_timeout;
    let Ok(connected) = timeout(limit, Stream::connect(&link.endpoint, options)).await else {
        let late = format!("it took longer than {limit:?} (`SocketOptions::connect_timeout`)");
        let late = io::Error::new(io::ErrorKind::TimedOut, late);
        return Err(Error::io(format_args!("cannot connect to {}", options.route(&link.endpoint)), late));
    };
    link.establish(connected?, greeting).await
}

/// Waits until connecting has no more use: at `stop`, or, if a closed socket still has messages to
/// send, at the end of its linger time.
pub(super) async fn until_connecting_ends(shared: &Shared, stop: &CancellationToken) {
    stop.cancelled().await;
    if shared.token.is_cancelled() && shared.has_backlog() {
        match shared.linger_deadline() {
            Some(deadline) => sleep_until(deadline).await,
            None => pending().await,
        }
    }
}
