//! Limits: the number of running tasks, the rate of starts, and the shares of groups in queues.

pub(super) mod fair_share;
pub(super) mod headroom;
pub(super) mod limit;
pub(super) mod running;
