//! Listening: the port, TLS, trusted proxies, the bounds of connections, and the names of the
//! server.

mod connections;
mod file_state;
mod host;
mod listener;
mod network;
mod tls;

pub use host::{Protection, check_address};
pub(crate) use host::{check_host, check_host_of, loopback_port};
pub use listener::Listener;
pub use network::Network;
pub(crate) use network::client_address;
pub use tls::{Tls, TlsFiles};
