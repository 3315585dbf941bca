//! Connections: address, encryption, rights, retries, and the meaning of the server's errors.

pub(super) mod check;
pub(super) mod connection;
pub(super) mod encryption;
pub(super) mod environment;
pub(super) mod error;
pub(super) mod options;
pub(super) mod pool;
pub(super) mod retry_budget;
pub(super) mod rights;
pub(super) mod server_clock;
