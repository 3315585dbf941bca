//! The I/O that a task is expected to cause.

use clap::Args;
use onward_store::Io;

use crate::values::parse_size;

/// The bytes that one attempt is expected to move. A worker with a bandwidth counts them from the
/// start of the attempt.
#[derive(Debug, Args)]
pub(super) struct IoOptions {
    /// Bytes that an attempt is expected to read from disk, such as 64MiB
    #[arg(long, value_name = "SIZE", value_parser = parse_size, default_value = "0", hide_default_value = true)]
    io_read: u64,
    /// Bytes that it is expected to write to disk
    #[arg(long, value_name = "SIZE", value_parser = parse_size, default_value = "0", hide_default_value = true)]
    io_write: u64,
    /// Bytes that it is expected to receive from the network
    #[arg(long, value_name = "SIZE", value_parser = parse_size, default_value = "0", hide_default_value = true)]
    io_receive: u64,
    /// Bytes that it is expected to send to the network
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
