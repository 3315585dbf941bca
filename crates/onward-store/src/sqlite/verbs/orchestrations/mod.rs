//! Orchestrations: turns, messages, pauses.

pub(in crate::sqlite) mod messages;
pub(in crate::sqlite) mod pausing;
pub(in crate::sqlite) mod turn;
pub(in crate::sqlite) mod unstarted;
