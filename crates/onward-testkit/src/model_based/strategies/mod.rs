//! Strategies that generate sequences.

mod documents;
mod orchestrations;
mod schedules;
mod sequences;

pub use sequences::sequences;
pub(super) use sequences::sequences_with_orchestrations;
