//! The client and its general requests.

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::client::{ClientBuilder, Pages};
use crate::error::{Error, Result};
use crate::http::{Failure, MessageStream, Request, Response, Transport};

/// A client of a server. It needs a tokio runtime with I/O and time. Clones share connections.
#[derive(Debug, Clone)]
pub struct Client {
    pub(crate) transport: Arc<Transport>,
}

impl Client {
    /// Returns the settings of a client, to change them.
    #[must_use]
    pub fn builder() -> ClientBuilder {
        ClientBuilder::default()
    }

    /// Creates a client with the settings of the environment: `ONWARD_URL`, `ONWARD_KEY`,
    /// `ONWARD_STORE`.
    ///
    /// # Errors
    /// Returns the errors of [`ClientBuilder::build`].
    pub fn from_environment() -> Result<Self> {
        Self::builder().build()
    }

    /// Returns the address of the server.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.transport.server.url
    }

    /// Sends any request, for paths without a method of their own.
    ///
    /// # Errors
    /// Returns the server's [`Problem`](crate::Problem), or an error that [is
    /// unavailable](Error::is_unavailable).
    pub async fn send(&self, request: Request) -> Result<Response> {
        self.transport.send(&request).await
    }

    /// Opens a stream of server-sent events, once: the caller opens another one behind `cursor`
    /// when it ends. [`watch`](Self::watch) does so by itself.
    ///
    /// # Errors
    /// Returns the errors of [`send`](Self::send).
    pub async fn messages(&self, path: &str, cursor: Option<&str>) -> Result<MessageStream> {
        match self.open(path, cursor).await {
            Ok(stream) => Ok(stream),
            Err(Failure::Problem(problem)) => Err((*problem).into()),
            Err(Failure::Lost { reason, .. }) => Err(self.transport.unavailable(&reason)),
            Err(Failure::Final(error)) => Err(error),
        }
    }

    pub(crate) async fn open(&self, path: &str, cursor: Option<&str>) -> Result<MessageStream, Failure> {
        self.transport.open_stream(&Request::events(path, cursor).map_err(Failure::Final)?).await
    }

    /// Reads the items of a path that returns pages, with any query.
    #[must_use]
    pub fn pages<T: DeserializeOwned>(&self, path: impl Into<String>) -> Pages<T> {
        Pages::new(self.clone(), path.into())
    }

    pub(crate) async fn get<T: DeserializeOwned>(&self, path: String) -> Result<T> {
        self.send(Request::get(path)).await?.json()
    }

    /// Sends a request that creates, with an idempotency key.
    pub(crate) async fn create<T: Serialize + ?Sized>(
        &self,
        path: String,
        body: &T,
        key: Option<&str>,
        wait: Option<Duration>,
    ) -> Result<Response> {
        let request = Request::post(path).json(body)?.idempotent(key)?;
        self.send(wait.map_or_else(|| request.clone(), |wait| request.clone().wait(wait))).await
    }
}

impl MessageStream {
    /// Waits for the next message; `None` at the end of the stream. The future may be dropped
    /// without losing a message.
    ///
    /// # Errors
    /// Returns an error if the stream was cut, is quiet for
    /// [`bounds::QUIET`](crate::bounds::QUIET), or a message is too long.
    pub async fn next_message(&mut self) -> Result<Option<crate::EventMessage>> {
        self.next().await.map_err(|failure| match failure {
            Failure::Final(error) => error,
            Failure::Problem(problem) => (*problem).into(),
            Failure::Lost { reason, .. } => Error::unreadable(format!("the stream was cut: {reason}")),
        })
    }
}
