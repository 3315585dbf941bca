//! Listening: the port, the bounds of connections, and the names of the server.

mod connections;
mod host;
mod listener;

pub use host::check_address;
pub(crate) use host::{check_host, check_host_of, loopback_port};
pub use listener::Listener;
