//! Arguments of `onward serve`.

use std::net::SocketAddr;
use std::time::Duration;

use clap::Args;

use crate::values::parse_duration;

/// Arguments of `onward serve`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Address to listen on. It has to be a loopback address, because the server has no TLS; port 0
    /// takes a free port
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7070")]
    pub(super) listen: SocketAddr,
    /// Name by which clients may address the server, besides localhost, for a proxy on this
    /// machine; repeat for more
    #[arg(long, value_name = "NAME")]
    pub(super) host: Vec<String>,
    /// Path below which the server is reached, such as /onward, for a proxy that serves other
    /// programs too
    #[arg(long, value_name = "PATH", default_value = "", hide_default_value = true)]
    pub(super) base_path: String,
    /// Serve a store in memory with the traffic of a shop that does not exist, to look around
    #[arg(long, conflicts_with_all = ["store", "durability"])]
    pub(super) demo: bool,
    /// Time to let open requests end after a request to stop
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = parse_duration)]
    pub(super) stop_within: Duration,
}
