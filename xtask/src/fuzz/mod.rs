//! `cargo xtask fuzz`: the inputs of the fuzz targets, kept in one file per target, and the fuzzer.
//!
//! In reading order: [`command`] (the subcommands); [`packs`] (the inputs); [`fuzzer`] (running
//! libFuzzer, with the nightly toolchain or without it).

mod command;
mod fuzzer;
mod packs;

pub(crate) use command::{Options, run};
