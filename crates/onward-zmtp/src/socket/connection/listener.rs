//! A bound endpoint: it accepts connections, and limits those whose handshakes are not done.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::link::Link;
use super::transport::{Acceptor, Stream};
use crate::socket::bounds::ACCEPT_PAUSE;
use crate::socket::endpoint::Endpoint;
use crate::socket::error::Error;
use crate::socket::monitor::events::MonitorEvent;
use crate::socket::shared::TaskContext;

/// Accepts connections until `stop` is cancelled or the acceptor is closed. Existing connections
/// continue.
pub(in crate::socket) async fn listen(
    context: TaskContext,
    acceptor: Closing,
    endpoint: Endpoint,
    stop: CancellationToken,
) {
    let pending = Arc::new(Pending::new(context.shared.options.pending_handshakes));
    loop {
        let accepted = tokio::select! {
            biased;
            () = stop.cancelled() => break,
            accepted = acceptor.0.accept(&context.shared.options) => accepted,
        };
        match accepted {
            Ok(None) => break,
            Ok(Some((_, Some(address)))) if !context.shared.options.allows(address.ip()) => {
                let reason = Error::refused(format!("connections from {} are not allowed", address.ip()));
                context.shared.tell(MonitorEvent::ConnectionFailed { endpoint: endpoint.clone(), reason });
            }
            Ok(Some((stream, address))) => serve(&context, &endpoint, &pending, stream, address),
            // The peer has closed the connection before it was accepted.
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
            Err(error) => pause(&context, &endpoint, &stop, error).await,
        }
    }
}

/// The acceptor of a task. It is closed when the task ends, also if its runtime ends before the
/// task's first turn.
pub(in crate::socket) struct Closing(pub(in crate::socket) Acceptor);

impl Drop for Closing {
    fn drop(&mut self) {
        self.0.close();
    }
}

fn serve(
    context: &TaskContext,
    endpoint: &Endpoint,
    pending: &Arc<Pending>,
    stream: Stream,
    address: Option<SocketAddr>,
) {
    let (context, endpoint) = (context.clone(), endpoint.clone());
    let stop = context.shared.token.child_token();
    let place = Pending::enter(pending, stop.clone());
    tokio::spawn(async move {
        let link = Link { context, endpoint, address, connector: None, known_as: None, stop };
        let established = tokio::select! {
            biased;
            () = link.stop.cancelled() => Err(Error::limit("the handshake gave way to others, which were too many")),
            established = link.establish(stream) => established,
        };
        drop(place);
        match established {
            Ok(established) => drop(link.carry(established).await),
            Err(error) => link.report_failure(error),
        }
    });
}

/// Waits after a failed accept. If no file descriptors are left, other connections need time to
/// release some.
async fn pause(context: &TaskContext, endpoint: &Endpoint, stop: &CancellationToken, error: io::Error) {
    let reason = Error::io(format_args!("cannot accept a connection on {endpoint}"), error);
    context.shared.tell(MonitorEvent::AcceptFailed { endpoint: endpoint.clone(), reason });
    tokio::select! {
        () = stop.cancelled() => {}
        () = sleep(ACCEPT_PAUSE) => {}
    }
}

/// The connections that are in their handshakes, oldest first.
struct Pending {
    limit: usize,
    places: Mutex<Places>,
}

#[derive(Default)]
struct Places {
    next: u64,
    taken: BTreeMap<u64, CancellationToken>,
}

/// The place of one of these connections. It is released on drop.
struct Place {
    pending: Arc<Pending>,
    number: u64,
}

impl Pending {
    fn new(limit: usize) -> Self {
        Self { limit, places: Mutex::new(Places::default()) }
    }

    /// Takes a place. If all are taken, the oldest connection is closed: a normal peer completes
    /// its handshake quickly, so the oldest one is the most likely to be idle.
    fn enter(pending: &Arc<Self>, stop: CancellationToken) -> Place {
        let mut places = pending.places();
        let oldest = if places.taken.len() >= pending.limit { places.taken.pop_first() } else { None };
        let number = places.next;
        places.next += 1;
        places.taken.insert(number, stop);
        drop(places);
        if let Some((_, stop)) = oldest {
            stop.cancel();
        }
        Place { pending: pending.clone(), number }
    }

    fn places(&self) -> MutexGuard<'_, Places> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.pending.places().taken.remove(&self.number);
    }
}
