//! The n-th thing that SQLite asks of the disk fails, for each n, in every way a disk can fail a
//! program that is not killed by it.
//!
//! [`vfs`] sits between SQLite and the disk and fails what [`plan`] tells it to. [`twins`] plays
//! one scenario on such a store and on the memory store, which is told nothing of the calls that
//! failed: whatever they left behind is a difference. [`turns`] are the tests.
#![expect(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod plan;
mod turns;
mod twins;
mod vfs;
