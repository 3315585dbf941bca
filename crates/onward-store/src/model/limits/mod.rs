//! Limits: how many tasks may run at once, how fast they may start, and how groups share queues.

pub(super) mod fair_share;
pub(super) mod headroom;
pub(super) mod limit;
pub(super) mod running;
