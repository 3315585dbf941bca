//! Where a socket is bound or connected to.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use super::error::{Error, Result};
use super::limits::ENDPOINT_BYTES;

/// The longest path of a Unix socket, in bytes; the operating system fixes it.
const IPC_PATH_BYTES: usize = 107;

/// An address of a socket, as ZeroMQ writes it.
///
/// | text | meaning |
/// |---|---|
/// | `tcp://127.0.0.1:5555`, `tcp://[::1]:5555`, `tcp://example.com:5555` | TCP |
/// | `tcp://127.0.0.1:*` | to bind to a port that the operating system chooses |
/// | `tcp://*:5555` | to bind to every interface, so for the whole network |
/// | `ipc:///run/program.sock` | a Unix socket at a path |
/// | `ipc://@name` | a Unix socket in Linux' abstract namespace |
/// | `inproc://name` | a name inside this process |
///
/// ```
/// use onward_zmtp::socket::Endpoint;
/// let endpoint: Endpoint = "tcp://127.0.0.1:5555".parse()?;
/// assert_eq!(endpoint.to_string(), "tcp://127.0.0.1:5555");
/// # Ok::<(), onward_zmtp::socket::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Endpoint {
    /// A host (a name, an address, or `*` for every interface) and a port (0 for one that the operating system chooses).
    Tcp {
        /// The host, an IPv6 address without brackets.
        host: String,
        /// The port.
        port: u16,
    },
    /// The path of a Unix socket.
    Ipc(PathBuf),
    /// A Unix socket in Linux' abstract namespace, which has no file and vanishes with its listener.
    Abstract(String),
    /// A name inside this process.
    Inproc(String),
}

impl Endpoint {
    fn tcp(address: &str) -> Result<Self> {
        let Some((host, port)) = address.rsplit_once(':') else {
            return Err(Error::endpoint(format!("`tcp://{address}` has no port; write `tcp://HOST:PORT`")));
        };
        let port = match port {
            "*" => 0,
            number => number.parse().map_err(|_| {
                Error::endpoint(format!("`{number}` in `tcp://{address}` is no port; write 0 to 65535, or `*`"))
            })?,
        };
        let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        if host.is_empty() || host.contains(['/', ';', '[', ']']) || host.contains(char::is_whitespace) {
            return Err(Error::endpoint(format!(
                "`tcp://{address}` has no host that can be used; write `tcp://HOST:PORT`"
            )));
        }
        Ok(Self::Tcp { host: host.to_owned(), port })
    }

    fn ipc(path: &str) -> Result<Self> {
        if path.is_empty() || path == "@" || path.len() > IPC_PATH_BYTES || path.contains('\0') {
            return Err(Error::endpoint(format!("`ipc://{path}` has no path of 1 to {IPC_PATH_BYTES} bytes")));
        }
        Ok(match path.strip_prefix('@') {
            Some(name) => Self::Abstract(name.to_owned()),
            None => Self::Ipc(path.into()),
        })
    }
}

impl FromStr for Endpoint {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        if text.len() > ENDPOINT_BYTES {
            return Err(Error::endpoint(format!("an endpoint has at most {ENDPOINT_BYTES} bytes")));
        }
        match text.split_once("://") {
            Some(("tcp", address)) => Self::tcp(address),
            Some(("ipc", path)) => Self::ipc(path),
            Some(("inproc", "")) => Err(Error::endpoint("`inproc://` has no name")),
            Some(("inproc", name)) => Ok(Self::Inproc(name.to_owned())),
            _ => Err(Error::endpoint(format!("`{text}` is no endpoint; write `tcp://…`, `ipc://…` or `inproc://…`"))),
        }
    }
}

impl TryFrom<&str> for Endpoint {
    type Error = Error;

    fn try_from(text: &str) -> Result<Self> {
        text.parse()
    }
}

impl TryFrom<&String> for Endpoint {
    type Error = Error;

    fn try_from(text: &String) -> Result<Self> {
        text.parse()
    }
}

impl From<&Self> for Endpoint {
    fn from(endpoint: &Self) -> Self {
        endpoint.clone()
    }
}

/// The text that it is parsed from.
impl fmt::Display for Endpoint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp { host, port } if host.contains(':') => write!(formatter, "tcp://[{host}]:{port}"),
            Self::Tcp { host, port } => write!(formatter, "tcp://{host}:{port}"),
            Self::Ipc(path) => write!(formatter, "ipc://{}", path.display()),
            Self::Abstract(name) => write!(formatter, "ipc://@{name}"),
            Self::Inproc(name) => write!(formatter, "inproc://{name}"),
        }
    }
}
