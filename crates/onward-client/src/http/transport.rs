//! Requests to one server, repeated until they succeed or the time for it is over.

use std::error::Error as _;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::header::{self, HeaderValue};
use tokio::time::timeout;

use super::connection::{Connection, Server};
use super::message_stream::MessageStream;
use super::{Attempts, Credential, Request, Response};
use crate::bounds;
use crate::error::{Error, Problem, Result};

/// Connections to one server.
#[derive(Debug)]
pub(crate) struct Transport {
    pub(crate) server: Server,
    credential: Credential,
    timeout: Duration,
    pub(crate) retry_for: Duration,
    idle: Mutex<Vec<Connection>>,
}

/// The failure of one attempt.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The server refused the request.
    Problem(Box<Problem>),
    /// The connection broke. `sent` is true if the server may have received the request.
    Lost { reason: String, sent: bool },
    /// Another attempt would fail in the same way.
    Final(Error),
}

impl Failure {
    pub(super) fn lost(reason: impl ToString, sent: bool) -> Self {
        Self::Lost { reason: reason.to_string(), sent }
    }
}

/// Returns an error with its causes, which hyper's own texts leave out.
fn reason(error: &hyper::Error) -> String {
    error.source().map_or_else(|| error.to_string(), |cause| format!("{error}: {cause}"))
}

/// Returns whether a status asks for another attempt.
pub(crate) fn is_transient(status: u16) -> bool {
    matches!(status, 429 | 502 | 503 | 504)
}

impl Transport {
    pub(crate) fn new(server: Server, credential: Credential, timeout: Duration, retry_for: Duration) -> Self {
        Self { server, credential, timeout, retry_for, idle: Mutex::default() }
    }

    /// Sends a request until there is a response.
    pub(crate) async fn send(&self, request: &Request) -> Result<Response> {
        let mut attempts = Attempts::new(self.retry_for);
        loop {
            match self.attempt(request).await {
                Ok(response) => return Ok(response),
                Err(Failure::Final(error)) => return Err(error),
                Err(Failure::Problem(problem)) => {
                    // A server that is stopping, or has no room, did nothing.
                    let did_nothing = problem.status == 429 || problem.code == "stopping";
                    if !is_transient(problem.status) || !(request.is_repeatable || did_nothing) {
                        return Err((*problem).into());
                    }
                    let pause = problem.retry_after;
                    attempts.pause((*problem).into(), pause).await?;
                }
                Err(Failure::Lost { reason, sent: true }) if !request.is_repeatable => {
                    return Err(Error::uncertain(&self.server.url, &reason));
                }
                Err(Failure::Lost { reason, .. }) => attempts.pause(self.unavailable(&reason), None).await?,
            }
        }
    }

    #[cold]
    pub(crate) fn unavailable(&self, reason: &str) -> Error {
        Error::unavailable(&self.server.url, reason)
    }

    /// Sends a request once, or twice if the key file was replaced meanwhile.
    async fn attempt(&self, request: &Request) -> Result<Response, Failure> {
        let credential = self.credential.header();
        match self.exchange(request, credential.as_ref()).await {
            Err(Failure::Problem(problem)) if problem.status == 401 => {
                let newer = self.credential.header();
                // The server was started again, and has written a new key file.
                if newer == credential {
                    Err(Failure::Problem(problem))
                } else {
                    self.exchange(request, newer.as_ref()).await
                }
            }
            other => other,
        }
    }

    async fn exchange(&self, request: &Request, credential: Option<&HeaderValue>) -> Result<Response, Failure> {
        let limit = self.timeout + request.wait;
        // A kept connection may be dead, which shows only after the request was sent.
        let mut connection = self.connection(request.is_repeatable).await?;
        let response = self.head(&mut connection, request, credential, limit).await?;
        let (parts, body) = response.into_parts();
        let status = parts.status.as_u16();
        let most = if status < 400 { bounds::RESPONSE_BYTES } else { bounds::PROBLEM_BYTES };
        let body = self.body(body, most, limit).await?;
        self.give_back(connection);
        if status < 400 {
            return Ok(Response { status, headers: parts.headers, body });
        }
        Err(Failure::Problem(Box::new(Problem::read(status, &body, retry_after(&parts.headers)))))
    }

