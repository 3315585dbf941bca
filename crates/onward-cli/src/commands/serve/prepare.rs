//! The conditions under which a server may start.

use std::sync::Arc;

use onward_server::http::{Protection, Tls, check_address, has_sign_in};
use onward_store::Store;

use super::arguments::Settings;

/// Reads the certificate.
///
/// # Errors
/// Returns a usage error if one of the two files is missing, or if they cannot be used.
pub(super) fn open_tls(settings: &Settings, clock: Arc<dyn onward_store::Clock>) -> anyhow::Result<Option<Arc<Tls>>> {
    let Some(files) = settings.tls_files()? else { return Ok(None) };
    Ok(Some(Arc::new(Tls::open(files, clock)?)))
}

/// Checks that the server may listen on its address.
///
/// # Errors
/// Returns a usage error if it is beyond loopback and unprotected, and the error of the store if it
/// could not be read.
pub(super) async fn check_protection(settings: &Settings, store: Option<&Arc<dyn Store>>) -> anyhow::Result<()> {
    let has_sign_in = match store {
        _ if settings.issuer.is_set() => true,
        Some(store) => has_sign_in(store).await?,
        None => false,
    };
    let has_tls = settings.tls_cert.is_some();
    let has_proxies = !settings.behind_proxy.is_empty();
    check_address(settings.listen, Protection { has_tls, has_proxies, has_sign_in })?;
    Ok(())
}
