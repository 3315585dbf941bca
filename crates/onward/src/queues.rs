//! The settings, the pauses and the statistics of queues.
//!
//! [`Engine::set_queue`](crate::Engine::set_queue) changes the settings of a queue, and
//! [`Engine::pause`](crate::Engine::pause) pauses it.

pub use onward_store::{PauseRecord, QueueDay, QueueMode, QueueRecord, QueueSettings, Scope, SetQueue};
