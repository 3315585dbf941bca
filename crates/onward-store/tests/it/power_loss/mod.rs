//! Power loss, which a kill cannot simulate: data that was written but not synced is lost or torn.
//!
//! [`vfs`] sits between SQLite and the disk and makes a [`recording`] of every change to the
//! store's files. After a [`workload`] has run, [`disk`] plays the recording up to any moment and
//! returns the files as they may be after a power cut then. [`judge`] opens them and checks
//! everything that had been acknowledged by then, described by [`facts`]. [`cuts`] contains the
//! tests.
#![expect(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod cuts;
mod disk;
mod facts;
mod judge;
mod recording;
mod vfs;
mod workload;
