//! The parts of a URL.

use std::net::IpAddr;

use axum::http::Uri;

/// The parts of a URL of another server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) is_tls: bool,
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) path: String,
    /// The host and the port, as the header `Host` has them.
    pub(crate) authority: String,
}

impl Target {
    /// Reads a URL. `allows_plain` allows `http`.
    ///
    /// # Errors
    /// The fault and its remedy, if it is no such URL.
    pub(crate) fn parse(url: &str, allows_plain: bool) -> Result<Self, String> {
        let uri: Uri = url.parse().map_err(|_| format!("`{url}` is no URL; write it as https://HOST/PATH"))?;
        let is_tls = match uri.scheme_str() {
            Some("https") => true,
            Some("http") if allows_plain => false,
            _ => return Err(format!("`{url}` does not begin with https://; use a server with TLS")),
        };
        let authority = uri.authority().ok_or_else(|| format!("`{url}` has no host; write it as https://HOST/PATH"))?;
        if authority.as_str().contains('@') {
            return Err("the URL has a name or a password; leave both out".to_owned());
        }
        let host = authority.host().trim_matches(['[', ']']).to_owned();
        let port = authority.port_u16().unwrap_or(if is_tls { 443 } else { 80 });
        let path = uri.path_and_query().map_or("/", |path| path.as_str()).to_owned();
        Ok(Self { is_tls, host, port, path, authority: authority.as_str().to_owned() })
    }

    /// Reads a URL that has TLS, unless its host is this machine.
    ///
    /// # Errors
    /// The fault and its remedy, if it is no such URL.
    pub(crate) fn parse_trusted(url: &str) -> Result<Self, String> {
        let target = Self::parse(url, true)?;
        if target.is_tls || target.is_loopback() {
            return Ok(target);
        }
        Self::parse(url, false)
    }

    fn is_loopback(&self) -> bool {
        self.host.eq_ignore_ascii_case("localhost")
            || self.host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trusted_url_has_tls_beyond_this_machine() {
        for url in ["https://id.example/realm", "http://127.0.0.1:9000/", "http://localhost", "http://[::1]:80/a"] {
            assert!(Target::parse_trusted(url).is_ok(), "{url}");
        }
        for url in ["http://id.example", "ftp://localhost", "https://", "id.example", "https://a:b@id.example", ""] {
            assert!(Target::parse_trusted(url).is_err(), "{url}");
        }
    }
}
