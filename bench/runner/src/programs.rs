//! The programs of the systems: building them and running them.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use bench_protocol::{CommitSizes, Entry, Line};
use wait_timeout::ChildExt as _;

use crate::plan::Group;

/// A program that takes longer for one run has failed.
const RUN_LIMIT: Duration = Duration::from_secs(600);

/// The programs that were asked for, each built or with the reason why it could not be.
#[derive(Debug)]
pub(crate) struct Programs {
    built: BTreeMap<String, Result<PathBuf, String>>,
    scenarios: PathBuf,
    directory: PathBuf,
    quick: bool,
}

impl Programs {
    /// Builds what the plan needs, with cargo's release profile.
    pub(crate) fn build(bench: &Path, plan: &[Group<'_>], directory: PathBuf, quick: bool) -> Result<Self> {
        let systems: BTreeSet<&str> =
            plan.iter().flat_map(|group| &group.entries).map(|entry| entry.system.as_str()).collect();
        let built = systems.into_iter().map(|system| {
            let program = build(bench, system).map_err(|error| format!("{error:#}"));
            (system.to_owned(), program)
        });
        Ok(Self { built: built.collect(), scenarios: bench.join("scenarios"), directory, quick })
    }

    /// Does one run of a row.
    pub(crate) fn run(&self, group: &Group<'_>, entry: &Entry, commits: Option<CommitSizes>) -> Result<Line> {
        let program = match self.built.get(&entry.system) {
            Some(Ok(program)) => program,
            Some(Err(error)) => bail!("{error}"),
            None => bail!("no program was built"),
        };
        let mut command = Command::new(program);
        command.args([
            "--row",
            &group.row.name,
            "--class",
            &group.class.to_string(),
            "--settings",
            &entry.settings,
            "--json",
        ]);
        command.arg("--scenarios").arg(&self.scenarios).arg("--directory").arg(&self.directory);
        if self.quick {
            command.arg("--quick");
        }
        if let Some(commits) = commits {
            command.args(["--commits", &commits.to_string()]);
        }
        let output = output_within(&mut command, RUN_LIMIT)?;
        let last = output.lines().last().context("the program printed nothing")?;
        serde_json::from_str(last).with_context(|| format!("the program printed `{last}`"))
    }
}

fn build(bench: &Path, system: &str) -> Result<PathBuf> {
    let manifest = bench.join("peers").join(system).join("Cargo.toml");
    if !manifest.exists() {
        bail!("there is no program bench/peers/{system}");
    }
    eprintln!("building {system}");
    let target = bench.join("target");
    let status = Command::new(env!("CARGO"))
        .args(["build", "--release", "--quiet", "--manifest-path"])
        .arg(&manifest)
        .env("CARGO_TARGET_DIR", &target)
        .status()?;
    if !status.success() {
        bail!("bench/peers/{system} does not build");
    }
    Ok(target.join("release").join(format!("bench-{system}")))
}

/// What a command prints. A command that fails, or takes longer than `limit` and is killed, is an error with its last words.
fn output_within(command: &mut Command, limit: Duration) -> Result<String> {
    command.env("RUST_BACKTRACE", "0");
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let Some(status) = child.wait_timeout(limit)? else {
        child.kill()?;
        child.wait()?;
        bail!("took longer than {} s", limit.as_secs());
    };
    let mut output = String::new();
    let mut errors = String::new();
    child.stdout.take().context("no output")?.read_to_string(&mut output)?;
    child.stderr.take().context("no error output")?.read_to_string(&mut errors)?;
    if !status.success() {
        bail!("{}", errors.lines().next().unwrap_or("failed without a word").trim_start_matches("Error: "));
    }
    Ok(output)
}
