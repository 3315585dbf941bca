//! What a task is expected to move.

use clap::Args;
use onward_store::Io;

use crate::values::parse_size;

/// Bytes that one attempt is expected to move: a worker with a bandwidth counts them from its
/// start.
#[derive(Debug, Args)]
pub(super) struct IoOptions {
    /// How much an attempt is expected to read from disk, such as 64MiB
    #[arg(long, value_name = "SIZE", value_parser = parse_size, default_value = "0", hide_default_value = true)]
    io_read: u64,
    /// How much it is expected to write to disk
    #[arg(long, value_name = "SIZE", value_parser = parse_size, default_value = "0", hide_default_value = true)]
    io_write: u64,
    /// How much it is expected to receive from the network
    #[arg(long, value_name = "SIZE", value_parser = parse_size, default_value = "0", hide_default_value = true)]
    io_receive: u64,
    /// How much it is expected to send to the network
    #[arg(long, value_name = "SIZE", value_parser = parse_size, default_value = "0", hide_default_value = true)]
    io_send: u64,
}

impl IoOptions {
    pub(super) fn io(&self) -> Io {
        Io {
            disk_read: self.io_read,
            disk_written: self.io_write,
            network_received: self.io_receive,
            network_sent: self.io_send,
        }
    }
}
