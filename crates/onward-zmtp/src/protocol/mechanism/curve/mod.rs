//! CURVE (RFC 26): authentication with long-term keys, and encryption of the traffic.

mod boxes;
pub(super) mod cipher;
pub(super) mod client;
pub(super) mod keys;
#[cfg(test)]
#[cfg(not(miri))]
mod multiplications;
pub(super) mod server;
mod z85;
