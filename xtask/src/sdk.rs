//! `cargo xtask sdk`: checks the SDKs of other languages by their own tools.

use std::process::Command;

use anyhow::{Result, bail};

use crate::command;
use crate::project::Project;

/// The SDKs, and workers without one: the name, and the script that makes its environment and
/// runs every check.
pub(crate) const SDKS: &[(&str, &str)] = &[
    ("python", "sdk/python/check.sh"),
    ("ruby", "sdk/ruby/check.sh"),
    ("typescript", "sdk/typescript/check.sh"),
    ("plain", "sdk/plain/check.sh"),
];

/// The arguments of `cargo xtask sdk`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// The SDK to check; default: all
    name: Option<String>,
    /// Arguments for the tests of the SDK
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

/// Builds the program `onward`, with which the SDKs are tested, and runs the checks.
pub(crate) fn run(project: &Project, options: &Options) -> Result<()> {
    let chosen: Vec<_> =
        SDKS.iter().filter(|(name, _)| options.name.as_deref().is_none_or(|chosen| chosen == *name)).collect();
    if chosen.is_empty() {
        let known: Vec<&str> = SDKS.iter().map(|(name, _)| *name).collect();
        bail!("there is no such SDK; the SDKs are {}", known.join(", "));
    }
    command::run(command::cargo().args(["build", "-p", "onward-cli"]).current_dir(project.root()))?;
    for (_, script) in chosen {
        command::run(check(project, script).args(&options.arguments))?;
    }
    Ok(())
}

/// Returns the command that checks an SDK with the program of the debug build.
pub(crate) fn check(project: &Project, script: &str) -> Command {
    let mut command = Command::new("sh");
    command.arg(project.path(script)).env("ONWARD_BIN", project.target().join("debug/onward"));
    // Without the program the tests that need it fail, instead of being skipped.
    command.env("ONWARD_REQUIRE_BACKENDS", "all");
    command
}
