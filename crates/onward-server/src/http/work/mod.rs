//! Workers that reach the gateway over HTTP: each has a stream, whose bytes travel in requests.

mod connections;
mod tunnel;

pub(crate) use connections::WorkConnections;
pub(crate) use tunnel::{Tunnel, TunnelError};
