//! The server: an engine behind a router.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use axum::Router;
use onward::Engine;
use onward_store::{Error, Store};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::access::{
    Accounts, Actor, Attempts, Issuer, IssuerOptions, KeyChecks, KeyFile, Keys, OneTimeLink, Refusals, Role, Sessions,
    SignInOptions, has_holder,
};
use super::bounds;
use super::change::{Pruner, RecordingStore};
use super::circuit::{BreakingStore, Circuits};
use super::hooks::Hooks;
use super::limits::{Limits, PresentLimits};
use super::listen::Network;
use super::live::EventFeed;
use super::mcp::{Caller, reply_to};
use super::metrics::RequestCounts;
use super::pipeline::make_router;
use super::webhooks::{Webhooks, serve_webhooks};
use super::work::WorkConnections;

/// The options of a server.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct ServerOptions {
    /// The names by which clients may address the server, besides `localhost` and the loopback
    /// addresses: host names without ports. Default: none.
    pub hosts: Vec<String>,
    /// The path below which the server is reached, such as `/onward`, for a proxy that serves other
    /// programs too. Default: none.
    pub base_path: String,
    /// The path of the SQLite store beside which a key file is kept. Default: no key file.
    pub key_file_beside: Option<PathBuf>,
    /// The proxies whose `X-Forwarded-For` is believed. They may connect without TLS beyond
    /// loopback. Default: none.
    pub proxies: Vec<Network>,
    /// The limits, which [`Server::set_limits`] changes while the server runs.
    pub limits: Limits,
    /// An engine on the same store that has the code of orchestrations, and replies to queries.
    /// Default: none, so that queries are refused.
    pub code: Option<Engine>,
    /// True allows webhooks to addresses of this machine and of private networks, and without TLS.
    /// Default: false.
    pub private_webhooks: bool,
    /// True allows tools of the Model Context Protocol to change something. Default: false.
    pub mcp_writes: bool,
    /// The issuer whose tokens are accepted. Default: none.
    pub issuer: Option<IssuerOptions>,
}

impl ServerOptions {
    /// Checks the options, as [`Server::open`] does.
    ///
    /// # Errors
    /// Returns an error ([`is_invalid`](Error::is_invalid)) if the base path is no path, or if the
    /// issuer is not valid.
    pub fn check(&self) -> Result<(), Error> {
        check_base_path(&self.base_path)?;
        self.issuer.as_ref().map_or(Ok(()), IssuerOptions::check)
    }
}

/// A server on a store. It submits and reads; the tasks run in other processes, or in another
/// engine of this one.
#[derive(Debug)]
pub struct Server {
    pub(crate) engine: Engine,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) keys: Keys,
    pub(crate) accounts: Accounts,
    pub(crate) sessions: Sessions,
    pub(crate) attempts: Attempts,
    issuer: Option<Issuer>,
    /// The sign-ins that wait for the issuer.
    pub(crate) exchanges: Semaphore,
    /// True if a listener with TLS serves it.
    has_tls: AtomicBool,
    pub(crate) link: OneTimeLink,
    pub(crate) feed: EventFeed,
    pub(crate) limits: PresentLimits,
    pub(crate) queries: Arc<Semaphore>,
    pub(crate) pruner: Pruner,
    pub(crate) refusals: Refusals,
    pub(crate) circuits: Arc<Circuits>,
    pub(crate) request_counts: RequestCounts,
    pub(crate) key_checks: KeyChecks,
    pub(crate) webhooks: Webhooks,
    pub(crate) hooks: Hooks,
    pub(crate) options: ServerOptions,
    pub(crate) work: Arc<WorkConnections>,
    /// Cancelled when streams are to end.
    pub(crate) stopping: CancellationToken,
    is_stopping: AtomicBool,
    requests: AtomicU64,
    /// The time of the start and a random number, so that no other start has it.
    pub(crate) started: String,
    key_file: tokio::sync::Mutex<Option<KeyFile>>,
}

impl Server {
    /// Opens a server on a store. It writes the key file, if the options name one and no other
    /// running server has written it.
    ///
    /// # Errors
    /// Returns the store's error if it cannot be used; an error if the key file cannot be written,
    /// or if the base path is no path.
    pub async fn open(store: Arc<dyn Store>, options: ServerOptions) -> Result<Arc<Self>, onward::Error> {
        options.check()?;
        let breaking = BreakingStore::new(store);
        let circuits = breaking.circuits();
        let store: Arc<dyn Store> = Arc::new(RecordingStore::new(Arc::new(breaking)));
        let engine = Engine::builder().store(Arc::clone(&store)).open().await?;
        let keys = Keys::new(Arc::clone(&store));
        let accounts = Accounts::new(Arc::clone(&store));
        let key_file = match &options.key_file_beside {
            Some(path) => KeyFile::write(path, keys.clone()).await?,
            None => None,
        };
        let clock = store.clock();
        Ok(Arc::new(Self {
            issuer: options.issuer.clone().map(|issuer| Issuer::new(issuer, Arc::clone(&clock))),
            exchanges: Semaphore::new(bounds::OIDC_EXCHANGES),
            has_tls: AtomicBool::new(false),
            link: OneTimeLink::new(Arc::clone(&clock)),
            feed: EventFeed::new(Arc::clone(&store)),
            limits: PresentLimits::new(options.limits),
            queries: Arc::new(Semaphore::new(bounds::QUERIES_AT_ONCE)),
            pruner: Pruner::default(),
            refusals: Refusals::default(),
            circuits,
            request_counts: RequestCounts::default(),
            key_checks: KeyChecks::default(),
            webhooks: Webhooks::new(Arc::clone(&store)),
            hooks: Hooks::new(Arc::clone(&store)),
            stopping: CancellationToken::new(),
            is_stopping: AtomicBool::new(false),
            requests: AtomicU64::new(0),
            started: format!("{:x}{:08x}", clock.now().as_microseconds(), fastrand::u32(..)),
            key_file: tokio::sync::Mutex::new(key_file),
            sessions: Sessions::new(Arc::clone(&store), keys.clone(), accounts.clone()),
            attempts: Attempts::default(),
            accounts,
            work: Arc::new(WorkConnections::new(Arc::clone(&store))),
            engine,
            store,
            keys,
            options,
        }))
    }

