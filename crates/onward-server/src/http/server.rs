//! The server: an engine behind a router.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use axum::Router;
use onward::Engine;
use onward_store::{Error, Store};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::access::{KeyChecks, KeyFile, KeyState, Keys, OneTimeLink, Refusals, Role, Sessions};
use super::bounds;
use super::change::{Pruner, RecordingStore};
use super::live::EventFeed;
use super::metrics::RequestCounts;
use super::pipeline::make_router;
use super::work::WorkConnections;

/// The options of a server.
#[derive(Debug, Clone)]
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
    /// The time within which the head of a request must arrive, then its body, and within which a
    /// request must end that neither waits nor streams. Default: [`bounds::REQUEST_TIME`].
    pub request_time: Duration,
    /// The largest number of event streams and long polls at once. Default: [`bounds::STREAMS`].
    pub streams: usize,
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self {
            hosts: Vec::new(),
            base_path: String::new(),
            key_file_beside: None,
            request_time: bounds::REQUEST_TIME,
            streams: bounds::STREAMS,
        }
    }
}

/// A server on a store. It submits and reads; the tasks run in other processes, or in another
/// engine of this one.
#[derive(Debug)]
pub struct Server {
    pub(crate) engine: Engine,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) keys: Keys,
    pub(crate) sessions: Sessions,
    pub(crate) link: OneTimeLink,
    pub(crate) feed: EventFeed,
    pub(crate) streams: Arc<Semaphore>,
    pub(crate) pruner: Pruner,
    pub(crate) refusals: Refusals,
    pub(crate) request_counts: RequestCounts,
    pub(crate) key_checks: KeyChecks,
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
    /// The store's error if it cannot be used; an error if the key file cannot be written, or if
    /// the base path is no path.
    pub async fn open(store: Arc<dyn Store>, options: ServerOptions) -> Result<Arc<Self>, onward::Error> {
        check_base_path(&options.base_path)?;
        let store: Arc<dyn Store> = Arc::new(RecordingStore::new(store));
        let engine = Engine::builder().store(Arc::clone(&store)).open().await?;
        let keys = Keys::new(Arc::clone(&store));
        let key_file = match &options.key_file_beside {
            Some(path) => KeyFile::write(path, keys.clone()).await?,
            None => None,
        };
        let clock = store.clock();
        Ok(Arc::new(Self {
            link: OneTimeLink::new(Arc::clone(&clock)),
            feed: EventFeed::new(Arc::clone(&store)),
            streams: Arc::new(Semaphore::new(options.streams.min(bounds::STREAMS))),
            pruner: Pruner::default(),
            refusals: Refusals::default(),
            request_counts: RequestCounts::default(),
            key_checks: KeyChecks::default(),
            stopping: CancellationToken::new(),
            is_stopping: AtomicBool::new(false),
            requests: AtomicU64::new(0),
            started: format!("{:x}{:08x}", clock.now().as_microseconds(), fastrand::u32(..)),
            key_file: tokio::sync::Mutex::new(key_file),
            sessions: Sessions::new(Arc::clone(&store), keys.clone()),
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

    /// Issues the token of the one-time link, unless the store has an admin key already. The token
    /// is valid for [`bounds::LINK_TIME`] and one use.
    ///
    /// # Errors
    /// The store's error if it could not be read.
    pub async fn first_admin_token(&self) -> Result<Option<String>, Error> {
        let is_admin =
            |key: &super::KeyRecord| key.role == Role::Admin && key.state == KeyState::Active && !key.is_key_file;
        if self.keys.list().await?.iter().any(is_admin) {
            return Ok(None);
        }
        self.link.issue().map(Some)
    }

    /// Returns the path of the key file, if the server has written one.
    pub async fn key_file(&self) -> Option<PathBuf> {
        self.key_file.lock().await.as_ref().map(|file| file.path().to_owned())
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
    /// The store's error if the key could not be revoked.
    pub async fn close(&self) -> Result<(), Error> {
        self.work.finish().await;
        match self.key_file.lock().await.take() {
            Some(file) => file.remove().await,
            None => Ok(()),
        }
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
