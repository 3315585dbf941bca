//! Orchestrations: tasks with turns, a history and a mailbox.

pub mod child_reports;
pub mod orchestration_ends;
pub mod orchestration_pauses;
pub mod orchestration_tags;
pub mod orchestration_turns;
pub mod turns_with_ends;
