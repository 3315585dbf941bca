//! Connections: address, encryption, rights, and what an error of the server means.

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
