//! Streams of the operating system, and how they are opened.

use std::io;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::task::{Context, Poll};

use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};

use super::endpoint::Endpoint;
use super::error::{Error, Result};
use super::limits::IPC_BUFFER_BYTES;

/// A stream to a peer.
pub(super) enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Stream {
    /// Connects to an endpoint of the operating system.
    pub(super) async fn connect(endpoint: &Endpoint) -> Result<Self> {
        let stream = match endpoint {
            Endpoint::Tcp { host, port } => TcpStream::connect((host.as_str(), *port)).await.map(Self::tcp),
            Endpoint::Ipc(path) => UnixStream::connect(path).await.map(Self::unix),
            Endpoint::Abstract(name) => UnixStream::connect(abstract_path(name)).await.map(Self::unix),
            Endpoint::Inproc(_) => Err(io::ErrorKind::Unsupported.into()),
        };
        stream.map_err(|error| Error::io(format_args!("cannot connect to {endpoint}"), error))
    }

    fn tcp(stream: TcpStream) -> Self {
        // Batches are ours to make; the operating system shall not wait for more. It is only slower without, or the peer is gone already.
        let _ = stream.set_nodelay(true);
        Self::Tcp(stream)
    }

    fn unix(stream: UnixStream) -> Self {
        let socket = SockRef::from(&stream);
        // Only slower without: the system may allow less.
        let _ = socket.set_send_buffer_size(IPC_BUFFER_BYTES);
        let _ = socket.set_recv_buffer_size(IPC_BUFFER_BYTES);
        Self::Unix(stream)
    }

    /// Whether it is worth it to write. An error shows when that is done.
    pub(super) fn poll_write_ready(&self, context: &mut Context<'_>) -> Poll<()> {
        match self {
            Self::Tcp(stream) => stream.poll_write_ready(context).map(drop),
            Self::Unix(stream) => stream.poll_write_ready(context).map(drop),
        }
    }

    /// Writes what can be written at once, and has nobody woken when there is room for more.
    pub(super) fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.try_write(bytes),
            Self::Unix(stream) => stream.try_write(bytes),
        }
    }

    /// Whether it is worth it to read. An error shows when that is done.
    pub(super) fn poll_read_ready(&self, context: &mut Context<'_>) -> Poll<()> {
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

/// Accepts streams.
pub(super) enum Acceptor {
    Tcp(TcpListener),
    /// The file goes first: while there is one that nobody listens on, another takes its place, and would lose its own.
    Unix {
        _file: Option<SocketFile>,
        listener: UnixListener,
    },
}

/// The file of a Unix socket, which goes just before its listener does.
pub(super) struct SocketFile(PathBuf);

impl Drop for SocketFile {
    fn drop(&mut self) {
        // Somebody else may have removed it.
        let _ = std::fs::remove_file(&self.0);
    }
}

impl Acceptor {
    /// Binds to an endpoint of the operating system. Answers where it really is.
    pub(super) async fn bind(endpoint: &Endpoint) -> Result<(Self, Endpoint)> {
        let bound = match endpoint {
            Endpoint::Tcp { host, port } => Self::bind_tcp(host, *port).await,
            Endpoint::Ipc(path) => Self::bind_path(path).await.map(|acceptor| (acceptor, endpoint.clone())),
            Endpoint::Abstract(name) => UnixListener::bind(abstract_path(name))
                .map(|listener| (Self::Unix { listener, _file: None }, endpoint.clone())),
            Endpoint::Inproc(_) => Err(io::ErrorKind::Unsupported.into()),
        };
        bound.map_err(|error| Error::io(format_args!("cannot bind to {endpoint}"), error))
    }

    async fn bind_tcp(host: &str, port: u16) -> io::Result<(Self, Endpoint)> {
        let address = if host == "*" { "0.0.0.0" } else { host };
        let listener = TcpListener::bind((address, port)).await?;
        let port = listener.local_addr()?.port();
        Ok((Self::Tcp(listener), Endpoint::Tcp { host: host.to_owned(), port }))
    }

    /// Takes the place of a socket that nobody listens on any more, and of nothing else.
    async fn bind_path(path: &Path) -> io::Result<Self> {
        let listener = match UnixListener::bind(path) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse && is_stale(path).await => {
                std::fs::remove_file(path)?;
                UnixListener::bind(path)?
            }
            other => other?,
        };
        Ok(Self::Unix { listener, _file: Some(SocketFile(path.to_owned())) })
    }

    /// The next stream, and where it came from. Cancel safe.
    pub(super) async fn accept(&self) -> io::Result<(Stream, String)> {
        match self {
            Self::Tcp(listener) => {
                let (stream, address) = listener.accept().await?;
                Ok((Stream::tcp(stream), address.to_string()))
            }
            Self::Unix { listener, .. } => {
                let (stream, _) = listener.accept().await?;
                Ok((Stream::unix(stream), String::new()))
            }
        }
    }
}

/// Whether this is a socket that refuses connections. (A file of another kind refuses them too.)
async fn is_stale(path: &Path) -> bool {
    let is_socket = std::fs::symlink_metadata(path).is_ok_and(|metadata| metadata.file_type().is_socket());
    is_socket
        && matches!(UnixStream::connect(path).await, Err(error) if error.kind() == io::ErrorKind::ConnectionRefused)
}

/// How tokio wants to have the name of an abstract socket.
fn abstract_path(name: &str) -> PathBuf {
    PathBuf::from(format!("\0{name}"))
}
