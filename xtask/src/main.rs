//! Developer commands: all of CI, and the generators of the documentation.
//!
//! `cargo xtask ci` runs all of CI, step by step. Each step is also a command of its own.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a developer command speaks to the person who typed it")]

mod artifacts;
mod backends;
mod bench;
mod ci;
mod command;
mod deny;
mod disk;
mod examples;
mod features;
mod fuzz;
mod miri;
mod mutants;
mod page;
mod project;
mod prose;
mod readme;
mod reference;
mod sdk;
mod soak;
mod source;
mod test;
mod tidy;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

use crate::project::Project;

/// Developer commands of Onward.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run all of CI, step by step, and print a summary.
    Ci(ci::Options),
    /// Check style, structure, links and that generated files are fresh.
    Tidy(tidy::Options),
    /// Prepare what the tests need, then run every test of the workspace.
    Test(test::Options),
    /// Write docs/features.md, or list the tests behind one of its rows.
    Features(features::Options),
    /// Write docs/reference: the command line's own description of itself.
    Docs(reference::Options),
    /// List the places where comments break the rules of prose.
    Prose(prose::Options),
    /// Check the SDKs of other languages by their own tools.
    Sdk(sdk::Options),
    /// Check the web page in Chromium.
    Page(page::Options),
    /// Run benchmarks (see bench/README.md).
    Bench(bench::Options),
    /// Run the long form of a reliability test.
    Soak(soak::Options),
    /// Run the tests of the fair queue and of the protocol under Miri.
    Miri(miri::Options),
    /// Break the project by every patch in xtask/mutants, and check that a test notices.
    Mutants(mutants::Options),
    /// Run the fuzz targets; unpack their inputs, minimise them, or pack them again.
    Fuzz(fuzz::Options),
    /// Remove old build folders, and what tests and benchmarks left behind.
    CleanStale(disk::clean_stale::Options),
}

fn main() -> ExitCode {
    match run(Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: Arguments) -> Result<()> {
    let project = Project::open()?;
    match arguments.command {
        Command::Ci(options) => ci::run(&project, &options),
        Command::Tidy(options) => tidy::run(&project, &options),
        Command::Test(options) => test::run(&project, &options),
        Command::Features(options) => features::run(&project, &options),
        Command::Docs(options) => reference::run(&project, &options),
        Command::Prose(options) => prose::run(&project, &options),
        Command::Sdk(options) => sdk::run(&project, &options),
        Command::Page(options) => page::run(&project, &options),
        Command::Bench(options) => bench::run(&project, &options),
        Command::Soak(options) => soak::run(&project, &options),
        Command::Miri(options) => miri::run(&project, &options),
        Command::Mutants(options) => mutants::run(&project, &options),
        Command::Fuzz(options) => fuzz::run(&project, &options),
        Command::CleanStale(options) => disk::clean_stale::run(&project, &options),
    }
}
