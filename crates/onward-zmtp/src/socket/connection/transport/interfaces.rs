//! The network interfaces of this machine and their addresses.

use std::io;
use std::net::{IpAddr, SocketAddr, SocketAddrV6};

use if_addrs::Interface;

/// The number of interfaces that an error lists.
const LISTED: usize = 16;

/// Returns the addresses of an interface, those of IPv4 first, with this port. Returns none if
/// there is no such interface.
pub(super) fn addresses(name: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    // The list comes from the kernel, which does not wait for the network.
    let interfaces = if_addrs::get_if_addrs()?;
    let of_name = interfaces.iter().filter(|interface| interface.name == name);
    let mut addresses: Vec<_> = of_name.map(|interface| socket_address(interface, port)).collect();
    addresses.sort_by_key(SocketAddr::is_ipv6);
    Ok(addresses)
}

fn socket_address(interface: &Interface, port: u16) -> SocketAddr {
    match interface.ip() {
        IpAddr::V4(address) => (address, port).into(),
        IpAddr::V6(address) => {
            // A link-local address is unique only together with its interface.
            let scope = if interface.is_link_local() { interface.index.unwrap_or_default() } else { 0 };
            SocketAddrV6::new(address, port, 0, scope).into()
        }
    }
}

/// Returns the host part of an endpoint at which other sockets of this machine can reach the
/// address of an interface.
pub(super) fn host(address: SocketAddr, interface: &str) -> String {
    match address {
        SocketAddr::V6(v6) if v6.scope_id() != 0 => format!("{}%{interface}", v6.ip()),
        address => address.ip().to_string(),
    }
}

/// Returns the error for a name that is no interface.
pub(super) fn unknown(name: &str) -> io::Result<io::Error> {
    let mut names: Vec<_> = if_addrs::get_if_addrs()?.into_iter().map(|interface| interface.name).collect();
    names.sort_unstable();
    names.dedup();
    Ok(io::Error::new(io::ErrorKind::AddrNotAvailable, unknown_text(name, &names)))
}

fn unknown_text(name: &str, names: &[String]) -> String {
    let listed: Vec<_> = names.iter().take(LISTED).map(|name| format!("`{name}`")).collect();
    let more = names.len() - listed.len();
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("`{name}` is no interface with an address (there are {}{more})", listed.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_lists_the_first_interfaces() {
        let names = |count| (0..count).map(|number| format!("if{number}")).collect::<Vec<_>>();
        assert_eq!(unknown_text("eth9", &names(2)), "`eth9` is no interface with an address (there are `if0`, `if1`)");
        assert!(unknown_text("eth9", &names(LISTED + 3)).ends_with("`if15` and 3 more)"));
    }

    #[test]
    fn a_link_local_address_is_written_with_its_interface() {
        let address = |scope| SocketAddrV6::new("fe80::1".parse().unwrap(), 1, 0, scope).into();
        assert_eq!(host(address(2), "eth0"), "fe80::1%eth0");
        assert_eq!(host(address(0), "eth0"), "fe80::1");
    }
}
