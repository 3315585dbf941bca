//! Benchmarks. They are a workspace of their own under `bench/`; this module starts their runner.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;

use crate::ci::Verdict;
use crate::command;
use crate::project::Project;

const MANIFEST: &str = "bench/Cargo.toml";

/// The arguments of the runner in CI. They show that our own workloads run, not how fast they are.
const SMOKE: &[&str] = &["--quick", "--sample", "--peer", "onward"];

/// The arguments of `cargo xtask bench`.
#[derive(Debug, clap::Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Options {
    /// Arguments for the runner; `--help` lists them.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

/// Runs the benchmark runner.
pub(crate) fn run(project: &Project, options: &Options) -> Result<()> {
    ensure!(project.path(MANIFEST).is_file(), "there is no {MANIFEST} in this checkout");
    runner(project, &options.arguments)
}

/// Runs one short row of each of our own workloads, and checks that the pages match their records.
/// The record of the run is discarded; each row must have a result.
pub(crate) fn smoke(project: &Project) -> Result<Verdict> {
    let record = project.scratch("bench")?.join("record.json");
    let programs = build_for_smoke(project)?;
    let runner = |arguments: &[String]| {
        command::run(Command::new(programs.join("bench-runner")).args(arguments).current_dir(project.root()))
    };
    let mut arguments: Vec<String> = SMOKE.iter().map(ToString::to_string).collect();
    arguments.extend(["--json".to_owned(), record.to_string_lossy().into_owned()]);
    arguments.extend(["--program".to_owned(), format!("onward={}", programs.join("bench-onward").display())]);
    runner(&arguments)?;
    runner(&["pages".to_owned(), "--check".to_owned()])?;
    let record = std::fs::read_to_string(&record).context("the runner left no record")?;
    let problems = problems(&record)?;
    problems.iter().for_each(|problem| println!("{problem}"));
    if !problems.is_empty() {
        bail!("{} rows gave no good result", problems.len());
    }
    Ok(Verdict::Passed)
}

/// Builds the runner and our own program with the settings of the tests and in the same folder,
/// where most of their dependencies are already compiled. Returns the folder of the programs.
fn build_for_smoke(project: &Project) -> Result<PathBuf> {
    let target = project.target();
    let mut build = command::cargo();
    build.args(["build", "--locked", "--manifest-path", MANIFEST, "-p", "bench-runner", "-p", "bench-onward"]);
    command::run(build.arg("--target-dir").arg(&target).current_dir(project.root()))?;
    Ok(target.join("debug"))
}

/// Returns the rows of a record that have no result, or that lost or doubled something. The first
/// line of a record describes the machine.
fn problems(record: &str) -> Result<Vec<String>> {
    let entries: Vec<Value> = record.lines().skip(1).map(serde_json::from_str).collect::<Result<_, _>>()?;
    ensure!(!entries.is_empty(), "the record has no rows");
    Ok(entries.iter().filter_map(problem).collect())
}

fn problem(entry: &Value) -> Option<String> {
    let row = entry["row"].as_str().unwrap_or("a row without a name");
    if let Some(why) = entry["missing"].as_str() {
        return Some(format!("{row}: {why}"));
    }
    let (lost, duplicated) = (entry["lost"].as_u64().unwrap_or(0), entry["duplicated"].as_u64().unwrap_or(0));
    (lost + duplicated > 0).then(|| format!("{row}: lost {lost}, duplicated {duplicated}"))
}

fn runner(project: &Project, arguments: &[String]) -> Result<()> {
    let mut runner = command::cargo();
    runner.args(["run", "--release", "--manifest-path", MANIFEST, "-p", "bench-runner", "--"]).args(arguments);
    command::run(runner.current_dir(project.root()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(entry: &str) -> String {
        format!("{{\"machine\":\"x\"}}\n{entry}\n")
    }

    #[test]
    fn a_row_with_a_result_passes() {
        assert!(problems(&record(r#"{"row":"T/a","value":1.0,"lost":0,"duplicated":0}"#)).unwrap().is_empty());
    }

    #[test]
    fn a_row_without_a_result_and_one_that_lost_something_are_found() {
        assert_eq!(problems(&record(r#"{"row":"T/a","missing":"it failed"}"#)).unwrap(), ["T/a: it failed"]);
        assert_eq!(problems(&record(r#"{"row":"T/a","value":1.0,"lost":2}"#)).unwrap().len(), 1);
    }

    #[test]
    fn a_record_without_rows_is_an_error() {
        assert!(problems("{}\n").is_err());
    }
}
