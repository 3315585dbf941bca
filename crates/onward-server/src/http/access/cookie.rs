//! The cookies of a session, and of a sign-in in progress.

use axum::http::{HeaderMap, header};

use crate::http::bounds;
use crate::http::listen::loopback_port;

/// The cookie of a session.
const SESSION: &str = "onward-session";

/// The cookie of a sign-in at the issuer that is in progress.
const SIGN_IN: &str = "onward-sign-in";

/// Returns the name of a cookie for the host of a request.
///
/// Browsers share cookies among the ports of one host, so on loopback the name has the port: two
/// servers on one machine do not sign each other's users out. Any other host is behind a proxy
/// with TLS, where the prefix `__Host-` binds the cookie to host and TLS.
fn name(cookie: &str, headers: &HeaderMap) -> String {
    match loopback_port(headers) {
        Some(port) => format!("{cookie}-{port}"),
        None => format!("__Host-{cookie}"),
    }
}

/// Returns the secret in the cookie of a request.
pub(crate) fn read(headers: &HeaderMap) -> Option<&str> {
    read_named(SESSION, headers)
}

/// Returns the sign-in in progress in the cookie of a request.
pub(crate) fn read_sign_in(headers: &HeaderMap) -> Option<&str> {
    read_named(SIGN_IN, headers)
}

fn read_named<'h>(cookie: &str, headers: &'h HeaderMap) -> Option<&'h str> {
    let name = name(cookie, headers);
    let lines = headers.get_all(header::COOKIE).into_iter().filter_map(|line| line.to_str().ok());
    let pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.filter(|(key, _)| *key == name).map(|(_, value)| value).next()
}

/// Returns the header that sets the cookie.
pub(crate) fn set(headers: &HeaderMap, secret: &str) -> String {
    written(headers, secret, bounds::SESSION_TIME.as_secs())
}

/// Returns the header that sets the cookie of a sign-in in progress. The browser sends it when the
/// issuer sends the person back, which is a request from another site.
pub(crate) fn set_sign_in(headers: &HeaderMap, text: &str) -> String {
    let (name, secure, seconds) = (name(SIGN_IN, headers), secure(headers), bounds::OIDC_TIME.as_secs());
    format!("{name}={text}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Lax{secure}")
}

/// Returns the header that removes the cookie of a sign-in in progress.
pub(crate) fn remove_sign_in(headers: &HeaderMap) -> String {
    let (name, secure) = (name(SIGN_IN, headers), secure(headers));
    format!("{name}=; Path=/; Max-Age=0; HttpOnly; SameSite=Lax{secure}")
}

/// Returns the header that removes the cookie.
pub(crate) fn remove(headers: &HeaderMap) -> String {
    written(headers, "", 0)
}

fn written(headers: &HeaderMap, secret: &str, seconds: u64) -> String {
    let (name, secure) = (name(SESSION, headers), secure(headers));
    format!("{name}={secret}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}")
}

fn secure(headers: &HeaderMap) -> &'static str {
    if loopback_port(headers).is_some() { "" } else { "; Secure" }
}
