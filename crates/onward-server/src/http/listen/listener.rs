//! A listener that serves a router.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::{HeaderValue, Request, Response, header};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

use super::connections::{Connection, Connections};
use super::network::is_proxy;
use super::tls::Tls;
use crate::http::bounds;
use crate::http::server::Server;

/// The response to a connection beyond the bounds.
const TOO_MANY: &[u8] =
    b"HTTP/1.1 429 Too Many Requests\r\ncontent-length: 0\r\nretry-after: 1\r\nconnection: close\r\n\r\n";

/// The response to a client that is no trusted proxy, where only these may connect.
const NO_PROXY: &[u8] = b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";

/// The time to wait after the system refused a connection, for example without free file
/// descriptors.
const PAUSE: Duration = Duration::from_millis(50);

/// A listener on a port. It bounds connections and heads of requests.
#[derive(Debug)]
pub struct Listener {
    listener: TcpListener,
    connections: Arc<Connections>,
    tls: Option<Arc<Tls>>,
}

impl Listener {
    /// Listens on an address, without TLS.
    ///
    /// # Errors
    /// Returns an error if the port cannot be had.
    pub async fn bind(address: SocketAddr) -> std::io::Result<Self> {
        Ok(Self { listener: TcpListener::bind(address).await?, connections: Arc::default(), tls: None })
    }

    /// Serves every connection with TLS.
    #[must_use]
    pub fn with_tls(mut self, tls: Arc<Tls>) -> Self {
        self.tls = Some(tls);
        self
    }

    /// Returns the address, with the port that the system chose.
    ///
    /// # Errors
    /// Returns an error if the system does not know it.
    pub fn local_address(&self) -> std::io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves a server until `stop` is cancelled. Then it accepts no more connections, ends event
    /// streams, and waits for open requests for at most `stop_within`. Returns true if all of them
    /// ended.
    ///
    /// Beyond loopback and without TLS it serves the trusted proxies of the server only.
    pub async fn serve(self, server: &Arc<Server>, stop: CancellationToken, stop_within: Duration) -> bool {
        if self.tls.is_some() {
            server.note_tls();
        }
        let (router, graceful) = (server.router(), GracefulShutdown::new());
        loop {
            tokio::select! {
                accepted = self.listener.accept() => match accepted {
                    Ok((stream, address)) => {
                        let serving = Serving { server: Arc::clone(server), router: router.clone(), address };
                        self.accept(serving, stream, graceful.watcher(), &stop);
                    }
                    Err(error) => {
                        tracing::warn!(%error, "a connection could not be accepted");
                        tokio::time::sleep(PAUSE).await;
                    }
                },
                () = stop.cancelled() => break,
            }
        }
        drop(self.listener);
        server.begin_stop();
        tokio::time::timeout(stop_within, graceful.shutdown()).await.is_ok()
    }

    fn accept(&self, serving: Serving, stream: TcpStream, watcher: Watcher, stop: &CancellationToken) {
        let peer = serving.address.ip().to_canonical();
        // A client that does not read its refusal loses it with the connection.
        if !self.serves(&serving, &stream, peer) {
            let _ = stream.try_write(NO_PROXY);
            return;
        }
        // A response is one segment, and the client waits for it.
        let _ = stream.set_nodelay(true);
        let limits = serving.server.limits.get();
        let per_address = if serving.is_proxy(peer) { usize::MAX } else { limits.connections_per_address };
        let Some(counted) = self.connections.open(peer, limits.connections, per_address) else {
            if self.tls.is_none() {
                let _ = stream.try_write(TOO_MANY);
            }
            return;
        };
        match &self.tls {
            None => drop(tokio::spawn(serving.serve(stream, watcher, counted))),
            Some(tls) => {
                drop(tokio::spawn(serving.serve_with_tls(Arc::clone(tls), stream, watcher, counted, stop.clone())));
            }
        }
    }

    /// Returns true if a client may be served: on loopback, with TLS, or for a trusted proxy.
    fn serves(&self, serving: &Serving, stream: &TcpStream, peer: IpAddr) -> bool {
        let is_local = || stream.local_addr().is_ok_and(|address| address.ip().to_canonical().is_loopback());
        self.tls.is_some() || is_local() || serving.is_proxy(peer)
    }
}

/// The service of one connection.
struct Serving {
    server: Arc<Server>,
    router: Router,
    address: SocketAddr,
}

impl Serving {
    fn is_proxy(&self, peer: IpAddr) -> bool {
        is_proxy(&self.server.options.proxies, peer)
    }

    async fn serve_with_tls(
        self,
        tls: Arc<Tls>,
        stream: TcpStream,
        watcher: Watcher,
        counted: Connection,
        stop: CancellationToken,
    ) {
        let within = self.server.limits.get().request_time.min(bounds::TLS_HANDSHAKE_TIME);
        let accepted = tokio::select! {
            accepted = tls.accept(stream, within) => accepted,
            () = stop.cancelled() => return,
        };
        match accepted {
            Ok(stream) => self.serve(stream, watcher, counted).await,
            Err(error) => tracing::debug!(%error, "a TLS handshake failed"),
        }
    }

    /// Serves a connection until it is closed.
    async fn serve<S>(self, stream: S, watcher: Watcher, counted: Connection)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let Self { server, router, address } = self;
        let service = service_fn(move |request: Request<Incoming>| respond(router.clone(), request, address));
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(server.limits.get().request_time)
            .max_buf_size(bounds::HEAD_BYTES)
            .max_headers(bounds::HEADERS)
            .serve_connection(TokioIo::new(stream), service);
        if let Err(error) = watcher.watch(connection).await {
            tracing::debug!(%error, "a connection ended early");
        }
        drop(counted);
    }
}

async fn respond(
    router: Router,
    request: Request<Incoming>,
    address: SocketAddr,
) -> Result<Response<Body>, std::convert::Infallible> {
    use tower_service::Service as _;
    let mut router = router;
    let mut request = request.map(Body::new);
    request.extensions_mut().insert(ConnectInfo(address));
    let mut response = router.call(request).await?;
    let headers = response.headers_mut();
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    Ok(response)
}
