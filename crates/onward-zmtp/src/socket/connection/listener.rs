//! A bound endpoint: it accepts connections, and limits those whose handshakes are not done.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::link::{Greeting, Link};
use super::transport::{Acceptor, Stream};
use crate::socket::bounds::ACCEPT_PAUSE;
use crate::socket::endpoint::Endpoint;
use crate::socket::error::Error;
use crate::socket::monitor::events::MonitorEvent;
use crate::socket::shared::{Shared, TaskContext};

/// Accepts connections until `stop` is cancelled or the acceptor is closed. Existing connections
/// continue.
pub(in crate::socket) async fn listen(
    context: TaskContext,
    guard: ListenerGuard,
    endpoint: Endpoint,
    stop: CancellationToken,
) {
    let pending = Arc::new(PendingHandshakes::new(context.shared.options.pending_handshakes));
    loop {
        let accepted = tokio::select! {
            biased;
            () = stop.cancelled() => break,
            accepted = guard.acceptor.accept(&context.shared.options) => accepted,
        };
        match accepted {
            Ok(None) => break,
            Ok(Some((_, Some(address)))) if !context.shared.options.allows(address.ip()) => {
                let reason = Error::refused(format!("connections from {} are not allowed", address.ip()));
                context.shared.report(MonitorEvent::ConnectionFailed { endpoint: endpoint.clone(), reason });
            }
            Ok(Some((stream, address))) => serve(&context, &endpoint, &pending, stream, address),
            // The peer has closed the connection before it was accepted.
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
            Err(error) => pause(&context, &endpoint, &stop, error).await,
        }
    }
}

/// The acceptor of a task. It is closed when the task ends, also if its runtime ends before the
/// task's first turn. If the program has not closed it, the program is notified.
pub(in crate::socket) struct ListenerGuard {
    pub(in crate::socket) shared: Arc<Shared>,
    pub(in crate::socket) acceptor: Acceptor,
    pub(in crate::socket) endpoint: Endpoint,
}

impl Drop for ListenerGuard {
    fn drop(&mut self) {
        if self.acceptor.close() {
            let is_open = !self.shared.token.is_cancelled();
            let reason = is_open.then(|| Error::runtime_ended("bound to", &self.endpoint));
            self.shared.end_listening(&self.endpoint, reason);
        }
    }
}

fn serve(
    context: &TaskContext,
    endpoint: &Endpoint,
    pending: &Arc<PendingHandshakes>,
    stream: Stream,
    address: Option<SocketAddr>,
) {
    let (context, endpoint) = (context.clone(), endpoint.clone());
    let stop = context.shared.token.child_token();
    let slot = PendingHandshakes::acquire(pending, stop.clone());
    tokio::spawn(async move {
        let link = Link { context, endpoint, address, connector: None, assigned_identity: None, stop };
        let established = tokio::select! {
            biased;
            () = link.stop.cancelled() => Err(Error::limit("the handshake was ended for a newer one; raise `SocketOptions::pending_handshakes` if peers need more time")),
            established = link.establish(stream, Greeting::Whole) => established,
        };
        drop(slot);
        match established {
            Ok(established) => drop(link.run(established).await),
            Err(error) => link.report_failure(error),
        }
    });
}

/// Waits after a failed accept. If no file descriptors are left, other connections need time to
/// release some.
async fn pause(context: &TaskContext, endpoint: &Endpoint, stop: &CancellationToken, error: io::Error) {
    let reason = Error::io(format_args!("cannot accept a connection on {endpoint}"), error);
    context.shared.report(MonitorEvent::AcceptFailed { endpoint: endpoint.clone(), reason });
    tokio::select! {
        () = stop.cancelled() => {}
        () = sleep(ACCEPT_PAUSE) => {}
    }
}

/// The connections that are in their handshakes, oldest first.
struct PendingHandshakes {
    limit: usize,
    slots: Mutex<Slots>,
}

#[derive(Default)]
struct Slots {
    next: u64,
    taken: BTreeMap<u64, CancellationToken>,
}

/// The slot of one of these connections. It is released on drop.
struct HandshakeSlot {
    pending: Arc<PendingHandshakes>,
    number: u64,
}

impl PendingHandshakes {
    fn new(limit: usize) -> Self {
        Self { limit, slots: Mutex::new(Slots::default()) }
    }

    /// Takes a slot. If all are taken, the oldest connection is closed: a normal peer completes
    /// its handshake quickly, so the oldest one is the most likely to be idle.
    fn acquire(pending: &Arc<Self>, stop: CancellationToken) -> HandshakeSlot {
        let mut slots = pending.slots();
        let oldest = if slots.taken.len() >= pending.limit { slots.taken.pop_first() } else { None };
        let number = slots.next;
        slots.next += 1;
        slots.taken.insert(number, stop);
        drop(slots);
        if let Some((_, stop)) = oldest {
            stop.cancel();
        }
        HandshakeSlot { pending: pending.clone(), number }
    }

    fn slots(&self) -> MutexGuard<'_, Slots> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for HandshakeSlot {
    fn drop(&mut self) {
        self.pending.slots().taken.remove(&self.number);
    }
}
