//! A listener that serves a router.

use std::net::SocketAddr;
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
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

use super::connections::{Connection, Connections};
use crate::http::bounds;
use crate::http::server::Server;

/// The response to a connection beyond the bounds.
const TOO_MANY: &[u8] =
    b"HTTP/1.1 429 Too Many Requests\r\ncontent-length: 0\r\nretry-after: 1\r\nconnection: close\r\n\r\n";

/// The time to wait after the system refused a connection, for example without free file
/// descriptors.
const PAUSE: Duration = Duration::from_millis(50);

/// A listener on a port. It bounds connections and heads of requests.
#[derive(Debug)]
pub struct Listener {
    listener: TcpListener,
    connections: Arc<Connections>,
}

impl Listener {
    /// Listens on an address.
    ///
    /// # Errors
    /// If the port cannot be had.
    pub async fn bind(address: SocketAddr) -> std::io::Result<Self> {
        Ok(Self { listener: TcpListener::bind(address).await?, connections: Arc::default() })
    }

    /// Returns the address, with the port that the system chose.
    ///
    /// # Errors
    /// If the system does not know it.
    pub fn local_address(&self) -> std::io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves a server until `stop` is cancelled. Then it accepts no more connections, ends event
    /// streams, and waits for open requests for at most `stop_within`. Returns true if all of them
    /// ended.
    pub async fn serve(self, server: &Arc<Server>, stop: CancellationToken, stop_within: Duration) -> bool {
        let router = server.router();
        let graceful = GracefulShutdown::new();
        loop {
            tokio::select! {
                accepted = self.listener.accept() => match accepted {
                    Ok((stream, address)) => self.accept(server, &router, &graceful, stream, address),
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

    fn accept(
        &self,
        server: &Arc<Server>,
        router: &Router,
        graceful: &GracefulShutdown,
        stream: TcpStream,
        address: SocketAddr,
    ) {
        // A response is one segment, and the client waits for it.
        let _ = stream.set_nodelay(true);
        let Some(counted) = self.connections.open(address.ip()) else {
            // A client that does not read its refusal loses it with the connection.
            let _ = stream.try_write(TOO_MANY);
            return;
        };
        let connection = serve_connection(server, router.clone(), stream, address);
        let connection = graceful.watch(connection);
        tokio::spawn(until_closed(connection, counted));
    }
}

async fn until_closed<F>(connection: F, counted: Connection)
where
    F: Future<Output = Result<(), hyper::Error>>,
{
    if let Err(error) = connection.await {
        tracing::debug!(%error, "a connection ended early");
    }
    drop(counted);
}

fn serve_connection(
    server: &Arc<Server>,
    router: Router,
    stream: TcpStream,
    address: SocketAddr,
) -> http1::Connection<
    TokioIo<TcpStream>,
    impl hyper::service::Service<
        Request<Incoming>,
        Response = Response<Body>,
        Error = std::convert::Infallible,
        Future: Send,
    > + use<>,
> {
    let service = service_fn(move |request: Request<Incoming>| respond(router.clone(), request, address));
    http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(server.options.request_time)
        .max_buf_size(bounds::HEAD_BYTES)
        .max_headers(bounds::HEADERS)
        .serve_connection(TokioIo::new(stream), service)
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
