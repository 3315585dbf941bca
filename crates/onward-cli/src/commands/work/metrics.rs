//! `--metrics`: metrics for Prometheus over HTTP.

use std::convert::Infallible;
use std::fmt::Display;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

use crate::exit_code::wrong_usage;

/// The most connections at once. Further ones wait in the queue of the operating system.
const CONNECTIONS: usize = 64;

/// The longest time that a connection stays open. It serves one request.
const CONNECTION_TIME: Duration = Duration::from_secs(30);

/// The largest head of a request, in bytes.
const HEAD_BYTES: usize = 16 * 1024;

/// The type of the text: version 0.0.4 of the format of Prometheus.
const CONTENT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The time between two summaries of the samples of histograms, whose memory grows until then.
const UPKEEP_INTERVAL: Duration = Duration::from_secs(5);

/// The time to wait after the system refused a connection, for example without free file
/// descriptors.
const PAUSE: Duration = Duration::from_millis(50);

/// Records the metrics of this process, and serves them at `address` until the process ends.
pub(super) async fn serve(address: SocketAddr) -> anyhow::Result<()> {
    let listener = TcpListener::bind(address).await.map_err(|error| unusable(address, error))?;
    let metrics = PrometheusBuilder::new().install_recorder().map_err(|error| unusable(address, error))?;
    tokio::spawn(summarise(metrics.clone()));
    tokio::spawn(accept(listener, metrics));
    Ok(())
}

fn unusable(address: SocketAddr, error: impl Display) -> anyhow::Error {
    wrong_usage(format!("--metrics {address}: {error}; give an address that is free"))
}

async fn summarise(metrics: PrometheusHandle) {
    loop {
        tokio::time::sleep(UPKEEP_INTERVAL).await;
        metrics.run_upkeep();
    }
}

async fn accept(listener: TcpListener, metrics: PrometheusHandle) {
    let free = Arc::new(Semaphore::new(CONNECTIONS));
    while let Ok(counted) = Arc::clone(&free).acquire_owned().await {
        match listener.accept().await {
            Ok((stream, _)) => {
                let connection = respond_once(stream, metrics.clone());
                tokio::spawn(async move {
                    let _ = tokio::time::timeout(CONNECTION_TIME, connection).await;
                    drop(counted);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "a connection for metrics could not be accepted");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

async fn respond_once(stream: TcpStream, metrics: PrometheusHandle) {
    let service = service_fn(move |request| std::future::ready(Ok::<_, Infallible>(respond(&request, &metrics))));
    let mut server = http1::Builder::new();
    server.keep_alive(false).max_buf_size(HEAD_BYTES);
    if let Err(error) = server.serve_connection(TokioIo::new(stream), service).await {
        tracing::debug!(%error, "a connection for metrics ended early");
    }
}

fn respond(request: &Request<Incoming>, metrics: &PrometheusHandle) -> Response<Full<Bytes>> {
    let text = if request.uri().path() == "/health" { "OK".to_owned() } else { metrics.render() };
    let mut response = Response::new(Full::new(text.into()));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(CONTENT));
    response
}
