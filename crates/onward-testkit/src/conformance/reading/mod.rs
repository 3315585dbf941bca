//! Reads, events and notifications, and stores that are opened again.

pub mod events;
pub mod history;
pub mod notifications;
pub mod reads;
pub mod reopen;
