//! The address at which a server listens: an IP address and a port.

use std::net::SocketAddr;

/// Parses an address such as `127.0.0.1:7070` or `[::1]:7070`.
pub(crate) fn parse_address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| {
        format!(
            "`{text}` is not an IP address and a port from 0 to 65535; write it as 127.0.0.1:7070, [::1]:7070, or \
             0.0.0.0:7070 for every interface"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_a_port() {
        for text in ["127.0.0.1:7070", "[::1]:0", "0.0.0.0:65535"] {
            assert_eq!(parse_address(text).unwrap().to_string(), text);
        }
    }

    #[test]
    fn names_and_addresses_without_a_port_are_refused_with_the_form() {
        for text in ["", "localhost:7070", "127.0.0.1", ":7070", "7070", "127.0.0.1:65536"] {
            let error = parse_address(text).unwrap_err();
            assert!(error.contains(&format!("`{text}`")) && error.contains("127.0.0.1:7070"), "{error}");
        }
    }
}
