//! Where a socket is bound or connected to.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;

use super::error::{Error, Result};
use super::limits::ENDPOINT_BYTES;

/// The longest path of a Unix socket, in bytes; the operating system fixes it.
const IPC_PATH_BYTES: usize = 107;

/// The path that stands for one that is generated.
const ANY_PATH: &str = "*";

/// An address of a socket, as ZeroMQ writes it.
///
/// | text | meaning |
/// |---|---|
/// | `tcp://127.0.0.1:5555`, `tcp://[::1]:5555`, `tcp://example.com:5555` | TCP |
/// | `tcp://127.0.0.1:*` | to bind to a port that the operating system chooses |
/// | `tcp://*:5555` | to bind to every interface with IPv4 and IPv6, so for the whole network |
/// | `tcp://192.0.2.7:0;example.com:5555` | to connect from this address of the machine, here with any port of it |
/// | `ipc:///run/program.sock` | a Unix socket at a path |
/// | `ipc://*` | to bind to a path for temporary files that `bind` generates and returns |
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
    /// The same, to connect to from an address of this machine (port 0 for any).
    TcpFrom {
        /// The address and the port on this side.
        source: SocketAddr,
        /// The host to connect to, an IPv6 address without brackets.
        host: String,
        /// The port to connect to.
        port: u16,
    },
    /// The path of a Unix socket, or `*` for one that is generated when it is bound to.
    Ipc(PathBuf),
    /// A Unix socket in Linux' abstract namespace, which has no file and vanishes with its listener.
    Abstract(String),
    /// A name inside this process.
    Inproc(String),
}

impl Endpoint {
    fn tcp(address: &str) -> Result<Self> {
        let Some((source, destination)) = address.split_once(';') else {
            let (host, port) = host_and_port(address)?;
            return Ok(Self::Tcp { host, port });
        };
        let (from, source_port) = host_and_port(source)?;
        let Ok(from) = from.parse::<IpAddr>() else {
            return Err(Error::endpoint(format!(
                "`{from}` in `tcp://{address}` is no address; write `tcp://ADDRESS:PORT;HOST:PORT` with an IP address of this machine"
            )));
        };
        let (host, port) = host_and_port(destination)?;
        Ok(Self::TcpFrom { source: SocketAddr::new(from, source_port), host, port })
    }

    /// Whether it stands for what the operating system or the socket chooses, so that it can be bound to only.
    pub(super) fn is_open(&self) -> bool {
        match self {
            Self::Tcp { host, port } | Self::TcpFrom { host, port, .. } => host == "*" || *port == 0,
            Self::Ipc(path) => path.as_os_str() == ANY_PATH,
            Self::Abstract(_) | Self::Inproc(_) => false,
        }
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

/// Splits `HOST:PORT`.
fn host_and_port(address: &str) -> Result<(String, u16)> {
    let Some((host, port)) = address.rsplit_once(':') else {
        return Err(Error::endpoint(format!("`tcp://{address}` has no port; write `tcp://HOST:PORT`")));
    };
    let port = match port {
        "*" => 0,
        number => number.parse().map_err(|_| {
            Error::endpoint(format!("`{number}` in `tcp://{address}` is no port; write 0 to 65535, or `*`"))
        })?,
    };
    let host = match host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
        Some(host) => ipv6(host, address)?,
        None if host.contains(':') => {
            return Err(Error::endpoint(format!(
                "the IPv6 address in `tcp://{address}` needs brackets; write `tcp://[{host}]:{port}`"
            )));
        }
        None => host,
    };
    if host.is_empty() || host.contains(['/', '[', ']']) || host.contains(char::is_whitespace) {
        return Err(Error::endpoint(format!(
            "`tcp://{address}` has no host that can be used; write `tcp://HOST:PORT`"
        )));
    }
    Ok((host.to_owned(), port))
}

/// Returns what stands in brackets if it is an IPv6 address, which may name the zone of a local one.
fn ipv6<'a>(host: &'a str, address: &str) -> Result<&'a str> {
    let number = host.split_once('%').map_or(host, |(number, _)| number);
    match number.parse::<Ipv6Addr>() {
        Ok(_) => Ok(host),
        Err(_) => Err(Error::endpoint(format!("`[{host}]` in `tcp://{address}` is no IPv6 address"))),
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

/// A host as it is written: an IPv6 address in brackets.
struct Host<'a>(&'a str);

impl fmt::Display for Host<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.contains(':') { write!(formatter, "[{}]", self.0) } else { formatter.write_str(self.0) }
    }
}

/// The text that it is parsed from.
impl fmt::Display for Endpoint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp { host, port } => write!(formatter, "tcp://{}:{port}", Host(host)),
            Self::TcpFrom { source, host, port } => write!(formatter, "tcp://{source};{}:{port}", Host(host)),
            Self::Ipc(path) => write!(formatter, "ipc://{}", path.display()),
            Self::Abstract(name) => write!(formatter, "ipc://@{name}"),
            Self::Inproc(name) => write!(formatter, "inproc://{name}"),
        }
    }
}
