//! Running libFuzzer by cargo-fuzz.
//!
//! cargo-fuzz expects the nightly toolchain, because coverage and sanitizers are unstable options.
//! Without it the stable compiler accepts the options for coverage with `RUSTC_BOOTSTRAP=1`. It has
//! no standard library for a sanitizer, which the targets do not need: they are safe code, and find
//! faults by assertions.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

use super::command::FOLDERS;
use super::packs::{self, Direction};
use crate::command;
use crate::project::Project;

/// The arguments of `cargo xtask fuzz run`.
#[derive(Debug, clap::Args)]
pub(super) struct RunOptions {
    /// The targets; default: all.
    targets: Vec<String>,
    /// The seconds for which each target runs.
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..))]
    seconds: u64,
    /// Further arguments of libFuzzer, such as `-max_len=160`.
    #[arg(last = true)]
    arguments: Vec<String>,
}

/// The compiler that builds the fuzz targets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Compiler {
    /// The nightly toolchain, with a sanitizer.
    Nightly,
    /// The toolchain of the project, without a sanitizer.
    Stable,
}

/// The time within which a tool prints its version.
const VERSION_TIME: Duration = Duration::from_secs(30);

/// The statistics of libFuzzer that the summary shows.
const STATISTICS: [(&str, &str); 2] =
    [("stat::number_of_executed_units:", "executions"), ("stat::average_exec_per_sec:", "a second")];

impl Compiler {
    fn find() -> Self {
        let mut nightly = Command::new("rustup");
        nightly.args(["run", "nightly", "rustc", "--version"]).stdout(Stdio::null()).stderr(Stdio::null());
        let is_there = command::succeeds_within(&mut nightly, VERSION_TIME).unwrap_or(false);
        if is_there { Self::Nightly } else { Self::Stable }
    }

    /// Returns `cargo fuzz VERB` for a target.
    fn cargo_fuzz(self, project: &Project, verb: &str, folder: &str, target: &str) -> Command {
        let mut cargo = match self {
            Self::Nightly => Command::new("rustup"),
            Self::Stable => command::cargo(),
        };
        match self {
            Self::Nightly => cargo.args(["run", "nightly", "cargo"]),
            Self::Stable => cargo.env("RUSTC_BOOTSTRAP", "1"),
        };
        cargo.args(["fuzz", verb, "--fuzz-dir", folder]);
        if self == Self::Stable {
            cargo.args(["--sanitizer", "none"]);
        }
        cargo.arg(target).current_dir(project.root());
        cargo
    }
}

/// Runs the fuzzer on each target, and prints the number of executions.
pub(super) fn run(project: &Project, options: &RunOptions) -> Result<()> {
    let (targets, compiler) = prepare(project, &options.targets)?;
    let mut summary = Vec::with_capacity(targets.len());
    for (folder, target) in targets {
        // A new target has no pack.
        if packs::has_pack(project, folder, &target) {
            packs::convert(project, Direction::Unpack, std::slice::from_ref(&target))?;
        }
        let mut fuzzer = compiler.cargo_fuzz(project, "run", folder, &target);
        fuzzer.arg("--").arg(format!("-max_total_time={}", options.seconds)).arg("-print_final_stats=1");
        summary.push(format!("{target}: {}", run_with_statistics(fuzzer.args(&options.arguments))?));
    }
    summary.iter().for_each(|line| println!("{line}"));
    Ok(())
}

/// Minimises the unpacked inputs of each target.
pub(super) fn minimise(project: &Project, targets: &[String]) -> Result<()> {
    let (targets, compiler) = prepare(project, targets)?;
    for (folder, target) in targets {
        command::run(&mut compiler.cargo_fuzz(project, "cmin", folder, &target))?;
    }
    Ok(())
}

