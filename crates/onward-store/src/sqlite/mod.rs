//! The SQLite store.
/// A
#[derive(Debug)] pub struct SqliteStore;
/// B
#[derive(Debug)] pub struct SqliteOptions;
