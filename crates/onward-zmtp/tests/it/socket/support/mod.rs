//! Support for the tests: waits for events, a peer of hand-made bytes, and a SOCKS proxy.

pub(super) mod events;
pub(super) mod raw;
pub(super) mod socks;
