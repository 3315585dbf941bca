//! A bound address, and the streams that are accepted there.

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use tokio::net::{TcpListener, UnixListener};

use super::path::{SocketFile, abstract_path, bind_any_path, bind_path};
use super::stream::{Stream, canonical};
use super::tcp;
use crate::socket::endpoint::Endpoint;
use crate::socket::error::{Error, Result};
use crate::socket::options::socket_options::SocketOptions;

/// A listener that its task and its socket share. The task accepts with it until the socket closes
/// it. The address is free when the close returns.
#[derive(Clone)]
pub(in crate::socket) struct Acceptor(Arc<Mutex<Option<Listener>>>);

/// A listener of the operating system.
pub(super) enum Listener {
    Tcp(TcpListener),
    /// The file is removed before the listener is closed. If a file without a listener remained,
    /// another socket could replace it, and would then lose its own file.
    Unix {
        _file: Option<SocketFile>,
        listener: UnixListener,
    },
}

impl Acceptor {
    /// Binds to an endpoint of the operating system. Returns the endpoint with the port or path
    /// chosen.
    pub(in crate::socket) async fn bind(endpoint: &Endpoint, options: &SocketOptions) -> Result<(Self, Endpoint)> {
        let bound = match endpoint {
            Endpoint::Tcp { host, port } => bind_tcp(host, *port).await,
            Endpoint::TcpFrom { .. } => {
                return Err(Error::endpoint(format!("`{endpoint}` can be connected to, but not bound to")));
            }
            Endpoint::Ipc(_) if endpoint.is_open() => bind_any_path(options).await,
            Endpoint::Ipc(path) => bind_path(path, options).await.map(|listener| (listener, endpoint.clone())),
            Endpoint::Abstract(name) => UnixListener::bind(abstract_path(name))
                .map(|listener| (Listener::Unix { listener, _file: None }, endpoint.clone())),
            Endpoint::Inproc(_) => Err(io::ErrorKind::Unsupported.into()),
        };
        let (listener, bound) = bound.map_err(|error| Error::bind(endpoint, error))?;
        Ok((Self(Arc::new(Mutex::new(Some(listener)))), bound))
    }

    /// Waits for the next stream and returns it with the peer's address. Returns `None` once the
    /// acceptor is closed.
    pub(in crate::socket::connection) async fn accept(
        &self,
        options: &SocketOptions,
    ) -> io::Result<Option<(Stream, Option<SocketAddr>)>> {
        poll_fn(|context| match &*self.listener() {
            Some(listener) => listener.poll_accept(options, context).map_ok(Some),
            None => Poll::Ready(Ok(None)),
        })
        .await
    }

    /// Closes the listener and removes its file. Returns `false` if that has been done before.
    pub(in crate::socket) fn close(&self) -> bool {
        let mut listener = self.listener();
        let was_open = listener.is_some();
        // This happens under the lock: when a second call returns, the address is free, too.
        *listener = None;
        was_open
    }

    fn listener(&self) -> MutexGuard<'_, Option<Listener>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Listener {
    fn poll_accept(
        &self,
        options: &SocketOptions,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<(Stream, Option<SocketAddr>)>> {
        match self {
            Self::Tcp(listener) => {
                let (stream, address) = ready!(listener.poll_accept(context))?;
                Poll::Ready(Stream::tcp(stream, options).map(|stream| (stream, Some(canonical(address)))))
            }
            Self::Unix { listener, .. } => {
                let (stream, _) = ready!(listener.poll_accept(context))?;
                Poll::Ready(Ok((Stream::unix(stream), None)))
            }
        }
    }
}

async fn bind_tcp(host: &str, port: u16) -> io::Result<(Listener, Endpoint)> {
    let (listener, host) = tcp::bind(host, port).await?;
    let port = listener.local_addr()?.port();
    Ok((Listener::Tcp(listener), Endpoint::Tcp { host, port }))
}
