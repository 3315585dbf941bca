//! Streams of the operating system, and their creation.

use std::fs::Permissions;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use socket2::{Domain, SockAddr, SockRef, Socket, Type};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};

use super::tcp;
use crate::socket::bounds::{ACCEPT_QUEUE, IPC_BUFFER_BYTES};
use crate::socket::endpoint::{Endpoint, Source};
use crate::socket::error::{Error, Result};
use crate::socket::options::checks::request_to;
use crate::socket::options::socket_options::SocketOptions;
use crate::socket::socks::tunnel::{self, TunnelError};

/// A stream to a peer.
pub(super) enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Stream {
    /// Connects to an endpoint of the operating system, through the proxy if the options have one.
    pub(super) async fn connect(endpoint: &Endpoint, options: &SocketOptions) -> Result<Self> {
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

    fn tcp(stream: TcpStream, options: &SocketOptions) -> io::Result<Self> {
        // The socket makes its own batches, so the operating system must not wait for more data. An
        // error only makes it slower, or means that the peer is gone already.
        let _ = stream.set_nodelay(true);
        if let Some(keepalive) = &options.keepalive {
            keepalive.set(&stream)?;
        }
        Ok(Self::Tcp(stream))
    }

    fn unix(stream: UnixStream) -> Self {
        let socket = SockRef::from(&stream);
        // An error only makes the stream slower: the system may allow less.
        let _ = socket.set_send_buffer_size(IPC_BUFFER_BYTES);
        let _ = socket.set_recv_buffer_size(IPC_BUFFER_BYTES);
        Self::Unix(stream)
    }

    /// Returns the address of the peer, if it has one.
    pub(super) fn peer_address(&self) -> Option<SocketAddr> {
        match self {
            Self::Tcp(stream) => stream.peer_addr().ok().map(canonical),
            Self::Unix(_) => None,
        }
    }

    /// Returns `Ready` if a write is worth trying. The write then reports any error.
    pub(super) fn poll_write_ready(&self, context: &mut Context<'_>) -> Poll<()> {
        match self {
            Self::Tcp(stream) => stream.poll_write_ready(context).map(drop),
            Self::Unix(stream) => stream.poll_write_ready(context).map(drop),
        }
    }

    /// Writes what the stream takes at once. It registers no waker for more room.
    pub(super) fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.try_write(bytes),
            Self::Unix(stream) => stream.try_write(bytes),
        }
    }

    /// Returns `Ready` if a read is worth trying. The read then reports any error.
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

/// A listener that its task and its socket share. The task accepts with it until the socket closes
/// it. The address is free when the close returns.
#[derive(Clone)]
pub(in crate::socket) struct Acceptor(Arc<Mutex<Option<Listener>>>);

enum Listener {
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
        let (listener, bound) = bound.map_err(|error| Error::io(format_args!("cannot bind to {endpoint}"), error))?;
        Ok((Self(Arc::new(Mutex::new(Some(listener)))), bound))
    }

    /// Waits for the next stream and returns it with the peer's address. Returns `None` once the
    /// acceptor is closed.
    pub(super) async fn accept(&self, options: &SocketOptions) -> io::Result<Option<(Stream, Option<SocketAddr>)>> {
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

/// Returns an IPv4 address as such. A listener for both families gets it as an IPv6 address.
fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

async fn bind_tcp(host: &str, port: u16) -> io::Result<(Listener, Endpoint)> {
    let (listener, host) = tcp::bind(host, port).await?;
    let port = listener.local_addr()?.port();
    Ok((Listener::Tcp(listener), Endpoint::Tcp { host, port }))
}

/// Binds to an unused path.
async fn bind_any_path(options: &SocketOptions) -> io::Result<(Listener, Endpoint)> {
    let name = format!("onward-zmtp-{}-{:016x}.sock", std::process::id(), fastrand::u64(..));
    let path = std::env::temp_dir().join(name);
    let listener = bind_path(&path, options).await?;
    Ok((listener, Endpoint::Ipc(path)))
}

/// Binds to a path. Replaces a socket file without a listener, and no other file.
async fn bind_path(path: &Path, options: &SocketOptions) -> io::Result<Listener> {
    let listener = match listen_at(path, options) {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
            let Some(id) = stale_socket(path).await else { return Err(path_in_use(path, error)) };
            remove_if_same(path, id);
            listen_at(path, options)?
        }
        other => other?,
    };
    Ok(Listener::Unix { listener, _file: SocketFile::at(path) })
}

/// Listens on a new path. No peer can connect before its permissions are set.
fn listen_at(path: &Path, options: &SocketOptions) -> io::Result<UnixListener> {
    let Some(mode) = options.ipc_permissions else { return UnixListener::bind(path) };
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    socket.set_nonblocking(true)?;
    socket.bind(&SockAddr::unix(path)?)?;
    let listening = std::fs::set_permissions(path, Permissions::from_mode(mode)).and_then(|()| {
        socket.listen(ACCEPT_QUEUE)?;
        UnixListener::from_std(socket.into())
    });
    // The file is of no use without a listener.
    listening.inspect_err(|_| drop(SocketFile::at(path)))
}

/// The file of a Unix socket. It is removed just before its listener is closed, unless another file
/// has replaced it.
struct SocketFile {
    path: PathBuf,
    /// The device and the inode. While the listener is open, its inode is not given to another
    /// file.
    id: (u64, u64),
}

impl SocketFile {
    fn at(path: &Path) -> Option<Self> {
        socket_id(path).map(|id| Self { path: path.to_owned(), id })
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        remove_if_same(&self.path, self.id);
    }
}

/// Returns the device and the inode of the socket at a path.
fn socket_id(path: &Path) -> Option<(u64, u64)> {
    let metadata = std::fs::symlink_metadata(path).ok()?;
    metadata.file_type().is_socket().then(|| (metadata.dev(), metadata.ino()))
}

/// Removes the socket at a path if it is still the same one.
fn remove_if_same(path: &Path, id: (u64, u64)) {
    if socket_id(path) == Some(id) {
        // Another process may have removed it.
        let _ = std::fs::remove_file(path);
    }
}

/// Returns the reason why a path cannot be bound to.
fn path_in_use(path: &Path, error: io::Error) -> io::Error {
    if socket_id(path).is_some() {
        return error;
    }
    io::Error::new(error.kind(), "the path has a file that is no socket; remove it, or use another path")
}

/// Returns the socket at a path if it refuses connections. Other files refuse them, too, so the
/// type is checked first.
async fn stale_socket(path: &Path) -> Option<(u64, u64)> {
    let id = socket_id(path)?;
    let connected = UnixStream::connect(path).await;
    matches!(connected, Err(error) if error.kind() == io::ErrorKind::ConnectionRefused).then_some(id)
}

/// Returns the name of an abstract socket in the form that tokio expects.
fn abstract_path(name: &str) -> PathBuf {
    PathBuf::from(format!("\0{name}"))
}
