//! Opening, losing and closing connections.

mod addresses;
mod backoff;
mod cancellation;
mod heartbeats;
mod interfaces;
mod lifecycle;
mod option_checks;
mod reconnection;
mod refusals;
mod remote_peers;
mod runtimes;
mod security;
mod socks;
mod socks_failures;
mod transports;
