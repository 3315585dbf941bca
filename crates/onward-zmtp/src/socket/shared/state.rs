//! The fields of the state that a socket shares with the tasks of its connections.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::fair_queue::Handle;
use crate::protocol::{self, SocketType};
use crate::socket::connection::inbox::Inbox;
use crate::socket::monitor::events::{MonitorEvent, Reporter};
use crate::socket::monitor::statistics::Statistics;
use crate::socket::options::send_limits::SendLimits;
use crate::socket::options::socket_options::SocketOptions;
use crate::socket::patterns::subscriber_table::SubscriberTable;
use crate::socket::peers::peer_table::PeerTable;
use crate::socket::peers::remote_peer::RemotePeers;
use crate::socket::queue::quota::Quota;
use crate::socket::queue::unread_backlog::UnreadBacklog;

/// The shared state of a socket. Its two halves, its endpoints and its connections each hold a
/// reference.
pub(in crate::socket) struct Shared {
    pub(in crate::socket) socket_type: SocketType,
    pub(in crate::socket) options: SocketOptions,
    /// The size limits of messages to send.
    pub(in crate::socket) send_limits: SendLimits,
    /// The protocol options, the same for every connection.
    pub(in crate::socket) protocol: Arc<protocol::Options>,
    pub(in crate::socket) reporter: Reporter,
    /// Ends all tasks of the socket when it is cancelled.
    pub(in crate::socket) token: CancellationToken,
    pub(super) sources: Handle<u64, Inbox>,
    pub(in crate::socket) unread_backlog: Arc<UnreadBacklog>,
    pub(super) quota: Arc<Quota>,
    pub(super) peer_table: Mutex<PeerTable>,
    pub(in crate::socket) remote_peers: Arc<RemotePeers>,
    /// The version of the peer table. It goes up whenever a peer connects or disconnects. Senders
    /// compare it without a lock before they use their own lists of peers.
    pub(super) version: AtomicU64,
    /// True if the backlog may contain messages.
    pub(super) has_backlog: AtomicBool,
    /// True if a peer ever refused this socket for good, or an endpoint ended by itself.
    pub(super) was_refused: AtomicBool,
    pub(super) subscribers: Mutex<SubscriberTable>,
    pub(super) next_id: AtomicU64,
    pub(super) first_identity: u32,
    pub(super) closed_at: OnceLock<Instant>,
    pub(in crate::socket) dropped_outgoing: AtomicU64,
    pub(in crate::socket) dropped_incoming: AtomicU64,
}

/// The context of a socket's task: the shared state, and a receiver whose existence shows that the
/// task runs.
#[derive(Clone)]
pub(in crate::socket) struct TaskContext {
    pub(in crate::socket) shared: Arc<Shared>,
    /// Closing a socket waits until all of these are dropped.
    pub(in crate::socket) _alive: watch::Receiver<()>,
}

impl Shared {
    pub(in crate::socket) fn new(
        socket_type: SocketType,
        mut options: SocketOptions,
        sources: Handle<u64, Inbox>,
    ) -> Self {
        options.protocol.socket_type = socket_type;
        Self {
            socket_type,
            protocol: Arc::new(options.protocol.clone()),
            unread_backlog: Arc::new(UnreadBacklog::new(options.receive_high_water_mark)),
            send_limits: SendLimits::new(options.effective_send_limits()),
            options,
            quota: Arc::new(Quota::unlimited()),
            reporter: Reporter::default(),
            token: CancellationToken::new(),
            sources,
            peer_table: Mutex::new(PeerTable::default()),
            remote_peers: Arc::default(),
            version: AtomicU64::new(1),
            has_backlog: AtomicBool::new(false),
            was_refused: AtomicBool::new(false),
            subscribers: Mutex::new(SubscriberTable::default()),
            next_id: AtomicU64::new(1),
            first_identity: fastrand::u32(..),
            closed_at: OnceLock::new(),
            dropped_outgoing: AtomicU64::new(0),
            dropped_incoming: AtomicU64::new(0),
        }
    }

    pub(in crate::socket) fn peer_table(&self) -> MutexGuard<'_, PeerTable> {
        self.peer_table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(in crate::socket) fn subscribers(&self) -> MutexGuard<'_, SubscriberTable> {
        self.subscribers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(in crate::socket) fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    pub(in crate::socket) fn report(&self, event: MonitorEvent) {
        self.reporter.report(event);
    }

    pub(in crate::socket) fn next_id(&self) -> u64 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    /// Returns true if a socket of this type receives messages.
    pub(in crate::socket) fn receives(&self) -> bool {
        !matches!(self.socket_type, SocketType::Push | SocketType::Pub)
    }

    pub(super) fn publishes(&self) -> bool {
        matches!(self.socket_type, SocketType::Pub | SocketType::Xpub)
    }

    /// Returns true if a message that one peer did not get may go to another.
    pub(super) fn may_redistribute(&self) -> bool {
        matches!(self.socket_type, SocketType::Push | SocketType::Dealer | SocketType::Pair)
    }

    pub(in crate::socket) fn drop_outgoing(&self, messages: usize) {
        self.dropped_outgoing.fetch_add(messages as u64, Ordering::Relaxed);
    }

    pub(in crate::socket) fn drop_incoming(&self, messages: usize) {
        self.dropped_incoming.fetch_add(messages as u64, Ordering::Relaxed);
    }

    /// Returns the counts of peers, of queued messages and of dropped ones.
    pub(in crate::socket) fn statistics(&self) -> Statistics {
        let peer_table = self.peer_table();
        Statistics {
            peers: peer_table.connected.len(),
            outgoing: peer_table.outgoing_size().into(),
            incoming: peer_table.incoming_size(self.unread_backlog.size()).into(),
            dropped: self.dropped_outgoing.load(Ordering::Relaxed),
            discarded: self.dropped_incoming.load(Ordering::Relaxed),
        }
    }
}

/// Counts the messages that are left. The socket and all of its tasks are gone, so they cannot be
/// sent any more.
impl Drop for Shared {
    fn drop(&mut self) {
        let messages = self.peer_table().outgoing_size().messages as u64;
        if messages > 0 {
            self.report(MonitorEvent::Unsent { messages });
        }
    }
}
