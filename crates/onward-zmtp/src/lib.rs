//! A fair queue over many sources, and ZeroMQ-compatible sockets.

pub mod protocol;
