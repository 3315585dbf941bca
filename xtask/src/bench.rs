//! Benchmarks are a workspace of their own under `bench/`; this hands over to their runner.

use anyhow::{Result, ensure};

use crate::ci::Verdict;
use crate::command;
use crate::project::Project;

const MANIFEST: &str = "bench/runner/Cargo.toml";

/// What the runner is asked for in CI: that our own rows still run, not how fast they are.
const SMOKE: &[&str] = &["--quick", "--peer", "onward"];

/// What `cargo xtask bench` takes.
#[derive(Debug, clap::Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Options {
    /// Passed on to the runner; `--help` shows what it takes.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

/// Runs the benchmark runner.
pub(crate) fn run(project: &Project, options: &Options) -> Result<()> {
    ensure!(project.path(MANIFEST).is_file(), "there is no {MANIFEST} in this checkout");
    runner(project, &options.arguments)
}

/// One short round of our own rows.
pub(crate) fn smoke(project: &Project) -> Result<Verdict> {
    if !project.path(MANIFEST).is_file() {
        return Ok(Verdict::Skipped(format!("there is no {MANIFEST} yet")));
    }
    let arguments: Vec<String> = SMOKE.iter().map(ToString::to_string).collect();
    runner(project, &arguments)?;
    Ok(Verdict::Passed)
}

fn runner(project: &Project, arguments: &[String]) -> Result<()> {
    let mut runner = command::cargo();
    runner.args(["run", "--release", "--manifest-path", MANIFEST, "--"]).args(arguments);
    command::run(runner.current_dir(project.root()))
}
