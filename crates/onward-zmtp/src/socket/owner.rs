//! What a socket's user holds: while one of these lives, the socket is open.

use std::collections::VecDeque;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::endpoint::Endpoint;
use super::error::{Error, Result};
use super::limits::ENDPOINTS;
use super::monitor::MonitorEvent;
use super::shared::{Shared, TaskContext};
use super::transport::Acceptor;
use super::{connector, inproc, listener};

/// Shared by the halves of a socket. Closes it when dropped.
pub(super) struct Owner {
    pub(super) shared: Arc<Shared>,
    /// Each task has a receiver of it.
    alive: watch::Sender<()>,
    attachments: Mutex<VecDeque<Attachment>>,
}

/// An endpoint that the socket is bound or connected to.
struct Attachment {
    endpoint: Endpoint,
    is_bound: bool,
    stop: CancellationToken,
}

impl Owner {
    pub(super) fn new(shared: Shared) -> Arc<Self> {
        Arc::new(Self { shared: Arc::new(shared), alive: watch::Sender::new(()), attachments: Mutex::default() })
    }

    fn context(&self) -> TaskContext {
        TaskContext { shared: self.shared.clone(), _alive: self.alive.subscribe() }
    }

    pub(super) async fn bind(&self, endpoint: Endpoint) -> Result<Endpoint> {
        Handle::try_current().map_err(|_| Error::runtime())?;
        self.check_options(&endpoint)?;
        let context = self.context();
        if let Endpoint::Inproc(name) = &endpoint {
            let name = inproc::Name::bind(&context, name)?;
            let stop = self.attach(&endpoint, true)?;
            self.shared.count_listening(true);
            tokio::spawn(inproc::listen(context, name, endpoint.clone(), stop));
        } else {
            let (acceptor, bound) = Acceptor::bind(&endpoint).await?;
            let stop = self.attach(&bound, true)?;
            self.shared.count_listening(true);
            tokio::spawn(listener::listen(context, acceptor, bound.clone(), stop));
            return Ok(self.tell_listening(bound));
        }
        Ok(self.tell_listening(endpoint))
    }

    fn tell_listening(&self, endpoint: Endpoint) -> Endpoint {
        self.shared.tell(MonitorEvent::Listening { endpoint: endpoint.clone() });
        endpoint
    }

    pub(super) fn connect(&self, endpoint: Endpoint) -> Result<()> {
        let runtime = Handle::try_current().map_err(|_| Error::runtime())?;
        self.check_options(&endpoint)?;
        if matches!(&endpoint, Endpoint::Tcp { host, port } if host == "*" || *port == 0) {
            return Err(Error::endpoint(format!("`{endpoint}` can be bound to, but not connected to")));
        }
        let stop = self.attach(&endpoint, false)?;
        self.shared.begin_connecting();
        runtime.spawn(connector::connect(self.context(), endpoint, stop));
        Ok(())
    }

    fn check_options(&self, endpoint: &Endpoint) -> Result<()> {
        self.shared.options.check_type(self.shared.socket_type)?;
        self.shared.options.check_endpoint(endpoint)
    }

    fn attach(&self, endpoint: &Endpoint, is_bound: bool) -> Result<CancellationToken> {
        let mut attachments = self.attachments();
        if attachments.len() >= ENDPOINTS {
            return Err(Error::limit(format!("a socket has at most {ENDPOINTS} endpoints")));
        }
        let stop = self.shared.token.child_token();
        attachments.push_back(Attachment { endpoint: endpoint.clone(), is_bound, stop: stop.clone() });
        Ok(stop)
    }

    /// Ends what was bound, or connected, to this endpoint.
    pub(super) fn detach(&self, endpoint: &Endpoint, is_bound: bool) -> Result<()> {
        let mut attachments = self.attachments();
        let (ended, kept): (VecDeque<_>, VecDeque<_>) = mem::take(&mut *attachments)
            .into_iter()
            .partition(|known| known.is_bound == is_bound && known.endpoint == *endpoint);
        *attachments = kept;
        drop(attachments);
        for attachment in &ended {
            attachment.stop.cancel();
            if is_bound {
                self.shared.count_listening(false);
            }
        }
        if ended.is_empty() {
            let what = if is_bound { "bound" } else { "connected" };
            return Err(Error::endpoint(format!("the socket is not {what} to `{endpoint}`")));
        }
        Ok(())
    }

    /// Closes the socket and waits until all of its tasks have ended.
    pub(super) async fn close(&self) {
        self.shared.close();
        self.alive.closed().await;
    }

    fn attachments(&self) -> MutexGuard<'_, VecDeque<Attachment>> {
        self.attachments.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.shared.close();
    }
}
