//! Unix sockets at paths: their files, permissions and leftovers.

use std::fs::Permissions;
use std::io;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use socket2::{Domain, SockAddr, Socket, Type};
use tokio::net::{UnixListener, UnixStream};

use super::acceptor::Listener;
use crate::socket::bounds::ACCEPT_QUEUE;
use crate::socket::endpoint::Endpoint;
use crate::socket::options::socket_options::SocketOptions;

/// The file of a Unix socket. It is removed just before its listener is closed, unless another file
/// has replaced it.
pub(super) struct SocketFile {
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

/// Binds to an unused path.
pub(super) async fn bind_any_path(options: &SocketOptions) -> io::Result<(Listener, Endpoint)> {
    let name = format!("onward-zmtp-{}-{:016x}.sock", std::process::id(), fastrand::u64(..));
    let path = std::env::temp_dir().join(name);
    let listener = bind_path(&path, options).await?;
    Ok((listener, Endpoint::Ipc(path)))
}

/// Binds to a path. Replaces a socket file without a listener, and no other file.
pub(super) async fn bind_path(path: &Path, options: &SocketOptions) -> io::Result<Listener> {
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

/// Returns the name of an abstract socket in the form that tokio expects.
pub(super) fn abstract_path(name: &str) -> PathBuf {
    PathBuf::from(format!("\0{name}"))
}
