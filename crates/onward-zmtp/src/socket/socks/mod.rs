//! Connections through a SOCKS 5 proxy.

pub(super) mod handshake;
pub(super) mod options;
pub(super) mod tunnel;
