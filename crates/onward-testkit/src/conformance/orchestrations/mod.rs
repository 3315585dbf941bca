//! Orchestrations: tasks with turns, a history and a mailbox.

pub mod orchestration_ends;
pub mod orchestration_pauses;
pub mod orchestration_tags;
pub mod orchestration_turns;
