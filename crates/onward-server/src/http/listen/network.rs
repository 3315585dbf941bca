//! Networks of trusted proxies, and the address of the client behind them.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use axum::http::HeaderMap;

/// The header in which each proxy adds the address of its client at the end.
const FORWARDED_FOR: &str = "x-forwarded-for";

/// A network of addresses: `10.0.0.5`, `10.0.0.0/8` or `fd00::/8`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    bits: u32,
}

impl Network {
    /// Returns true if an address is in the network. An IPv4 address that arrives on a socket of
    /// IPv6 counts as IPv4.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.address, address.to_canonical()) {
            (IpAddr::V4(network), IpAddr::V4(address)) => {
                differ_from(u128::from(network.to_bits() ^ address.to_bits()), 32 - self.bits)
            }
            (IpAddr::V6(network), IpAddr::V6(address)) => {
                differ_from(network.to_bits() ^ address.to_bits(), 128 - self.bits)
            }
            _ => false,
        }
    }
}

/// Returns true if two addresses, given by their difference, differ in their last bits only.
fn differ_from(difference: u128, bits: u32) -> bool {
    difference.checked_shr(bits).unwrap_or(0) == 0
}

impl FromStr for Network {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is no network; write it as 10.0.0.5, 10.0.0.0/8 or fd00::/8");
        let (address, bits) = text.split_once('/').map_or((text, None), |(address, bits)| (address, Some(bits)));
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        if address.to_canonical() != address {
            return Err(format!("`{text}` is IPv4 in IPv6; write the IPv4 address"));
        }
        let most = if address.is_ipv4() { 32 } else { 128 };
        let bits = bits.map_or(Ok(most), str::parse).map_err(|_| wrong())?;
        if bits > most {
            return Err(format!("`{text}` has {bits} bits of {most}; write at most /{most}"));
        }
        if bits == 0 {
            return Err(format!("`{text}` is every address, so everyone could claim to be a proxy; name your proxies"));
        }
        Ok(Self { address, bits })
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.bits)
    }
}

/// Returns true if an address is one of a trusted proxy.
pub(crate) fn is_proxy(proxies: &[Network], address: IpAddr) -> bool {
    proxies.iter().any(|network| network.contains(address))
}

/// Returns the address of the client of a request.
///
/// Each proxy adds the address of its own client at the end of `X-Forwarded-For`, so the list is
/// read from its end, as long as the address before is that of a trusted proxy. Anything further to
/// the left was written by the client and may be a lie.
pub(crate) fn client_address(proxies: &[Network], peer: IpAddr, headers: &HeaderMap) -> IpAddr {
    let peer = peer.to_canonical();
    if !is_proxy(proxies, peer) {
        return peer;
    }
    let lines = headers.get_all(FORWARDED_FOR).into_iter().filter_map(|line| line.to_str().ok());
    let hops: Vec<&str> = lines.flat_map(|line| line.split(',')).map(str::trim).collect();
    let mut client = peer;
    for hop in hops.into_iter().rev() {
        let Some(address) = parsed(hop) else { break };
        client = address;
        if !is_proxy(proxies, address) {
            break;
        }
    }
    client
}

/// Reads an address, which some proxies write with a port.
fn parsed(hop: &str) -> Option<IpAddr> {
    let address = hop.parse().ok().or_else(|| hop.parse().ok().map(|address: std::net::SocketAddr| address.ip()));
    address.map(|address| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn networks(texts: &[&str]) -> Vec<Network> {
        texts.iter().map(|text| text.parse().expect("it is a network")).collect()
    }

    #[test]
    fn a_network_contains_the_addresses_with_its_first_bits() {
        let proxies = networks(&["10.0.0.0/8", "192.0.2.7", "fd00::/8"]);
        for address in ["10.255.0.1", "192.0.2.7", "fd12::1", "::ffff:10.1.2.3"] {
            assert!(is_proxy(&proxies, address.parse().expect("an address")), "{address}");
        }
        for address in ["11.0.0.1", "192.0.2.8", "fe80::1", "::1"] {
            assert!(!is_proxy(&proxies, address.parse().expect("an address")), "{address}");
        }
    }

    #[test]
    fn wrong_networks_are_refused() {
        for text in [
            "",
            "proxy.example",
            "10.0.0.0/33",
            "::/129",
            "10.0.0.0/",
            "0.0.0.0/0",
            "::/0",
            "10.0.0.0/-1",
            "::ffff:10.0.0.0/104",
        ] {
            assert!(text.parse::<Network>().is_err(), "{text}");
        }
    }

    #[test]
    fn the_client_is_the_last_address_that_no_proxy_has() {
        let proxies = networks(&["10.0.0.0/8"]);
        let client = |peer: &str, forwarded: &[&str]| {
            let mut headers = HeaderMap::new();
            for line in forwarded {
                headers.append(FORWARDED_FOR, line.parse().expect("a header"));
            }
            client_address(&proxies, peer.parse().expect("an address"), &headers).to_string()
        };
        assert_eq!(client("198.51.100.1", &["203.0.113.9"]), "198.51.100.1", "only proxies are believed");
        assert_eq!(client("10.0.0.1", &[]), "10.0.0.1");
        assert_eq!(client("10.0.0.1", &["203.0.113.9"]), "203.0.113.9");
        assert_eq!(client("10.0.0.1", &["1.1.1.1, 203.0.113.9, 10.0.0.2"]), "203.0.113.9");
        assert_eq!(client("10.0.0.1", &["1.1.1.1", "203.0.113.9"]), "203.0.113.9");
        assert_eq!(client("10.0.0.1", &["203.0.113.9, unknown"]), "10.0.0.1");
        assert_eq!(client("10.0.0.1", &["[2001:db8::1]:443"]), "2001:db8::1");
    }
}
