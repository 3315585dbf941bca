//! Queues, their high-water marks, and what happens to waiting messages.

mod budget;
mod idle_memory;
mod loss;
mod memory;
mod quiet_peers;
mod quotas;
mod unread_backlog;
