//! `cargo xtask test`: the one command that runs every test.

mod hang_ups;
mod harness;
mod interop;
pub(crate) mod models;
mod programs;
mod run;
mod sdks;
mod summary;

pub(crate) use interop::TARGET as INTEROP_TARGET;
pub(crate) use programs::FIXTURES_OF_ALL;
pub(crate) use run::{Options, run};
