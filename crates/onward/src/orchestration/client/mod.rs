//! Controls orchestrations from outside, and checks recorded histories.

mod check_program;
mod control;
mod fork;
mod query;
mod recorded_history;
mod send_update;
mod untyped;

pub use check_program::{check_files, check_main};
pub use control::OrchestrationStatus;
pub use recorded_history::{CheckFailure, RecordedHistory};
pub use send_update::UpdateReply;
