//! Control of tasks and queues from outside: cancelling, pausing, moving, bulk changes, retention.

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
