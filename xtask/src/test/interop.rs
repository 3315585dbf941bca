//! Tests with libraries that Onward itself does not use, each in a workspace below
//! `xtask/interop/`.

use anyhow::Result;

use super::harness::{self, ProgramRun};
use super::run::SILENCE_OF_COMPILER;
use crate::backends::Ready;
use crate::command;
use crate::project::Project;

/// The folder below the target folder for the builds of these workspaces. `cargo xtask clean-stale`
/// removes it when it is old.
pub(crate) const TARGET: &str = "interop";

/// Runs the tests of `xtask/interop/sqlx` on the prepared server.
pub(super) fn run(project: &Project, ready: &Ready) -> Result<ProgramRun> {
    let mut test = command::cargo();
    test.args(["test", "--locked", "--manifest-path"]).arg(project.path("xtask/interop/sqlx/Cargo.toml"));
    test.env("CARGO_TARGET_DIR", project.path("target").join(TARGET)).envs(ready.variables.iter().cloned());
    harness::run("interop-sqlx", &mut test, SILENCE_OF_COMPILER)
}
