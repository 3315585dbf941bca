//! TCP streams: connecting from and to addresses, and listening.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use socket2::{Domain, Protocol, SockRef, Socket, Type};
use tokio::net::{TcpListener, TcpSocket, TcpStream, lookup_host};

use super::interfaces;
use crate::socket::bounds::ACCEPT_QUEUE;
use crate::socket::endpoint::Source;

/// Connects to a host, from a source if one is given.
pub(super) async fn connect(source: Option<&Source>, host: &str, port: u16) -> io::Result<TcpStream> {
    match source {
        None => TcpStream::connect((host, port)).await.and_then(reject_self_connection),
        Some(source) => connect_from(source, host, port).await,
    }
}

/// Tries the host's addresses one after the other, each from the first source address of its
/// family.
async fn connect_from(source: &Source, host: &str, port: u16) -> io::Result<TcpStream> {
    let sources = source_addresses(source)?;
    let mut last = io::Error::new(
        io::ErrorKind::AddrNotAvailable,
        format!("`{host}` has no address that can be reached from {source}; use a source of its kind"),
    );
    for address in lookup_host((host, port)).await? {
        let Some(from) = sources.iter().find(|from| from.is_ipv4() == address.is_ipv4()) else { continue };
        match connect_address(*from, address).await.and_then(reject_self_connection) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn source_addresses(source: &Source) -> io::Result<Vec<SocketAddr>> {
    match source {
        Source::Address(address) => Ok(vec![*address]),
        // An interface may get its address later, so each attempt looks for it again.
        Source::Interface { name, port } => match interfaces::addresses(name, *port)? {
            addresses if addresses.is_empty() => Err(interfaces::unknown(name)?),
            addresses => Ok(addresses),
        },
    }
}

async fn connect_address(source: SocketAddr, address: SocketAddr) -> io::Result<TcpStream> {
    let socket = if source.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    // A given port must be usable again as soon as the connection has ended.
    socket.set_reuseaddr(source.port() != 0)?;
    socket.bind(source)?;
    socket.connect(address).await
}

/// Rejects a connection whose two ends are the same. If a port has no listener, the operating
/// system may choose that very port for the connecting socket, which is then connected to itself.
/// TCP calls this a simultaneous open.
fn reject_self_connection(stream: TcpStream) -> io::Result<TcpStream> {
    if stream.local_addr()? != stream.peer_addr()? {
        return Ok(stream);
    }
    // With no linger time the port is free at once for a real listener.
    let _ = SockRef::from(&stream).set_linger(Some(Duration::ZERO));
    Err(io::Error::new(
        io::ErrorKind::AddrNotAvailable,
        "the operating system connected the socket to itself: no listener has the port",
    ))
}

/// Binds to an address, to an interface, to a name, or to all addresses with `*`. Returns the host
/// to connect to: for an interface its address, otherwise the given host.
pub(super) async fn bind(host: &str, port: u16) -> io::Result<(TcpListener, String)> {
    if host == "*" {
        return Ok((bind_all(port)?, host.to_owned()));
    }
    let on_interface = if host.parse::<IpAddr>().is_ok() { Vec::new() } else { interfaces::addresses(host, port)? };
    let Some(address) = on_interface.first() else {
        return Ok((bind_host(host, port).await?, host.to_owned()));
    };
    Ok((TcpListener::bind(address).await?, interfaces::host(*address, host)))
}

async fn bind_host(host: &str, port: u16) -> io::Result<TcpListener> {
    let addresses: Vec<_> = match lookup_host((host, port)).await {
        Ok(addresses) => addresses.collect(),
        Err(error) => {
            let text = format!("{}, and no known name ({error})", interfaces::unknown(host)?);
            return Err(io::Error::new(error.kind(), text));
        }
    };
    TcpListener::bind(&addresses[..]).await
}

/// Binds to all addresses of the machine: IPv6 and IPv4, or only IPv4 if there is no IPv6.
fn bind_all(port: u16) -> io::Result<TcpListener> {
    let both = listen_on(Domain::IPV6, SocketAddr::from((Ipv6Addr::UNSPECIFIED, port)));
    match both {
        Err(error) if error.kind() != io::ErrorKind::AddrInUse => {
            listen_on(Domain::IPV4, SocketAddr::from((Ipv4Addr::UNSPECIFIED, port)))
        }
        both => both,
    }
}

fn listen_on(domain: Domain, address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(domain, Type::STREAM, Some(Protocol::TCP))?;
    if domain == Domain::IPV6 {
        socket.set_only_v6(false)?;
    }
    // Connections that have ended must not keep the port from a new listener. tokio sets the same
    // option.
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(ACCEPT_QUEUE)?;
    TcpListener::from_std(socket.into())
}
