//! One connection: opening and accepting it, its handshake, its traffic and its end.

mod backoff;
mod batch_write;
mod cancellation;
pub(super) mod connector;
mod driver;
mod idle_shrink;
pub(super) mod inbox;
mod incoming_batch;
pub(super) mod inproc;
mod link;
pub(super) mod listener;
pub(super) mod pipe;
pub(super) mod queue_items;
mod refusal;
pub(super) mod transport;
mod write_costs;
