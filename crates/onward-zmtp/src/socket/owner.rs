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
    /// Releases the address. Returns `false` if it was released before, with the runtime.
    fn release(self) -> bool {
        match self {
            Self::Stream(acceptor) => acceptor.close(),
            Self::Name(name) => {
                drop(name);
                true
            }
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
            self.shared.begin_listening(&endpoint);
            return Ok(endpoint);
        }
        let (acceptor, endpoint) = Acceptor::bind(&endpoint, &self.shared.options).await?;
        let stop = self.attach(&endpoint, Some(Bound::Stream(acceptor.clone())))?;
        // This comes before the task, which may end at once.
        self.shared.begin_listening(&endpoint);
        let guard = listener::ListenerGuard { shared: self.shared.clone(), acceptor, endpoint: endpoint.clone() };
        tokio::spawn(listener::listen(self.context(), guard, endpoint.clone(), stop));
        Ok(endpoint)
    }

    /// Connects to an endpoint. Returns `false` if the socket is connected to it already.
    pub(super) fn connect(&self, endpoint: Endpoint, assigned_identity: Option<Identity>) -> Result<bool> {
        let runtime = Handle::try_current().map_err(|_| Error::runtime())?;
        self.check_options(&endpoint)?;
        endpoint.check_connectable()?;
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
        if ended.is_empty() {
            return Err(not_attached(&attachments, endpoint, is_bound));
        }
        drop(attachments);
        ended.into_iter().for_each(|attachment| self.end(attachment));
        Ok(())
    }

    fn end(&self, attachment: Attachment) {
        // The release comes first: a task that stops also closes what is still open.
        if attachment.bound.is_some_and(Bound::release) {
            self.shared.end_listening(&attachment.endpoint, None);
        }
        attachment.stop.cancel();
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

/// Returns the error for an endpoint that the socket is not bound or connected to. It lists some of
/// the socket's endpoints, because a text such as `tcp://*:*` is none of them.
fn not_attached(attachments: &VecDeque<Attachment>, endpoint: &Endpoint, is_bound: bool) -> Error {
    let what = if is_bound { "bound" } else { "connected" };
    let mut known = attachments.iter().filter(|known| known.bound.is_some() == is_bound);
    let listed: Vec<_> = known.by_ref().take(LISTED_ENDPOINTS).map(|known| format!("`{}`", known.endpoint)).collect();
    let listed = if listed.is_empty() { "no endpoint".to_owned() } else { listed.join(", ") };
    let more = if known.next().is_some() { " and others" } else { "" };
    Error::endpoint(format!("the socket is not {what} to `{endpoint}`; it is {what} to {listed}{more}"))
}

/// The number of endpoints that an error lists.
const LISTED_ENDPOINTS: usize = 4;

impl Drop for Owner {
    fn drop(&mut self) {
        self.begin_to_close();
    }
}
