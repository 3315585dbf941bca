//! The gateway, and how it serves.

use std::sync::Arc;
use std::time::Duration;

use onward::Store;
use tokio_util::sync::CancellationToken;

use super::session::Terms;

/// The settings of a [`Gateway`].
#[derive(Debug, Clone)]
pub struct GatewayOptions {
    /// The name of the sessions in lists of workers, before the worker's own name.
    pub name: String,
    /// The queues from which tasks are taken; empty for all.
    pub queues: Vec<String>,
    /// The time without a message after which a worker loses its tasks. A worker sends a heartbeat
    /// at least three times in a lease. Default: 15 s.
    pub lease: Duration,
    /// The time that a worker has to stop an attempt. Default: 10 s.
    pub grace: Duration,
    /// The time that workers have to finish when the gateway stops. Default: 30 s.
    pub stop_within: Duration,
    /// The largest number of tasks that one worker holds. Default: as many as it asks for.
    pub slots: Option<u32>,
    /// The secret that workers must send. Default: none.
    pub key: Option<String>,
}

impl Default for GatewayOptions {
    fn default() -> Self {
        Self {
            name: format!("gateway {}", std::process::id()),
            queues: Vec::new(),
            lease: Duration::from_secs(15),
            grace: Duration::from_secs(10),
            stop_within: Duration::from_secs(30),
            slots: None,
            key: None,
        }
    }
}

/// The number of heartbeats within a lease.
const HEARTBEATS: u32 = 3;

/// A gateway on a store. It is cheap to clone.
#[derive(Debug, Clone)]
pub struct Gateway {
    pub(super) store: Arc<dyn Store>,
    pub(super) options: Arc<GatewayOptions>,
    /// Cancelled when workers should finish.
    pub(super) drain: CancellationToken,
    /// Cancelled when sessions end at once.
    pub(super) abort: CancellationToken,
}

/// The end of a worker's session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// The reason, for people.
    pub why: String,
    /// True if the worker was accepted before.
    pub was_welcome: bool,
    /// True if the gateway reported a fault to the worker.
    pub had_fault: bool,
}

impl Gateway {
    /// Creates a gateway. Nothing runs yet.
    pub fn new(store: Arc<dyn Store>, options: GatewayOptions) -> Self {
        Self { store, options: Arc::new(options), drain: CancellationToken::new(), abort: CancellationToken::new() }
    }

    /// Asks every worker to finish. Workers get no more tasks, and their running tasks have
    /// [`stop_within`](GatewayOptions::stop_within) to end.
    pub fn drain(&self) {
        self.drain.cancel();
    }

    /// Ends every session at once. The running tasks of workers are released.
    pub fn abort(&self) {
        self.abort.cancel();
    }

    pub(super) fn terms(&self, may_reattach: bool) -> Terms {
        let options = &self.options;
        Terms {
            session: format!("{:016x}", fastrand::u64(..)),
            lease: options.lease,
            heartbeat: options.lease / HEARTBEATS,
            grace: options.grace,
            max_payload: self.store.info().payload_limit,
            slots: options.slots,
            key: options.key.clone(),
            may_reattach,
        }
    }
}
