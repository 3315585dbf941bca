//! `cargo xtask page`: checks the web page in a browser.

use anyhow::Result;

use crate::project::Project;
use crate::{command, sdk};

/// The script that installs the tools and runs every check.
pub(crate) const SCRIPT: &str = "crates/onward-server/page-tests/check.sh";

/// The arguments of `cargo xtask page`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Arguments for `node --test`
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

/// Builds the program `onward`, which has the page, and runs the checks.
pub(crate) fn run(project: &Project, options: &Options) -> Result<()> {
    command::run(command::cargo().args(["build", "-p", "onward-cli"]).current_dir(project.root()))?;
    command::run(sdk::check(project, SCRIPT).args(&options.arguments))
}
