//! A POST to an address of a webhook.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, OnceLock};

use axum::http::{Request, StatusCode, Uri, header};
use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::address::is_public;
use crate::http::bounds;

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

/// The parts of a URL.
#[derive(Debug)]
struct Target {
    is_tls: bool,
    host: String,
    port: u16,
    path: String,
    /// The host and the port, as the header `Host` has them.
    authority: String,
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
    let name = ServerName::try_from(target.host.clone())
        .map_err(|_| PostError::Refused(format!("`{}` is no name of a server", target.host)))?;
    let connector = TlsConnector::from(tls()?);
    let stream = connector.connect(name, stream).await.map_err(|error| failed("TLS failed", &error))?;
    exchange(stream, &target, headers, body).await
}

fn target(Destination { url, allows_private }: Destination<'_>) -> Result<Target, String> {
    let uri: Uri = url.parse().map_err(|_| format!("`{url}` is no URL; write it as https://HOST/PATH"))?;
    let is_tls = match uri.scheme_str() {
        Some("https") => true,
        Some("http") if allows_private => false,
        _ => return Err(format!("`{url}` does not begin with https://; send events encrypted")),
    };
    let authority = uri.authority().ok_or_else(|| format!("`{url}` has no host"))?;
    if authority.as_str().contains('@') {
        return Err("the URL has a name or a password; the receiver knows the sender by the signature".to_owned());
    }
    let host = authority.host().trim_matches(['[', ']']).to_owned();
    let port = authority.port_u16().unwrap_or(if is_tls { 443 } else { 80 });
    let path = uri.path_and_query().map_or("/", |path| path.as_str()).to_owned();
    Ok(Target { is_tls, host, port, path, authority: authority.as_str().to_owned() })
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

/// Returns the configuration of TLS, with the authorities that the operating system trusts.
fn tls() -> Result<Arc<ClientConfig>, PostError> {
    static CONFIG: OnceLock<Arc<ClientConfig>> = OnceLock::new();
    if let Some(config) = CONFIG.get() {
        return Ok(Arc::clone(config));
    }
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| failed("TLS cannot be used", &error))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Arc::clone(CONFIG.get_or_init(|| Arc::new(config))))
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
