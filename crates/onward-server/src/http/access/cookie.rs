//! The cookie of a session.

use axum::http::{HeaderMap, header};

use crate::http::bounds;
use crate::http::listen::loopback_port;

/// Returns the name of the cookie for the host of a request.
///
/// Browsers share cookies among the ports of one host, so on loopback the name has the port: two
/// servers on one machine do not sign each other's users out. Any other host is behind a proxy
/// with TLS, where the prefix `__Host-` binds the cookie to host and TLS.
fn name(headers: &HeaderMap) -> String {
    match loopback_port(headers) {
        Some(port) => format!("onward-session-{port}"),
        None => "__Host-onward-session".to_owned(),
    }
}

/// Returns the secret in the cookie of a request.
pub(crate) fn read(headers: &HeaderMap) -> Option<&str> {
    let name = name(headers);
    let lines = headers.get_all(header::COOKIE).into_iter().filter_map(|line| line.to_str().ok());
    let pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.filter(|(key, _)| *key == name).map(|(_, value)| value).next()
}

/// Returns the header that sets the cookie.
pub(crate) fn set(headers: &HeaderMap, secret: &str) -> String {
    written(headers, secret, bounds::SESSION_TIME.as_secs())
}

/// Returns the header that removes the cookie.
pub(crate) fn remove(headers: &HeaderMap) -> String {
    written(headers, "", 0)
}

fn written(headers: &HeaderMap, secret: &str, seconds: u64) -> String {
    let secure = if loopback_port(headers).is_some() { "" } else { "; Secure" };
    let name = name(headers);
    format!("{name}={secret}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}")
}
