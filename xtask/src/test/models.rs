//! The models of hand-overs between threads, in the workspace `xtask/models`.

use std::process::Command;

use anyhow::Result;

use super::harness::{self, ProgramRun};
use super::run::SILENCE_OF_COMPILER;
use crate::command;
use crate::project::Project;

/// Runs the models with the number of preemptions that a change needs.
pub(super) fn run(project: &Project) -> Result<ProgramRun> {
    harness::run("models", command().current_dir(project.root()), SILENCE_OF_COMPILER)
}

/// Returns the command that runs the models from the root of the project. Their build is below
/// `target/loom`.
pub(crate) fn command() -> Command {
    let mut test = command::cargo();
    test.args(["test", "--locked", "--manifest-path", "xtask/models/Cargo.toml"]);
    test.env("CARGO_TARGET_DIR", "target/loom");
    test
}
