//! Support for the tests: waits for events, and a peer of hand-made bytes.

pub(super) mod events;
pub(super) mod raw;
