//! The memory store: the [model](crate::model) behind the storage interface.
//!
//! One lock guards the state. A call takes it, sets the time, applies its writes and publishes
//! hints and notifications, so its writes are atomic as those of a database transaction are.
//! Nothing outlives the process.

mod store;

pub use store::MemoryStore;
