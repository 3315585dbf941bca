//! Turns of orchestrations: the history that a worker reads, and the decisions that it returns.

mod data;
mod decisions;
mod event;

pub use data::Data;
pub use decisions::{Decision, NewChild, SignalSent, TurnEnd, TurnReply};
pub use event::{Event, TaskState, read_events};
