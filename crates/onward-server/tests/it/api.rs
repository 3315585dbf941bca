//! A server on a port of its own.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use onward::Engine;
use onward_server::http::{Accounts, Keys, Listener, NewKey, Role, Server, ServerOptions, Tls};
use onward_store::{ManualClock, Store};
use serde_json::Value;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::client::{Request, Response};

/// A server, its store, and a key of each role.
pub(crate) struct Api {
    pub(crate) address: SocketAddr,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) server: Arc<Server>,
    pub(crate) keys: Keys,
    pub(crate) accounts: Accounts,
    roles: Vec<(Role, String)>,
    pub(crate) stop: CancellationToken,
    pub(crate) served: JoinHandle<bool>,
}

impl Api {
    pub(crate) async fn start(store: Arc<dyn Store>, clock: Arc<ManualClock>) -> Self {
        Self::start_with(store, clock, ServerOptions::default()).await
    }

    pub(crate) async fn start_with(store: Arc<dyn Store>, clock: Arc<ManualClock>, options: ServerOptions) -> Self {
        let listener = Listener::bind(([127, 0, 0, 1], 0).into()).await.unwrap();
        Self::start_on(listener, store, clock, options).await
    }

    /// Starts another server on the store, with TLS.
    pub(crate) async fn another_with_tls(&self, tls: Arc<Tls>, options: ServerOptions) -> Self {
        let listener = Listener::bind(([127, 0, 0, 1], 0).into()).await.unwrap().with_tls(tls);
        Self::start_on(listener, Arc::clone(&self.store), Arc::clone(&self.clock), options).await
    }

    /// Starts another server on the store, on a listener.
    pub(crate) async fn another_on(&self, listener: Listener, options: ServerOptions) -> Self {
        Self::start_on(listener, Arc::clone(&self.store), Arc::clone(&self.clock), options).await
    }

    async fn start_on(
        listener: Listener,
        store: Arc<dyn Store>,
        clock: Arc<ManualClock>,
        options: ServerOptions,
    ) -> Self {
        let keys = Keys::new(Arc::clone(&store));
        let mut roles = Vec::new();
        let others = keys.list().await.unwrap().len();
        for role in Role::ALL {
            // A second server on the store has keys of its own, with names of their own.
            let name = if others == 0 { role.to_string() } else { format!("{role} {others}") };
            let new = NewKey { name, role, expires_after: None };
            roles.push((role, keys.create(new).await.unwrap().0));
        }
        let address = listener.local_address().unwrap();
        let server = Server::open(Arc::clone(&store), options).await.unwrap();
        let stop = CancellationToken::new();
        let served = tokio::spawn({
            let (server, stop) = (Arc::clone(&server), stop.clone());
            async move { listener.serve(&server, stop, Duration::from_secs(20)).await }
        });
        let accounts = Accounts::new(Arc::clone(&store));
        Self { address, store, clock, server, keys, accounts, roles, stop, served }
    }

    /// Starts another server on the store.
    pub(crate) async fn another(&self, options: ServerOptions) -> Self {
        Self::start_with(Arc::clone(&self.store), Arc::clone(&self.clock), options).await
    }

    pub(crate) fn key(&self, role: Role) -> &str {
        &self.roles.iter().find(|(known, _)| *known == role).unwrap().1
    }

    /// Returns a request with the key of an admin.
    pub(crate) fn request(&self, method: &str, path: &str) -> Request {
        Request::new(method, path).key(self.key(Role::Admin))
    }

    pub(crate) async fn send(&self, request: Request) -> Response {
        request.send(self.address).await
    }

    pub(crate) async fn get(&self, path: &str) -> Response {
        self.send(self.request("GET", path)).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Response {
        self.send(self.request("DELETE", path)).await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Response {
        self.send(self.request("POST", path).json(&body)).await
    }

    pub(crate) async fn put(&self, path: &str, body: Value) -> Response {
        self.send(self.request("PUT", path).json(&body)).await
    }

    /// Submits a task of a kind and returns its id.
    pub(crate) async fn submit(&self, kind: &str) -> String {
        let submitted = self.post("/v1/tasks", serde_json::json!({ "kind": kind })).await.expect(201);
        submitted["id"].as_str().unwrap().to_owned()
    }

    /// Opens an engine that runs tasks on the same store.
    pub(crate) async fn engine(&self) -> Engine {
        Engine::builder().store(Arc::clone(&self.store)).open().await.unwrap()
    }
}

/// Runs an engine in the background until it is stopped.
pub(crate) fn run(engine: &Engine) -> JoinHandle<()> {
    let engine = engine.clone();
    tokio::spawn(async move { engine.run().await.unwrap() })
}
