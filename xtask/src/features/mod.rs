//! Features, the tests that show them, and the tests that would notice faults of other systems.
//!
//! A test names its features in its doc comment, `/// Shows: T8, Q1`, and a fault that it would
//! notice, `/// Beats: lost-events`. `docs/features.toml` defines the names. The page
//! `docs/features.md` has one row for each of them.

mod catalogue;
mod evidence;
mod listing;
mod page;
mod problems;
mod run;

pub(crate) use run::{Options, check, run};
