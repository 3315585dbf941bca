//! PostgreSQL servers that a test may stop, kill and restart, poolers in front of them, and network
//! connections that can be cut.

mod directory;
mod pooler;
mod server;
mod wire;

pub use pooler::Pooler;
pub use server::{Crash, Server};
pub use wire::Wire;
