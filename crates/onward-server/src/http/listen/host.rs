//! The names by which clients address a server.

use std::net::{IpAddr, SocketAddr};

use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, Uri, header};
use onward_store::Error;

use crate::http::problem::{Code, Problem};
use crate::http::request::Call;
use crate::http::server::ServerOptions;

/// The protection of the connections of a listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Protection {
    /// True if the listener has TLS.
    pub has_tls: bool,
    /// True if trusted proxies are named, and other clients are refused.
    pub has_proxies: bool,
    /// True if people or programs can sign in: the store has an active key or account.
    pub has_sign_in: bool,
}

/// Checks that a server may listen on an address.
///
/// # Errors
/// Returns an error ([`is_invalid`](Error::is_invalid)) for an address beyond loopback without
/// protection. The listener needs TLS or trusted proxies, so that no key can be read on the way,
/// and the store needs a key or an account. The message names each missing part.
pub fn check_address(address: SocketAddr, protection: Protection) -> Result<(), Error> {
    if address.ip().is_loopback() {
        return Ok(());
    }
    let mut missing = Vec::new();
    if !protection.has_tls && !protection.has_proxies {
        missing.push((
            "TLS is missing, so that keys could be read on the way",
            "give --tls-cert and --tls-key, or name the proxies with TLS with --behind-proxy",
        ));
    }
    if !protection.has_sign_in {
        missing.push((
            "sign-in is missing, because the store has no key and no account",
            "make an account with `onward account create NAME --role admin`, or a key with `onward key create`",
        ));
    }
    if missing.is_empty() {
        return Ok(());
    }
    let (faults, remedies): (Vec<_>, Vec<_>) = missing.into_iter().unzip();
    let (faults, remedies) = (faults.join(", and "), remedies.join(", and "));
    Err(Error::invalid(format!("the address {address} is beyond loopback, and {faults}; {remedies}")))
}

/// Checks the `Host` of a request on a path without a credential.
pub(crate) fn check_host_of(call: &Call) -> Result<(), Problem> {
    check(&call.server.options, &Method::GET, &call.uri, &call.headers)
}

/// Checks the `Host` and the `Origin` of a request.
pub(crate) fn check_host(options: &ServerOptions, parts: &Parts) -> Result<(), Problem> {
    check(options, &parts.method, &parts.uri, &parts.headers)
}

fn check(options: &ServerOptions, method: &Method, uri: &Uri, headers: &HeaderMap) -> Result<(), Problem> {
    let host = text(headers, &header::HOST).or_else(|| uri.authority().map(|it| it.as_str()));
    let host = host.unwrap_or_default();
    if !is_known(options, host) {
        let remedy = "use localhost, or start the server with `--host NAME`";
        return Err(Problem::new(Code::HostUnknown, format!("this server is not `{host}`"), remedy).field("Host"));
    }
    match text(headers, &header::ORIGIN) {
        Some(origin) if method != Method::GET && !is_same(origin, host) => Err(Problem::new(
            Code::OriginRefused,
            format!("a page of {origin} may not change anything here"),
            "make the request from a page of this server, or from a program",
        )
        .field("Origin")),
        _ => Ok(()),
    }
}

fn text<'h>(headers: &'h HeaderMap, name: &header::HeaderName) -> Option<&'h str> {
    headers.get(name).map(|value| value.to_str().unwrap_or("?"))
}

/// Returns true if an origin has the host of the request.
fn is_same(origin: &str, host: &str) -> bool {
    origin.split_once("://").is_some_and(|(_, rest)| rest.eq_ignore_ascii_case(host))
}

/// Returns the port in the `Host` of a request if the host is this machine. Default: 80.
pub(crate) fn loopback_port(headers: &HeaderMap) -> Option<&str> {
    let host = text(headers, &header::HOST).unwrap_or_default();
    let name = without_port(host);
    let port = host.strip_prefix(name).and_then(|rest| rest.strip_prefix(':'));
    is_loopback(name).then(|| port.unwrap_or("80"))
}

fn is_loopback(name: &str) -> bool {
    name.eq_ignore_ascii_case("localhost")
        || name.trim_matches(['[', ']']).parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

fn is_known(options: &ServerOptions, host: &str) -> bool {
    let name = without_port(host);
    is_loopback(name) || options.hosts.iter().any(|known| known.eq_ignore_ascii_case(name))
}

fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) && !name.ends_with(':') => name,
        _ => host,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_and_given_names_are_known() {
        let options = ServerOptions { hosts: vec!["work.example".to_owned()], ..ServerOptions::default() };
        for host in ["localhost", "LOCALHOST:7070", "127.0.0.1:7070", "[::1]:7070", "[::1]", "work.example:80"] {
            assert!(is_known(&options, host), "{host}");
        }
        for host in ["", "example.org", "localhost.example.org", "192.0.2.1:7070", "127.0.0.1.example.org", "?"] {
            assert!(!is_known(&options, host), "{host}");
        }
    }

    #[test]
    fn an_address_beyond_loopback_needs_sign_in_and_protection() {
        let protection = |has_tls, has_proxies, has_sign_in| Protection { has_tls, has_proxies, has_sign_in };
        let check = |address: &str, protection| check_address(address.parse().unwrap(), protection);
        for address in ["127.0.0.1:7070", "[::1]:7070"] {
            assert!(check(address, protection(false, false, false)).is_ok(), "{address}");
        }
        let error = |protection| check("0.0.0.0:7070", protection).unwrap_err().to_string();
        let both = error(protection(false, false, false));
        assert!(both.contains("TLS is missing") && both.contains("sign-in is missing"), "{both}");
        let tls = error(protection(false, false, true));
        assert!(tls.contains("TLS is missing") && !tls.contains("sign-in"), "{tls}");
        let sign_in = error(protection(true, false, false));
        assert!(sign_in.contains("sign-in is missing") && !sign_in.contains("TLS"), "{sign_in}");
        assert!(check("[::]:7070", protection(true, false, true)).is_ok());
        assert!(check("192.0.2.1:7070", protection(false, true, true)).is_ok());
    }
}
