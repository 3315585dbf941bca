//! Fails the n-th operation of SQLite on the disk, for each n, in every way in which a disk can
//! fail a program without killing it.
//!
//! [`vfs`] sits between SQLite and the disk and fails the operations that [`plan`] selects.
//! [`twins`] plays one scenario on such a store and on a memory store, which does not get the calls
//! that failed. Whatever the failed calls left behind is a difference. [`turns`] contains the
//! tests.
#![expect(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod plan;
mod turns;
mod twins;
mod vfs;
