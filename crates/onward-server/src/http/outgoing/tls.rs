//! TLS to other servers.

use std::sync::{Arc, OnceLock};

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// Returns the configuration of TLS, with the authorities that the operating system trusts.
fn client_tls() -> Result<Arc<ClientConfig>, String> {
    static CONFIG: OnceLock<Arc<ClientConfig>> = OnceLock::new();
    if let Some(config) = CONFIG.get() {
        return Ok(Arc::clone(config));
    }
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| format!("TLS cannot be used: {error}"))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Arc::clone(CONFIG.get_or_init(|| Arc::new(config))))
}

/// Makes the handshake with a server of a name.
///
/// # Errors
/// The fault, if the server has no certificate of that name from a trusted authority.
pub(crate) async fn connect_tls(host: &str, stream: TcpStream) -> Result<TlsStream<TcpStream>, String> {
    let name = ServerName::try_from(host.to_owned()).map_err(|_| format!("`{host}` is no name of a server"))?;
    let connector = TlsConnector::from(client_tls()?);
    connector.connect(name, stream).await.map_err(|error| format!("TLS failed: {error}"))
}
