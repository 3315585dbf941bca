//! Operations of people and programs on tasks and queues.

mod bulk;
mod external_completion;
mod pause;
mod queues;
mod retention;
mod tasks;

pub use bulk::BulkSummary;
pub use external_completion::Moved;
pub(crate) use retention::{OwnRetentions, Retention};
pub use tasks::Cancellation;
