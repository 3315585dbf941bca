//! The streams of workers that are connected over HTTP.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use onward_store::{Error, Store};
use tokio::sync::Semaphore;

use super::tunnel::Tunnel;
use crate::gateway::bounds::SESSIONS;
use crate::gateway::{Gateway, GatewayOptions};
use crate::http::access::new_secret;
use crate::http::bounds::WORK_BYTES;

/// The workers of one server. Each has a session of the gateway.
#[derive(Debug)]
pub(crate) struct WorkConnections {
    gateway: Gateway,
    /// The time for which the last bytes of a session that has ended can be read.
    lease: Duration,
    open: Mutex<HashMap<String, Arc<Tunnel>>>,
    /// A permit for each session.
    sessions: Arc<Semaphore>,
}

impl WorkConnections {
    pub(crate) fn new(store: Arc<dyn Store>) -> Self {
        let options = GatewayOptions { name: format!("server {}", std::process::id()), ..GatewayOptions::default() };
        let lease = options.lease;
        let sessions = Arc::new(Semaphore::new(SESSIONS));
        Self { gateway: Gateway::new(store, options), lease, open: Mutex::default(), sessions }
    }

    /// Opens a stream for a worker, and returns its name. Returns `None` if there are as many as
    /// the server takes.
    pub(crate) fn open(self: &Arc<Self>) -> Result<Option<String>, Error> {
        let Ok(permit) = Arc::clone(&self.sessions).try_acquire_owned() else { return Ok(None) };
        let name = new_secret()?;
        let (ours, theirs) = tokio::io::duplex(WORK_BYTES);
        self.with(|open| open.insert(name.clone(), Arc::new(Tunnel::new(ours))));
        let (all, key) = (Arc::clone(self), name.clone());
        tokio::spawn(async move {
            let ended = all.gateway.serve_stream(theirs).await;
            tracing::debug!(why = ended.why, "a worker's session over HTTP has ended");
            drop(permit);
            tokio::time::sleep(all.lease).await;
            all.close(&key);
        });
        Ok(Some(name))
    }

    /// Returns the stream of a name.
    pub(crate) fn find(&self, name: &str) -> Option<Arc<Tunnel>> {
        self.with(|open| open.get(name).cloned())
    }

    /// Closes a stream. The attempts of its worker count as crashed.
    pub(crate) fn close(&self, name: &str) -> bool {
        self.with(|open| open.remove(name)).is_some()
    }

    /// Ends every session, and gives back what the workers run.
    pub(crate) fn begin_stop(&self) {
        self.gateway.abort();
    }

    /// Waits until every session has ended.
    pub(crate) async fn finish(&self) {
        self.begin_stop();
        let all = u32::try_from(SESSIONS).unwrap_or(u32::MAX);
        // The semaphore is never closed.
        let _ = self.sessions.acquire_many(all).await;
    }

    fn with<T>(&self, act: impl FnOnce(&mut HashMap<String, Arc<Tunnel>>) -> T) -> T {
        act(&mut self.open.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
