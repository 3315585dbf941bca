//! `cargo xtask test`: the one command that runs every test.

use anyhow::Result;

use crate::project::Project;
use crate::{backends, command, failures};

/// What `cargo xtask test` takes.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct Options {
    /// Passed on to `cargo test`: a filter, `-p CRATE`, `-- --nocapture`.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

/// Prepares what the tests need, then runs them.
pub(crate) fn run(project: &Project, options: &Options) -> Result<()> {
    let ready = backends::prepare()?;
    let mut test = command::cargo();
    test.arg("test").current_dir(project.root()).envs(ready.variables.iter().cloned());
    let is_some = options.arguments.iter().any(|argument| argument == "-p" || argument.starts_with("--package"));
    if !is_some {
        test.arg("--workspace");
    }
    let is_tested = |package: &str| !is_some || options.arguments.iter().any(|argument| argument == package);
    let features = ready.features.iter().filter(|(package, _)| is_tested(package));
    test.args(features.map(|(_, feature)| format!("--features={feature}")));
    failures::run(test.arg("--no-fail-fast").args(&options.arguments))
}
