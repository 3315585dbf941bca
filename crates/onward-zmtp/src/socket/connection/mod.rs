//! One connection: opening and accepting it, its handshake, its traffic and its end.

pub(super) mod backoff;
mod batch_write;
mod cancellation;
pub(super) mod connector;
pub(super) mod driver;
mod idle_shrink;
mod incoming_batch;
pub(super) mod inproc;
pub(super) mod link;
pub(super) mod listener;
pub(super) mod pipe;
mod refusal;
pub(super) mod transport;
mod write_costs;
