//! Orchestrations: turns, and the messages that arrive between them.

pub(super) mod end_with_turn;
pub(super) mod instance;
pub(super) mod messages;
pub(super) mod pause;
pub(super) mod turn;
pub(super) mod unstarted;
