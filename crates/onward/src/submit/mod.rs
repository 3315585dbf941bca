//! Submits tasks and waits for their results.

mod children;
mod dependency_order;
mod handle;
mod recent_ends;
mod submission;
mod submit_task;
pub(crate) mod typed;
mod wait;

pub(crate) use children::Spawned;
pub(crate) use dependency_order::submit_in_order;
pub use handle::{Handle, TaskError};
pub use submission::Submission;
pub(crate) use submission::submit_described;
pub use typed::Task;
pub(crate) use typed::{decode_output, encode_output, encode_result, new_task};
pub(crate) use wait::Waiters;
