//! Reading the settings again, at SIGHUP.

use std::sync::Arc;

use onward_server::http::{Server, Tls};

use super::arguments::Settings;
use crate::arguments::Command;
use crate::logging;
use crate::output::remark;
use crate::settings::parse_again;

/// Reads the settings and the certificate again. A setting that is wrong leaves all of them as they
/// were, and so does a certificate that cannot be used.
pub(super) fn reload(server: &Arc<Server>, tls: Option<&Arc<Tls>>, present: &mut Settings) {
    match read() {
        Ok((settings, verbose)) => {
            server.set_limits(settings.limits());
            logging::set(settings.log.as_ref(), verbose);
            remark(format_args!("settings read again{}", left_out(present, &settings)));
            present.clone_from(&taken_over(present, settings));
        }
        Err(error) => remark(format_args!("the settings stay as they were: {error:#}")),
    }
    if let Some(Err(error)) = tls.map(|tls| tls.reload()) {
        remark(format_args!("the certificate stays as it was: {error}"));
    }
}

fn read() -> anyhow::Result<(Settings, u8)> {
    let parsed = parse_again()?;
    match parsed.arguments.command {
        Command::Serve(arguments) => Ok((arguments.settings, parsed.arguments.options.verbose)),
        _ => Err(anyhow::anyhow!("the command line is that of another command")),
    }
}

/// Returns the settings in force: the new ones, except those that need a restart.
fn taken_over(present: &Settings, new: Settings) -> Settings {
    Settings {
        log: new.log,
        connections: new.connections,
        connections_per_address: new.connections_per_address,
        streams: new.streams,
        request_time: new.request_time,
        ..present.clone()
    }
}

/// Returns a text that names the settings that have changed and need a restart.
fn left_out(present: &Settings, new: &Settings) -> String {
    let changed = [
        ("listen", present.listen != new.listen),
        ("host", present.host != new.host),
        ("base-path", present.base_path != new.base_path),
        ("behind-proxy", present.behind_proxy != new.behind_proxy),
        ("tls-cert", present.tls_cert != new.tls_cert),
        ("tls-key", present.tls_key != new.tls_key),
        ("private-webhooks", present.private_webhooks != new.private_webhooks),
        ("mcp-writes", present.mcp_writes != new.mcp_writes),
        ("issuer", present.issuer != new.issuer),
        ("stop-within", present.stop_within != new.stop_within),
    ];
    let names: Vec<_> = changed.iter().filter(|(_, is_changed)| *is_changed).map(|(name, _)| *name).collect();
    if names.is_empty() { String::new() } else { format!("; {} need a restart", names.join(", ")) }
}