    /// Returns the router of the page and of the API. A program may mount it under its own.
    pub fn router(self: &Arc<Self>) -> Router {
        make_router(self)
    }

    /// Issues the token of the one-time link, unless the store has an admin: an active key or
    /// account with that role, or an issuer that gives it. The token is valid for
    /// [`bounds::LINK_TIME`](super::bounds::LINK_TIME) and one use.
    ///
    /// # Errors
    /// Returns the store's error if it could not be read.
    pub async fn first_admin_token(&self) -> Result<Option<String>, Error> {
        let is_given = self.options.issuer.as_ref().is_some_and(|issuer| issuer.gives(Role::Admin));
        if is_given || has_holder(&self.keys, &self.accounts, Role::Admin).await? {
            return Ok(None);
        }
        self.link.issue().map(Some)
    }

    /// Changes the limits for connections, streams and requests that begin from now on.
    pub fn set_limits(&self, limits: Limits) {
        self.limits.set(limits);
    }

    /// Returns the path of the key file, if the server has written one.
    pub async fn key_file(&self) -> Option<PathBuf> {
        self.key_file.lock().await.as_ref().map(|file| file.path().to_owned())
    }

    /// Sends events to the webhooks of the store until `stop` is cancelled. Any number of servers
    /// may do so: each delivery is one task. Without webhooks it reads only their list, after
    /// changes of the store and at most every ten seconds.
    ///
    /// # Errors
    /// Returns the store's error if it failed permanently.
    pub async fn send_webhooks(self: &Arc<Self>, stop: CancellationToken) -> Result<(), onward::Error> {
        serve_webhooks(self, stop).await
    }

    /// Replies to a message of the Model Context Protocol from the user of this process, who has a
    /// role. Returns `None` for a message without a reply.
    pub async fn reply_to_mcp(self: &Arc<Self>, message: &[u8], role: Role) -> Option<String> {
        let (actor, id) = (Actor::of_process(role), self.request_id());
        let caller = Caller { server: Arc::clone(self), actor, address: None, id };
        reply_to(&caller, message).await.map(|reply| reply.to_string())
    }

    /// Refuses new requests from now on, and ends the event streams and the sessions of workers.
    pub fn begin_stop(&self) {
        self.is_stopping.store(true, Ordering::Relaxed);
        self.stopping.cancel();
        self.work.begin_stop();
    }

    /// Waits for the ends of workers' sessions, and removes the key file. Call it after the last
    /// request.
    ///
    /// # Errors
    /// Returns the store's error if the key could not be revoked.
    pub async fn close(&self) -> Result<(), Error> {
        self.work.finish().await;
        match self.key_file.lock().await.take() {
            Some(file) => file.remove().await,
            None => Ok(()),
        }
    }

    /// Returns the issuer whose bearer tokens are accepted.
    pub(crate) fn issuer_of_bearers(&self) -> Option<&Issuer> {
        self.issuer.as_ref().filter(|issuer| !issuer.options.audiences.is_empty())
    }

    /// Returns the issuer at which people sign in.
    pub(crate) fn sign_in_issuer(&self) -> Option<(&Issuer, &SignInOptions)> {
        let issuer = self.issuer.as_ref()?;
        Some((issuer, issuer.options.sign_in.as_ref()?))
    }

    /// Notes that a listener with TLS serves the server.
    pub(super) fn note_tls(&self) {
        self.has_tls.store(true, Ordering::Relaxed);
    }

    pub(crate) fn has_tls(&self) -> bool {
        self.has_tls.load(Ordering::Relaxed)
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::Relaxed)
    }

    /// Returns the number of a new request. It is unique among the requests of all servers.
    pub(crate) fn request_id(&self) -> String {
        format!("{}-{}", self.started, self.requests.fetch_add(1, Ordering::Relaxed))
    }
}

/// Checks that a base path has one form: a slash before each segment, and none at the end.
fn check_base_path(path: &str) -> Result<(), Error> {
    let is_plain = |segment: &str| {
        !matches!(segment, "" | "." | "..")
            && segment.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte))
    };
    if path.is_empty() || path.strip_prefix('/').is_some_and(|rest| rest.split('/').all(is_plain)) {
        return Ok(());
    }
    let message = "is no path of letters, digits and - _ . ~; write it as /onward, without a slash at the end";
    Err(Error::invalid(format!("the base path `{path}` {message}")))
}
