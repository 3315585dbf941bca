//! The owner of a socket on the user's side. The socket is open while it exists.

use std::collections::VecDeque;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::bounds::ENDPOINTS;
use super::connection::transport::Acceptor;
use super::connection::{connector, inproc, listener};
use super::endpoint::Endpoint;
use super::error::{Error, Result};
use super::monitor::events::MonitorEvent;
use super::shared::{Shared, TaskContext};
use crate::protocol::Identity;

/// The owner, shared by the halves of a socket. It closes the socket on drop.
pub(super) struct Owner {
    pub(super) shared: Arc<Shared>,
    /// The sender of a channel that carries nothing. Each task holds a receiver, so the channel
    /// closes when the last task ends.
    alive: watch::Sender<()>,
    attachments: Mutex<VecDeque<Attachment>>,
}

/// An endpoint that the socket is bound or connected to.
struct Attachment {
    endpoint: Endpoint,
    /// The address that the socket holds, if it is bound.
    bound: Option<Bound>,
    stop: CancellationToken,
}

/// A bound address. Another socket can use it once this is released.
enum Bound {
    Stream(Acceptor),
    Name(inproc::BoundName),
}

impl Bound {
    fn release(self) {
        match self {
            Self::Stream(acceptor) => acceptor.close(),
            Self::Name(name) => drop(name),
        }
    }
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
        if let Endpoint::Inproc(name) = &endpoint {
            let name = inproc::BoundName::bind(&self.context(), name)?;
            self.attach(&endpoint, Some(Bound::Name(name)))?;
            return Ok(self.report_listening(endpoint));
        }
        let (acceptor, endpoint) = Acceptor::bind(&endpoint, &self.shared.options).await?;
        let stop = self.attach(&endpoint, Some(Bound::Stream(acceptor.clone())))?;
        let acceptor = listener::AcceptorGuard(acceptor);
        tokio::spawn(listener::listen(self.context(), acceptor, endpoint.clone(), stop));
        Ok(self.report_listening(endpoint))
    }

    fn report_listening(&self, endpoint: Endpoint) -> Endpoint {
        self.shared.count_listening(true);
        self.shared.report(MonitorEvent::Listening { endpoint: endpoint.clone() });
        endpoint
    }

    /// Connects to an endpoint. Returns `false` if the socket is connected to it already.
    pub(super) fn connect(&self, endpoint: Endpoint, assigned_identity: Option<Identity>) -> Result<bool> {
        let runtime = Handle::try_current().map_err(|_| Error::runtime())?;
        self.check_options(&endpoint)?;
        if endpoint.is_open() {
            return Err(Error::endpoint(format!("`{endpoint}` can be bound to, but not connected to")));
        }
        self.shared.options.check_destination(&endpoint)?;
        let Some(stop) = self.attach_once(&endpoint)? else { return Ok(false) };
        self.shared.begin_connecting();
        runtime.spawn(connector::connect(self.context(), endpoint, assigned_identity, stop));
        Ok(true)
    }

    fn check_options(&self, endpoint: &Endpoint) -> Result<()> {
        self.shared.options.check_type(self.shared.socket_type)?;
        self.shared.options.check_endpoint(endpoint)
    }

    fn attach(&self, endpoint: &Endpoint, bound: Option<Bound>) -> Result<CancellationToken> {
        self.add(&mut self.attachments(), endpoint, bound)
    }

    /// Adds an endpoint to connect to, unless it has one already whose connector has not given up.
    fn attach_once(&self, endpoint: &Endpoint) -> Result<Option<CancellationToken>> {
        let mut attachments = self.attachments();
        let is_same = |known: &Attachment| known.bound.is_none() && known.endpoint == *endpoint;
        if attachments.iter().any(|known| is_same(known) && !known.stop.is_cancelled()) {
            return Ok(None);
        }
        attachments.retain(|known| !is_same(known));
        self.add(&mut attachments, endpoint, None).map(Some)
    }

    fn add(
        &self,
        attachments: &mut VecDeque<Attachment>,
        endpoint: &Endpoint,
        bound: Option<Bound>,
    ) -> Result<CancellationToken> {
        if attachments.len() >= ENDPOINTS {
            return Err(Error::limit(format!("a socket has at most {ENDPOINTS} endpoints; unbind or disconnect one")));
        }
        let stop = self.shared.token.child_token();
        attachments.push_back(Attachment { endpoint: endpoint.clone(), bound, stop: stop.clone() });
        Ok(stop)
    }

    /// Ends the binding of this endpoint, or its connections. The address of a binding is free when
    /// this returns.
    pub(super) fn detach(&self, endpoint: &Endpoint, is_bound: bool) -> Result<()> {
        let mut attachments = self.attachments();
        let (ended, kept): (VecDeque<_>, VecDeque<_>) = mem::take(&mut *attachments)
            .into_iter()
            .partition(|known| known.bound.is_some() == is_bound && known.endpoint == *endpoint);
        *attachments = kept;
        drop(attachments);
        if ended.is_empty() {
            let what = if is_bound { "bound" } else { "connected" };
            return Err(Error::endpoint(format!("the socket is not {what} to `{endpoint}`")));
        }
        ended.into_iter().for_each(|attachment| self.end(attachment));
        Ok(())
    }

    fn end(&self, attachment: Attachment) {
        attachment.stop.cancel();
        let Some(bound) = attachment.bound else { return };
        bound.release();
        self.shared.count_listening(false);
        self.shared.report(MonitorEvent::ListeningEnded { endpoint: attachment.endpoint });
    }

    /// Closes the socket and waits until all of its tasks have ended.
    pub(super) async fn close(&self) {
        self.begin_to_close();
        self.alive.closed().await;
    }

    fn begin_to_close(&self) {
        self.shared.close();
        let attachments = mem::take(&mut *self.attachments());
        attachments.into_iter().for_each(|attachment| self.end(attachment));
    }

    fn attachments(&self) -> MutexGuard<'_, VecDeque<Attachment>> {
        self.attachments.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.begin_to_close();
    }
}
