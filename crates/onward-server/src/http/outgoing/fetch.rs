//! One request to a trusted server, with a bounded response.

use std::time::Duration;

use axum::http::{HeaderMap, Method, Request, Response, StatusCode, header};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

use super::target::Target;
use super::tls::connect_tls;
use crate::http::bounds;

/// A request to a server that an operator has named.
#[derive(Debug)]
pub(crate) struct Outgoing<'a> {
    pub(crate) method: Method,
    pub(crate) url: &'a str,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    /// The largest body of the response, in bytes.
    pub(crate) limit: usize,
    /// The time for all of it, from the look-up of the host to the end of the body.
    pub(crate) time: Duration,
}

/// A response.
#[derive(Debug)]
pub(crate) struct Fetched {
    pub(crate) status: StatusCode,
    pub(crate) body: Bytes,
}

impl<'a> Outgoing<'a> {
    /// Returns a request that reads.
    pub(crate) fn get(url: &'a str, limit: usize, time: Duration) -> Self {
        Self { method: Method::GET, url, headers: HeaderMap::new(), body: Bytes::new(), limit, time }
    }
}

/// Sends a request and reads the response. It follows no redirect.
///
/// # Errors
/// The fault, for logs: no connection, a response that is too large or that does not end in time.
pub(crate) async fn fetch(request: Outgoing<'_>) -> Result<Fetched, String> {
    let (url, time) = (request.url.to_owned(), request.time);
    let fetched = tokio::time::timeout(time, fetch_now(request)).await;
    let fetched = fetched.unwrap_or_else(|_| Err(format!("there was no whole response within {time:?}")));
    fetched.map_err(|fault| format!("{url}: {fault}"))
}

async fn fetch_now(request: Outgoing<'_>) -> Result<Fetched, String> {
    let target = Target::parse_trusted(request.url)?;
    let stream = TcpStream::connect((target.host.as_str(), target.port)).await;
    let stream = stream.map_err(|error| format!("the connection failed: {error}"))?;
    if !target.is_tls {
        return exchange(stream, &target, request).await;
    }
    exchange(connect_tls(&target.host, stream).await?, &target, request).await
}

async fn exchange<S>(stream: S, target: &Target, request: Outgoing<'_>) -> Result<Fetched, String>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let Outgoing { method, headers, body, limit, .. } = request;
    let mut builder = http1::Builder::new();
    builder.max_buf_size(bounds::HEAD_BYTES);
    let handshake = builder.handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = handshake.map_err(|error| format!("the connection failed: {error}"))?;
    // The connection ends with this future, so a slow server keeps nothing.
    let mut connections = tokio::task::JoinSet::new();
    connections.spawn(connection);
    let mut sent = Request::new(Full::new(body));
    *sent.method_mut() = method;
    *sent.uri_mut() = target.path.parse().map_err(|_| "the path of the URL is none".to_owned())?;
    *sent.headers_mut() = headers;
    let host = target.authority.parse().map_err(|_| "the host of the URL is none".to_owned())?;
    sent.headers_mut().insert(header::HOST, host);
    sent.headers_mut().insert(header::ACCEPT, header::HeaderValue::from_static("application/json"));
    let response = sender.send_request(sent).await.map_err(|error| format!("there was no response: {error}"))?;
    read(response, limit).await
}

async fn read(response: Response<Incoming>, limit: usize) -> Result<Fetched, String> {
    let status = response.status();
    let body = Limited::new(response.into_body(), limit).collect().await;
    let body = body.map_err(|error| format!("the response of at most {limit} bytes could not be read: {error}"))?;
    Ok(Fetched { status, body: body.to_bytes() })
}
