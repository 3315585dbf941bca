//! Orchestrations: turns, messages, pauses.

mod end_with_turn;
pub(in crate::sqlite) mod messages;
mod pausing;
mod turn;
mod unstarted;
