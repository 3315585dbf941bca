//! The addresses from which a socket accepts connections.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;

use crate::socket::error::{Error, Result};

/// A range of IP addresses: `192.0.2.0/24`, `2001:db8::/32`, or a single one, `192.0.2.7`.
///
/// ```
/// use onward_zmtp::socket::{AddressRange, SocketOptions};
///
/// let options =
///     SocketOptions::new().allow_from("127.0.0.0/8".parse()?).allow_from("::1".parse()?);
/// # Ok::<(), onward_zmtp::socket::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AddressRange {
    address: IpAddr,
    /// The number of leading bits that must match.
    bits: u32,
}

impl AddressRange {
    /// Returns true if the address is in the range. An IPv4 address written as an IPv6 address
    /// counts as the same address.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.address, address.to_canonical()) {
            (IpAddr::V4(ours), IpAddr::V4(other)) => {
                is_same_prefix(ours.to_bits().into(), other.to_bits().into(), 32, self.bits)
            }
            (IpAddr::V6(ours), IpAddr::V6(other)) => {
                is_same_prefix(ours.to_bits(), other.to_bits(), Ipv6Addr::BITS, self.bits)
            }
            _ => false,
        }
    }
}

/// Returns true if the first `bits` of two numbers of `width` bits are equal.
fn is_same_prefix(one: u128, other: u128, width: u32, bits: u32) -> bool {
    (one ^ other).checked_shr(width - bits).unwrap_or(0) == 0
}

impl FromStr for AddressRange {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let wrong =
            || Error::endpoint(format!("`{text}` is no range of addresses; write `192.0.2.0/24` or `2001:db8::/32`"));
        let (address, bits) = text.split_once('/').map_or((text, None), |(address, bits)| (address, Some(bits)));
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let width = if address.is_ipv4() { 32 } else { Ipv6Addr::BITS };
        let bits = bits.map_or(Ok(width), str::parse).map_err(|_| wrong())?;
        if bits > width { Err(wrong()) } else { Ok(Self { address, bits }) }
    }
}

impl fmt::Display for AddressRange {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.address, self.bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contains(range: &str, address: &str) -> bool {
        range.parse::<AddressRange>().unwrap().contains(address.parse().unwrap())
    }

    #[test]
    fn a_range_has_the_addresses_with_its_first_bits() {
        assert!(contains("192.0.2.0/24", "192.0.2.255") && !contains("192.0.2.0/24", "192.0.3.0"));
        assert!(contains("192.0.2.7", "192.0.2.7") && !contains("192.0.2.7", "192.0.2.6"));
        assert!(contains("2001:db8::/32", "2001:db8:1::1") && !contains("2001:db8::/32", "2001:db9::1"));
        assert!(contains("0.0.0.0/0", "203.0.113.1") && contains("::/0", "::1"));
        assert!(contains("127.0.0.0/8", "::ffff:127.0.0.1") && !contains("::/0", "127.0.0.1"));
    }

    #[test]
    fn what_is_no_range_is_refused() {
        for text in ["", "name", "192.0.2.0/33", "::1/129", "192.0.2.0/", "192.0.2.0/-1", "/8"] {
            let error = text.parse::<AddressRange>().unwrap_err();
            assert!(error.is_endpoint() && error.to_string().contains("192.0.2.0/24"), "{error}");
        }
    }
}
