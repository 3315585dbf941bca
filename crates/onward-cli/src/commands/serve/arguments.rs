//! Arguments of `onward serve`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use onward_server::http::{Limits, Network, ServerOptions, TlsFiles};

use super::issuer::IssuerSettings;

use crate::exit_code::wrong_usage;
use crate::logging::LogFilter;
use crate::values::{parse_address, parse_duration};

/// The longest time that `--stop-within` and `--request-time` may give.
const LONGEST: Duration = Duration::from_secs(3600);

/// Arguments of `onward serve`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The settings.
    #[command(flatten)]
    pub(super) settings: Settings,
    /// Check the settings, the certificate and the store, and start nothing
    #[arg(long)]
    pub(super) check: bool,
}

/// The settings of the server. `onward.toml` may have each of them in its table `serve`.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub(crate) struct Settings {
    /// Address to listen on; port 0 takes a free port. Beyond loopback it needs TLS or
    /// --behind-proxy, and a key or an account
    #[arg(long, env = "ONWARD_LISTEN", value_name = "ADDRESS", default_value = "127.0.0.1:7070")]
    #[arg(value_parser = parse_address)]
    pub(super) listen: SocketAddr,
    /// Name by which clients may address the server, besides localhost; repeat for more
    #[arg(long, env = "ONWARD_HOST", value_name = "NAME", value_delimiter = ',')]
    pub(super) host: Vec<String>,
    /// Path below which the server is reached, such as /onward, for a proxy that serves other
    /// programs too
    #[arg(long, env = "ONWARD_BASE_PATH", value_name = "PATH", default_value = "", hide_default_value = true)]
    pub(super) base_path: String,
    /// Serve a store in memory with the traffic of a shop that does not exist, to look around
    #[arg(long, conflicts_with_all = ["store", "durability"])]
    pub(super) demo: bool,
    /// Address or network of a proxy whose X-Forwarded-For is believed, such as 10.0.0.5 or
    /// 10.0.0.0/8; repeat for more. Beyond loopback and without TLS only these may connect
    #[arg(long, env = "ONWARD_BEHIND_PROXY", value_name = "NETWORK", value_delimiter = ',')]
    pub(super) behind_proxy: Vec<Network>,
    /// Certificate in PEM, with those of its authorities behind it. A new one is taken over while
    /// the server runs
    #[arg(long, env = "ONWARD_TLS_CERT", value_name = "FILE")]
    pub(super) tls_cert: Option<PathBuf>,
    /// Private key of the certificate in PEM
    #[arg(long, env = "ONWARD_TLS_KEY", value_name = "FILE")]
    pub(super) tls_key: Option<PathBuf>,
    /// Allow webhooks to addresses of this machine and of private networks, and without TLS
    #[arg(
        long, env = "ONWARD_PRIVATE_WEBHOOKS", value_name = "BOOL", action = clap::ArgAction::Set, num_args = 0..=1,
        default_missing_value = "true", default_value = "false", hide_default_value = true, hide_possible_values = true
    )]
    pub(super) private_webhooks: bool,
    /// Allow tools of the Model Context Protocol at /mcp to submit, retry, cancel and signal, as
    /// far as the role of the caller does
    #[arg(
        long, env = "ONWARD_MCP_WRITES", value_name = "BOOL", action = clap::ArgAction::Set, num_args = 0..=1,
        default_missing_value = "true", default_value = "false", hide_default_value = true, hide_possible_values = true
    )]
    pub(super) mcp_writes: bool,
    /// The issuer of tokens.
    #[command(flatten)]
    pub(super) issuer: IssuerSettings,
    /// Time to let open requests end after a request to stop
    #[arg(
        long, env = "ONWARD_STOP_WITHIN", value_name = "DURATION", default_value = "30s", value_parser = parse_stop_within
    )]
    pub(super) stop_within: Duration,
    /// Filter of the log, such as info or onward=debug; default: that of --verbose
    #[arg(long, env = "ONWARD_LOG", value_name = "FILTER")]
    pub(super) log: Option<LogFilter>,
    /// Most connections in all
    #[arg(
        long, env = "ONWARD_CONNECTIONS", value_name = "NUMBER", default_value = "16384",
        value_parser = clap::value_parser!(u32).range(1..=16384)
    )]
    pub(super) connections: u32,
    /// Most connections from one client address; those of proxies are not counted
    #[arg(
        long, env = "ONWARD_CONNECTIONS_PER_ADDRESS", value_name = "NUMBER", default_value = "1024",
        value_parser = clap::value_parser!(u32).range(1..=1024)
    )]
    pub(super) connections_per_address: u32,
    /// Most event streams and long polls at once
    #[arg(
        long, env = "ONWARD_STREAMS", value_name = "NUMBER", default_value = "10000",
        value_parser = clap::value_parser!(u32).range(0..=10000)
    )]
    pub(super) streams: u32,
    /// Time within which the head of a request must arrive, then its body, and within which a
    /// request must end that neither waits nor streams
    #[arg(
        long, env = "ONWARD_REQUEST_TIME", value_name = "DURATION", default_value = "30s",
        value_parser = parse_request_time
    )]
    pub(super) request_time: Duration,
}

impl Settings {
    /// Returns the limits of the server.
    pub(super) fn limits(&self) -> Limits {
        let mut limits = Limits::default();
        limits.connections = self.connections as usize;
        limits.connections_per_address = self.connections_per_address as usize;
        limits.streams = self.streams as usize;
        limits.request_time = self.request_time;
        limits
    }

    /// Returns the options of the server, without the place of a key file.
    ///
    /// # Errors
    /// Wrong usage if a flag lacks another one, or if the file of a secret cannot be read.
    pub(super) fn options(&self) -> anyhow::Result<ServerOptions> {
        let mut options = ServerOptions::default();
        options.hosts.clone_from(&self.host);
        options.base_path.clone_from(&self.base_path);
        options.proxies.clone_from(&self.behind_proxy);
        options.private_webhooks = self.private_webhooks;
        options.mcp_writes = self.mcp_writes;
        options.limits = self.limits();
        options.issuer = self.issuer.options()?;
        Ok(options)
    }

    /// Returns the files of the certificate; `None` without TLS.
    ///
    /// # Errors
    /// Returns a usage error if one of the two is missing.
    pub(super) fn tls_files(&self) -> anyhow::Result<Option<TlsFiles>> {
        match (self.tls_cert.clone(), self.tls_key.clone()) {
            (Some(certificate), Some(key)) => Ok(Some(TlsFiles { certificate, key })),
            (None, None) => Ok(None),
            (Some(_), None) => Err(wrong_usage("--tls-cert has no key; give its private key with --tls-key")),
            (None, Some(_)) => Err(wrong_usage("--tls-key has no certificate; give it with --tls-cert")),
        }
    }
}

fn parse_stop_within(text: &str) -> Result<Duration, String> {
    in_range(text, Duration::ZERO)
}

fn parse_request_time(text: &str) -> Result<Duration, String> {
    in_range(text, Duration::from_secs(1))
}

fn in_range(text: &str, least: Duration) -> Result<Duration, String> {
    let time = parse_duration(text)?;
    if (least..=LONGEST).contains(&time) {
        return Ok(time);
    }
    Err(format!("`{text}` is out of range; give {least:?} to {LONGEST:?}"))
}
