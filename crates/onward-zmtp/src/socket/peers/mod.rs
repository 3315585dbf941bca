//! The peers of a socket.

pub(super) mod peer_table;
pub(super) mod per_peer_order;
pub(super) mod remote_peer;
