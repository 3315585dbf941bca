//! The memory store: the [model](crate::model) behind the storage interface.

mod store;

pub use store::MemoryStore;
