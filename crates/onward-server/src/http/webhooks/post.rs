//! A POST to an address of a webhook.

use std::net::{IpAddr, SocketAddr};

use axum::http::{Request, StatusCode, header};
use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

use super::address::is_public;
use crate::http::bounds;
use crate::http::outgoing::{Target, connect_tls};

/// Names and values of headers.
pub(super) type Headers<'a> = &'a [(&'a str, &'a str)];

/// The destination of a POST.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Destination<'a> {
    pub(crate) url: &'a str,
    /// True allows addresses of this machine and of private networks, and `http`.
    pub(crate) allows_private: bool,
}

/// The reason why nothing was sent, or why there is no response.
#[derive(Debug)]
pub(super) enum PostError {
    /// The destination is not allowed, so a retry does not help.
    Refused(String),
    /// The connection failed.
    Failed(String),
}

/// Checks a URL as far as that is possible without a look-up of its host. Returns the fault.
pub(crate) fn check_url(destination: Destination<'_>) -> Result<(), String> {
    let target = target(destination)?;
    match target.host.parse::<IpAddr>() {
        Ok(address) => check_address(destination, address),
        Err(_) => Ok(()),
    }
}

/// Sends a body and returns the status. It follows no redirect, and reads no body of the response.
pub(super) async fn post(
    destination: Destination<'_>,
    headers: Headers<'_>,
    body: Bytes,
) -> Result<StatusCode, PostError> {
    let sent = tokio::time::timeout(bounds::DELIVERY_TIME, post_now(destination, headers, body));
    sent.await.unwrap_or_else(|_| {
        Err(PostError::Failed(format!("the receiver did not respond within {:?}", bounds::DELIVERY_TIME)))
    })
}

async fn post_now(destination: Destination<'_>, headers: Headers<'_>, body: Bytes) -> Result<StatusCode, PostError> {
    let target = target(destination).map_err(PostError::Refused)?;
    let stream = connect(destination, &target).await?;
    if !target.is_tls {
        return exchange(stream, &target, headers, body).await;
    }
    let stream = connect_tls(&target.host, stream).await.map_err(PostError::Failed)?;
    exchange(stream, &target, headers, body).await
}

fn target(Destination { url, allows_private }: Destination<'_>) -> Result<Target, String> {
    Target::parse(url, allows_private)
}

fn check_address(destination: Destination<'_>, address: IpAddr) -> Result<(), String> {
    if destination.allows_private || is_public(address) {
        return Ok(());
    }
    Err(format!(
        "{address} is an address of this machine or of a private network; name a public one, or start the server \
         with --private-webhooks"
    ))
}

/// Connects to an address of the host. Each was checked, and the connection is to the address that
/// was checked: a second look-up could return another one.
async fn connect(destination: Destination<'_>, target: &Target) -> Result<TcpStream, PostError> {
    let found = tokio::net::lookup_host((target.host.as_str(), target.port)).await;
    let found: Vec<SocketAddr> = found.map_err(|error| failed("the host was not found", &error))?.collect();
    let mut last = PostError::Failed("the host has no address".to_owned());
    for address in found {
        if let Err(message) = check_address(destination, address.ip()) {
            last = PostError::Refused(message);
            continue;
        }
        match TcpStream::connect(address).await {
            Ok(stream) => return Ok(stream),
            Err(error) => last = failed("the connection failed", &error),
        }
    }
    Err(last)
}

async fn exchange<S>(stream: S, target: &Target, headers: Headers<'_>, body: Bytes) -> Result<StatusCode, PostError>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut builder = http1::Builder::new();
    builder.max_buf_size(bounds::HEAD_BYTES);
    let (mut sender, connection) =
        builder.handshake(TokioIo::new(stream)).await.map_err(|error| failed("the connection failed", &error))?;
    let connection = tokio::spawn(connection);
    let mut request = Request::post(&target.path)
        .header(header::HOST, &target.authority)
        .header(header::CONTENT_TYPE, "application/json")
        .header(header::USER_AGENT, concat!("onward/", env!("CARGO_PKG_VERSION")));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request.body(Full::new(body)).map_err(|error| PostError::Refused(error.to_string()))?;
    let response = sender.send_request(request).await;
    connection.abort();
    Ok(response.map_err(|error| failed("the receiver sent no response", &error))?.status())
}

fn failed(what: &str, error: &dyn std::error::Error) -> PostError {
    PostError::Failed(format!("{what}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_allowed(url: &str, allows_private: bool) -> bool {
        check_url(Destination { url, allows_private }).is_ok()
    }

    #[test]
    fn a_url_is_https_without_a_password_and_not_private() {
        for url in ["https://example.org", "https://example.org:8443/a?b=c", "https://1.1.1.1/"] {
            assert!(is_allowed(url, false), "{url}");
        }
        for url in [
            "http://example.org",
            "https://127.0.0.1/",
            "https://[::1]/",
            "https://169.254.169.254/latest",
            "https://user:password@example.org/",
            "file:///etc/passwd",
            "example.org",
            "",
            "https://",
            "https://[::ffff:10.0.0.1]/",
            "gopher://example.org",
        ] {
            assert!(!is_allowed(url, false), "{url}");
        }
    }

    #[test]
    fn private_addresses_are_allowed_on_request() {
        assert!(is_allowed("http://127.0.0.1:8080/hook", true) && is_allowed("https://[::1]/", true));
        assert!(!is_allowed("ftp://127.0.0.1/", true));
    }

    #[tokio::test]
    async fn the_address_behind_a_name_is_checked() {
        let destination = Destination { url: "https://localhost/", allows_private: false };
        let error = post(destination, &[], Bytes::new()).await.unwrap_err();
        assert!(matches!(&error, PostError::Refused(message) if message.contains("private")), "{error:?}");
    }
}