/// Returns the targets with their folders, and the compiler.
fn prepare(project: &Project, named: &[String]) -> Result<(Vec<(&'static str, String)>, Compiler)> {
    let mut version = command::cargo();
    version.args(["fuzz", "--version"]).stdout(Stdio::null()).stderr(Stdio::null());
    let is_there = command::succeeds_within(&mut version, VERSION_TIME).unwrap_or(false);
    ensure!(is_there, "cargo-fuzz is missing; install it: cargo install cargo-fuzz");
    let targets = select(all_targets(project)?, named)?;
    let compiler = Compiler::find();
    if compiler == Compiler::Stable {
        println!("there is no nightly toolchain: the targets run without a sanitizer");
    }
    Ok((targets, compiler))
}

/// Returns all targets with their folders.
fn all_targets(project: &Project) -> Result<Vec<(&'static str, String)>> {
    let mut targets = BTreeSet::new();
    for folder in FOLDERS {
        let sources = project.path(folder).join("fuzz_targets");
        let files = fs::read_dir(&sources).with_context(|| format!("cannot read {}", sources.display()))?;
        for file in files {
            targets.extend(file?.path().file_stem().map(|name| (folder, name.to_string_lossy().into_owned())));
        }
    }
    Ok(targets.into_iter().collect())
}

/// Selects the targets that are named, or all.
fn select(all: Vec<(&'static str, String)>, named: &[String]) -> Result<Vec<(&'static str, String)>> {
    let known: Vec<String> = all.iter().map(|(_, target)| target.clone()).collect();
    for name in named {
        ensure!(known.contains(name), "there is no fuzz target {name}; there are {}", known.join(", "));
    }
    Ok(all.into_iter().filter(|(_, target)| named.is_empty() || named.contains(target)).collect())
}

/// Runs a fuzzer, shows what it writes to standard error, and returns its statistics.
fn run_with_statistics(fuzzer: &mut Command) -> Result<String> {
    let mut child = command::start(fuzzer.stderr(Stdio::piped()))?;
    let mut found = Vec::new();
    for line in child.stderr.take().map(BufReader::new).into_iter().flat_map(BufReader::lines) {
        let line = line.context("cannot read what the fuzzer writes")?;
        eprintln!("{line}");
        found.extend(statistic(&line));
    }
    command::check(child.wait()?, fuzzer)?;
    Ok(found.join(", "))
}

/// Returns the number that a line of libFuzzer states, if the summary shows it.
fn statistic(line: &str) -> Option<String> {
    STATISTICS.iter().find_map(|(name, shown)| {
        let number = line.strip_prefix(name)?.trim();
        Some(format!("{number} {shown}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_statistics_of_libfuzzer_are_read() {
        assert_eq!(statistic("stat::average_exec_per_sec:     3451").as_deref(), Some("3451 a second"));
        assert_eq!(statistic("stat::new_units_added:          12"), None);
    }

    #[test]
    fn a_target_that_does_not_exist_is_refused_by_name() {
        let all = || vec![("one", "a".to_owned()), ("two", "b".to_owned())];
        assert_eq!(select(all(), &["b".to_owned()]).unwrap(), [("two", "b".to_owned())]);
        assert_eq!(select(all(), &[]).unwrap(), all());
        assert!(select(all(), &["c".to_owned()]).unwrap_err().to_string().contains("no fuzz target c; there are a, b"));
    }

    #[test]
    fn the_stable_compiler_runs_without_a_sanitizer() {
        let project = Project::open().unwrap();
        let of = |compiler: Compiler| {
            let command = compiler.cargo_fuzz(&project, "run", "fuzz", "t");
            command.get_args().map(|argument| argument.to_string_lossy().into_owned()).collect::<Vec<_>>()
        };
        assert_eq!(of(Compiler::Stable), ["fuzz", "run", "--fuzz-dir", "fuzz", "--sanitizer", "none", "t"]);
        assert_eq!(of(Compiler::Nightly), ["run", "nightly", "cargo", "fuzz", "run", "--fuzz-dir", "fuzz", "t"]);
    }
}
