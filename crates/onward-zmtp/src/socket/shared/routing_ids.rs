//! The names by which a ROUTER addresses its peers.

use bytes::{BufMut, Bytes, BytesMut};

use super::state::Shared;
use crate::protocol::{self, SocketType};
use crate::socket::peers::peer_table::PeerTable;

impl Shared {
    /// Returns the name by which a ROUTER addresses a peer: the identity that the peer chose, or an
    /// unused one.
    pub(super) fn choose_routing_id(
        &self,
        peer_table: &PeerTable,
        id: u64,
        identity: Option<&protocol::Identity>,
    ) -> Bytes {
        match (self.socket_type, identity) {
            (SocketType::Router, Some(identity)) => identity.as_bytes().clone(),
            (SocketType::Router, None) => {
                let first = self.first_identity.wrapping_add(id as u32);
                // There are fewer peers than numbers, so one is free.
                let free = (0..=u32::MAX)
                    .map(|step| generated_routing_id(first.wrapping_add(step.wrapping_mul(IDENTITY_STEP))))
                    .find(|routing_id| peer_table.by_identity(routing_id).is_none());
                free.unwrap_or_default()
            }
            _ => Bytes::new(),
        }
    }
}

/// The step from a taken identity to the next candidate. It is odd, so that all numbers are tried.
const IDENTITY_STEP: u32 = 0x9E37_79B1;

/// Returns the identity that a ROUTER generates for a peer that chose none.
fn generated_routing_id(number: u32) -> Bytes {
    let mut routing_id = BytesMut::with_capacity(5);
    routing_id.put_u8(0);
    routing_id.put_u32(number);
    routing_id.freeze()
}
