//! PostgreSQL servers that a test may stop, kill and start again, the poolers before them, and
//! wires between that can be cut.

mod directory;
mod pooler;
mod server;
mod wire;

pub use pooler::Pooler;
pub use server::{Crash, Server};
pub use wire::Wire;