    /// Sends a request and waits for the head of the response.
    async fn head(
        &self,
        connection: &mut Connection,
        request: &Request,
        credential: Option<&HeaderValue>,
        limit: Duration,
    ) -> Result<hyper::Response<Incoming>, Failure> {
        let sent = connection.try_send_request(self.request(request, credential)?);
        match timeout(limit, sent).await {
            Ok(Ok(response)) => Ok(response),
            Ok(Err(mut error)) => {
                let is_unsent = error.take_message().is_some();
                Err(Failure::lost(reason(error.error()), !is_unsent))
            }
            Err(_) => Err(Failure::lost(format_args!("no response within {limit:?}"), true)),
        }
    }

    async fn body(&self, body: Incoming, most: usize, limit: Duration) -> Result<Bytes, Failure> {
        let collected = timeout(limit, Limited::new(body, most).collect()).await;
        match collected {
            Ok(Ok(collected)) => Ok(collected.to_bytes()),
            Ok(Err(error)) if error.is::<LengthLimitError>() => {
                let text = format!("the response of {} has more than {most} bytes; ask for less", self.server.url);
                Err(Failure::Final(Error::unreadable(text)))
            }
            Ok(Err(error)) => Err(Failure::lost(error, true)),
            Err(_) => Err(Failure::lost(format_args!("no end of the response within {limit:?}"), true)),
        }
    }

    fn request(
        &self,
        request: &Request,
        credential: Option<&HeaderValue>,
    ) -> Result<hyper::Request<Full<Bytes>>, Failure> {
        let path = format!("{}{}", self.server.base_path, request.path);
        let mut built = hyper::Request::builder()
            .method(request.method.clone())
            .uri(path)
            .header(header::HOST, &self.server.authority);
        for (name, value) in &request.headers {
            built = built.header(name, value);
        }
        if let Some(credential) = credential {
            built = built.header(header::AUTHORIZATION, credential);
        }
        built.body(Full::new(request.body.clone())).map_err(|error| {
            Failure::Final(Error::invalid(format!("`{}` is no path: {error}; encode its parts", request.path)))
        })
    }

    /// Opens a stream of server-sent events.
    pub(crate) async fn open_stream(&self, request: &Request) -> Result<MessageStream, Failure> {
        let mut connection = self.connection(false).await?;
        let credential = self.credential.header();
        let response = self.head(&mut connection, request, credential.as_ref(), bounds::QUIET).await?;
        let (parts, body) = response.into_parts();
        let status = parts.status.as_u16();
        if status < 400 {
            return Ok(MessageStream::new(connection, body));
        }
        let body = self.body(body, bounds::PROBLEM_BYTES, self.timeout).await?;
        Err(Failure::Problem(Box::new(Problem::read(status, &body, retry_after(&parts.headers)))))
    }

    /// Returns an idle connection if it may be one, or else a new one.
    async fn connection(&self, may_be_idle: bool) -> Result<Connection, Failure> {
        let idle = || self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        while let Some(connection) = may_be_idle.then(idle).flatten() {
            if connection.is_ready() {
                return Ok(connection);
            }
        }
        match timeout(bounds::CONNECT.min(self.timeout), self.server.connect()).await {
            Ok(connected) => connected.map_err(|error| Failure::lost(error, false)),
            Err(_) => Err(Failure::lost(format_args!("no connection within {:?}", bounds::CONNECT), false)),
        }
    }

    fn give_back(&self, connection: Connection) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < bounds::IDLE_CONNECTIONS && !connection.is_closed() {
            idle.push(connection);
        }
    }
}

/// Returns the time of `Retry-After` in seconds. A date is ignored: clocks may disagree.
fn retry_after(headers: &hyper::HeaderMap) -> Option<Duration> {
    let seconds = headers.get(header::RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds))
}
