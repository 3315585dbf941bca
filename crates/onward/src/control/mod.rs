//! Operations of people and programs on tasks and queues.

mod bulk;
mod dead_letters;
mod external_completion;
mod pause;
mod queues;
mod retention;
mod tasks;

pub use bulk::BulkSummary;
pub use dead_letters::{DeadCause, DeadCauses};
pub use external_completion::Moved;
pub(crate) use retention::{OwnRetentions, Retention};
pub use tasks::Cancellation;
