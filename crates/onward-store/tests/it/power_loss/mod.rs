//! Power loss, which a kill cannot show: what was written but not synced is forgotten, or torn.
//!
//! [`vfs`] sits between SQLite and the disk and has a [`recording`] made of every change to the
//! store's files. After a [`workload`] has run, [`disk`] plays the recording up to any moment and
//! answers what the files may be after a power cut there; [`judge`] opens them and looks for
//! everything that had been acknowledged by then, as [`facts`] puts it. [`cuts`] are the tests.
#![expect(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod cuts;
mod disk;
mod facts;
mod judge;
mod recording;
mod vfs;
mod workload;
