//! The bounded queues between a socket and its connections.

pub(super) mod bounded_queue;
pub(super) mod items;
#[cfg(all(test, onward_loom))]
mod models;
pub(super) mod quota;
pub(super) mod unread_backlog;
