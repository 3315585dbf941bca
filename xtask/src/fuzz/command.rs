//! The subcommands of `cargo xtask fuzz`.

use anyhow::Result;

use super::fuzzer::{self, RunOptions};
use super::packs::{self, Direction};
use crate::project::Project;

/// The folders of fuzz targets. No two targets have one name.
pub(super) const FOLDERS: [&str; 2] = ["crates/onward/fuzz", "crates/onward-zmtp/fuzz"];

/// The arguments of `cargo xtask fuzz`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Write the inputs of each pack to files in `corpus`, for a fuzzer.
    Unpack {
        /// The targets; default: all.
        targets: Vec<String>,
    },
    /// Replace each pack by the inputs in `corpus`, after a fuzzer has run and they were minimised.
    Pack {
        /// The targets; default: all that are unpacked.
        targets: Vec<String>,
    },
    /// Unpack the inputs and run the fuzzer, one target after the other. Needs cargo-fuzz. Uses the
    /// nightly toolchain with a sanitizer if it is installed, or else this one without.
    Run(RunOptions),
    /// Keep the smallest set of inputs in `corpus` that has the coverage of all.
    Minimise {
        /// The targets; default: all.
        targets: Vec<String>,
    },
}

/// Carries out a subcommand.
pub(crate) fn run(project: &Project, options: &Options) -> Result<()> {
    match &options.action {
        Action::Unpack { targets } => packs::convert(project, Direction::Unpack, targets),
        Action::Pack { targets } => packs::convert(project, Direction::Pack, targets),
        Action::Run(options) => fuzzer::run(project, options),
        Action::Minimise { targets } => fuzzer::minimise(project, targets),
    }
}
