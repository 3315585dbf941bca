//! The stores, their clock, and the pages and records that their reads return.
//!
//! [`Engine::store`](crate::Engine::store) returns the store of an engine, and the methods of
//! [`StoreReads`] read it.

#[cfg(feature = "postgres")]
pub use onward_store::{PostgresOptions, PostgresStore};

pub use onward_store::{
    Clock, Durability, EndedCounts, IoStatistics, KindStatistics, MemoryStore, Page, PayloadCodec, Refusal, Served,
    ServedCode, SessionId, SessionRecord, SqliteStore, StateCounts, Store, StoreInfo, StoreReads, SystemClock,
    TagKeyPage, TagPage, TagValuePage, TaskIdPage, TaskPage,
};
