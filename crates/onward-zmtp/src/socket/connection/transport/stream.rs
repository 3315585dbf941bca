//! A stream of the operating system to a peer.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};

use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};

use super::path::abstract_path;
use super::tcp;
use crate::socket::bounds::IPC_BUFFER_BYTES;
use crate::socket::endpoint::{Endpoint, Source};
use crate::socket::error::{Error, Result};
use crate::socket::options::checks::request_to;
use crate::socket::options::socket_options::SocketOptions;
use crate::socket::socks::tunnel::{self, TunnelError};

/// A stream to a peer.
pub(in crate::socket::connection) enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Stream {
    /// Connects to an endpoint of the operating system, through the proxy if the options have one.
    pub(in crate::socket::connection) async fn connect(endpoint: &Endpoint, options: &SocketOptions) -> Result<Self> {
        let stream = match endpoint {
            Endpoint::Tcp { host, port } => return Self::connect_tcp(endpoint, None, (host, *port), options).await,
            Endpoint::TcpFrom { source, host, port } => {
                return Self::connect_tcp(endpoint, Some(source), (host, *port), options).await;
            }
            Endpoint::Ipc(path) => UnixStream::connect(path).await,
            Endpoint::Abstract(name) => UnixStream::connect(abstract_path(name)).await,
            Endpoint::Inproc(_) => Err(io::ErrorKind::Unsupported.into()),
        };
        stream.map(Self::unix).map_err(|error| Error::io(format_args!("cannot connect to {endpoint}"), error))
    }

    async fn connect_tcp(
        endpoint: &Endpoint,
        source: Option<&Source>,
        (host, port): (&str, u16),
        options: &SocketOptions,
    ) -> Result<Self> {
        let route = options.route(endpoint);
        let failed = |error| Error::io(format_args!("cannot connect to {route}"), error);
        let Some(proxy) = route.proxy else {
            let connected = tcp::connect(source, host, port).await;
            return connected.and_then(|stream| Self::tcp(stream, options)).map_err(failed);
        };
        let request = request_to(endpoint, host, port)?;
        let mut stream = tcp::connect(source, &proxy.host, proxy.port).await.map_err(|error| {
            Error::io(format_args!("cannot connect to {route}: the proxy cannot be reached"), error)
        })?;
        tunnel::open(&mut stream, proxy, &request).await.map_err(|error| match error {
            TunnelError::Io(error) => failed(error),
            TunnelError::Failed(failure) => Error::proxy(&route, failure),
        })?;
        Self::tcp(stream, options).map_err(failed)
    }

    pub(super) fn tcp(stream: TcpStream, options: &SocketOptions) -> io::Result<Self> {
        // The socket makes its own batches, so the operating system must not wait for more data. An
        // error only makes it slower, or means that the peer is gone already.
        let _ = stream.set_nodelay(true);
        if let Some(keepalive) = &options.keepalive {
            keepalive.set(&stream)?;
        }
        Ok(Self::Tcp(stream))
    }

    pub(super) fn unix(stream: UnixStream) -> Self {
        let socket = SockRef::from(&stream);
        // An error only makes the stream slower: the system may allow less.
        let _ = socket.set_send_buffer_size(IPC_BUFFER_BYTES);
        let _ = socket.set_recv_buffer_size(IPC_BUFFER_BYTES);
        Self::Unix(stream)
    }

    /// Returns the address of the peer, if it has one.
    pub(in crate::socket::connection) fn peer_address(&self) -> Option<SocketAddr> {
        match self {
            Self::Tcp(stream) => stream.peer_addr().ok().map(canonical),
            Self::Unix(_) => None,
        }
    }

    /// Returns `Ready` if a write is worth trying. The write then reports any error.
    pub(in crate::socket::connection) fn poll_write_ready(&self, context: &mut Context<'_>) -> Poll<()> {
        match self {
            Self::Tcp(stream) => stream.poll_write_ready(context).map(drop),
            Self::Unix(stream) => stream.poll_write_ready(context).map(drop),
        }
    }

    /// Writes what the stream takes at once. It registers no waker for more room.
    pub(in crate::socket::connection) fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.try_write(bytes),
            Self::Unix(stream) => stream.try_write(bytes),
        }
    }

    /// Returns `Ready` if a read is worth trying. The read then reports any error.
    pub(in crate::socket::connection) fn poll_read_ready(&self, context: &mut Context<'_>) -> Poll<()> {
        match self {
            Self::Tcp(stream) => stream.poll_read_ready(context).map(drop),
            Self::Unix(stream) => stream.poll_read_ready(context).map(drop),
        }
    }
}

macro_rules! delegate {
    ($self:ident, $stream:ident => $call:expr) => {
        match $self.get_mut() {
            Self::Tcp($stream) => $call,
            Self::Unix($stream) => $call,
        }
    };
}

impl AsyncRead for Stream {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        delegate!(self, stream => Pin::new(stream).poll_read(context, buffer))
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        delegate!(self, stream => Pin::new(stream).poll_write(context, bytes))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        delegate!(self, stream => Pin::new(stream).poll_write_vectored(context, slices))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        delegate!(self, stream => Pin::new(stream).poll_flush(context))
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        delegate!(self, stream => Pin::new(stream).poll_shutdown(context))
    }
}

/// Returns an IPv4 address as such. A listener for both families gets it as an IPv6 address.
pub(super) fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}
