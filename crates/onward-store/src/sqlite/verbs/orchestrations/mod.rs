//! Orchestrations: turns, messages, pauses.

pub(in crate::sqlite) mod messages;
mod pausing;
mod turn;
mod unstarted;
