//! The lines that a server prints when it listens.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context as _;
use onward_server::http::{Listener, Server};
use serde_json::json;

use super::arguments::Settings;
use crate::options::GlobalOptions;
use crate::output::{print_json, print_line, remark};

/// Prints the address, the link of the first admin and the key file.
pub(super) async fn announce(
    options: &GlobalOptions,
    settings: &Settings,
    server: &Arc<Server>,
    listener: &Listener,
) -> anyhow::Result<()> {
    let base = base(settings, listener)?;
    let link = server.first_admin_token().await?.map(|token| format!("{base}/v1/sign-in?token={token}"));
    let key_file: Option<PathBuf> = server.key_file().await;
    if options.json {
        print_json(&json!({ "listening": base, "link": link, "key_file": key_file }))?;
        return Ok(());
    }
    print_line(format_args!("listening on {base}"))?;
    if settings.host.is_empty() && !settings.listen.ip().is_loopback() {
        remark("requests for any name but localhost are refused; name this server with --host NAME");
    }
    if let Some(link) = link {
        print_line(format_args!(
            "open this link within 10 minutes, once, to sign in to the page as its first admin:\n{link}"
        ))?;
    }
    if let Some(path) = key_file {
        print_line(format_args!("key for this user: curl -H @{} {base}/v1/overview", path.display()))?;
    }
    Ok(())
}

/// Returns the address of the page. A server on every address is addressed by its first name.
fn base(settings: &Settings, listener: &Listener) -> anyhow::Result<String> {
    let address = listener.local_address().context("cannot read the address")?;
    let scheme = if settings.tls_cert.is_some() { "https" } else { "http" };
    let host = match settings.host.first() {
        Some(name) if address.ip().is_unspecified() => format!("{name}:{}", address.port()),
        _ => address.to_string(),
    };
    Ok(format!("{scheme}://{host}{}", settings.base_path))
}
