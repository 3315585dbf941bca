//! The long forms of the reliability tests.
//!
//! Each is a test of some crate whose length and seed are set by variables; it prints what it did as a line
//! `attempted=… acknowledged=… lost=… duplicated=… recovered=… seed=…`. The sum of these lines is the last line here, and
//! the command succeeds only if every run passed, printed its line, and nothing was lost or doubled.

use std::fmt;
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

use crate::command;
use crate::project::Project;

/// What `cargo xtask soak` takes.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Which one; `list` says what each does.
    name: String,
    /// How many rounds (kills, points, operations, sequences) one run has. Default: as `list` says.
    #[arg(long)]
    rounds: Option<u64>,
    /// Run again and again until so many minutes have passed.
    #[arg(long)]
    minutes: Option<u64>,
    /// Start from this seed, to see a failure again; further runs count up from it. Default: another one each time.
    #[arg(long)]
    seed: Option<u64>,
}

/// A test that can run long.
struct Soak {
    name: &'static str,
    what: &'static str,
    package: &'static str,
    /// Which tests of the package's test program `it` are run.
    filter: &'static str,
    rounds: u64,
    /// The variable that says how many rounds.
    variable: &'static str,
}

const SOAKS: &[Soak] = &[
    Soak {
        name: "power-loss",
        what: "power cuts under a SQLite store in class full, on a disk that forgets, reorders and tears what was not synced",
        package: "onward-store",
        filter: "power_loss::cuts::a_power_cut_in_class_full",
        rounds: 20_000,
        variable: "ONWARD_POINTS",
    },
    Soak {
        name: "sqlite-kill",
        what: "one and three processes on a SQLite file killed at random moments under load, in class full and normal",
        package: "onward-store",
        filter: "kill::",
        rounds: 5_000,
        variable: "ONWARD_ROUNDS",
    },
    Soak {
        name: "stores-agree",
        what: "random sequences of writes, clock moves and restarts on every store, compared with the memory store",
        package: "onward-store",
        filter: "agreement::",
        rounds: 500_000,
        variable: "ONWARD_SEQUENCES",
    },
];

/// Runs one, or lists them.
pub(crate) fn run(project: &Project, options: &Options) -> Result<()> {
    if options.name == "list" {
        SOAKS.iter().for_each(|soak| println!("{:14} {} ({} rounds)", soak.name, soak.what, soak.rounds));
        return Ok(());
    }
    let soak = SOAKS.iter().find(|soak| soak.name == options.name);
    let soak =
        soak.with_context(|| format!("there is no soak `{}`; `cargo xtask soak list` names them", options.name))?;
    let limit = Duration::from_secs(options.minutes.unwrap_or(0).saturating_mul(60));
    let started = command::now();
    let mut total = Summary::default();
    for run in 0u64.. {
        total.add(&execute(project, soak, options, run)?);
        if total.is_bad() || started.elapsed() >= limit {
            break;
        }
    }
    println!("{total}");
    ensure!(!total.is_bad(), "something was lost or doubled");
    Ok(())
}

/// Runs the test once, showing its output, and adds up the lines in which its parts say what they did.
fn execute(project: &Project, soak: &Soak, options: &Options, run: u64) -> Result<Summary> {
    let mut child = test(project, soak, options, run).stdout(Stdio::piped()).spawn().context("cannot start cargo")?;
    let mut found = false;
    let mut summary = Summary::default();
    for line in BufReader::new(child.stdout.take().context("cargo has no output")?).lines() {
        let line = line?;
        println!("{line}");
        if let Some(part) = Summary::parse(&line) {
            summary.add(&part);
            found = true;
        }
    }
    ensure!(child.wait()?.success(), "`{}` failed", soak.name);
    ensure!(found, "`{}` did not say what it did; did its test run?", soak.name);
    Ok(summary)
}

fn test(project: &Project, soak: &Soak, options: &Options, run: u64) -> Command {
    let rounds = options.rounds.unwrap_or(soak.rounds);
    let mut test = command::cargo();
    test.args(["test", "--release", "-p", soak.package, "--test", "it", soak.filter, "--", "--nocapture"]);
    test.current_dir(project.root()).env(soak.variable, rounds.to_string());
    if let Some(seed) = options.seed {
        test.env("ONWARD_SEED", seed.wrapping_add(run).to_string());
    }
    test
}

/// What a run did.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Summary {
    attempted: u64,
    acknowledged: u64,
    lost: u64,
    duplicated: u64,
    recovered: u64,
    /// Of the latest run.
    seed: u64,
}

impl Summary {
    /// The summary in a line of output, if it has one; all its fields must be there.
    fn parse(line: &str) -> Option<Self> {
        let line = &line[line.find("attempted=")?..];
        let field = |name: &str| {
            let mut parts = line.split_whitespace();
            parts.find_map(|part| part.strip_prefix(name)?.strip_prefix('='))?.parse().ok()
        };
        Some(Self {
            attempted: field("attempted")?,
            acknowledged: field("acknowledged")?,
            lost: field("lost")?,
            duplicated: field("duplicated")?,
            recovered: field("recovered")?,
            seed: field("seed")?,
        })
    }

    fn add(&mut self, other: &Self) {
        self.attempted += other.attempted;
        self.acknowledged += other.acknowledged;
        self.lost += other.lost;
        self.duplicated += other.duplicated;
        self.recovered += other.recovered;
        self.seed = other.seed;
    }

    fn is_bad(&self) -> bool {
        self.lost > 0 || self.duplicated > 0
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { attempted, acknowledged, lost, duplicated, recovered, seed } = self;
        write!(
            f,
            "attempted={attempted} acknowledged={acknowledged} lost={lost} duplicated={duplicated} recovered={recovered} seed={seed}"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = "attempted=9 acknowledged=8 lost=0 duplicated=0 recovered=1 seed=7";

    #[test]
    fn a_summary_is_read_from_a_line_that_the_test_harness_began() {
        let summary = Summary::parse(&format!("test kills::at_random ... {LINE}")).unwrap();
        assert_eq!(summary.to_string(), LINE);
    }

    #[test]
    fn a_line_that_leaves_something_out_is_none() {
        assert_eq!(Summary::parse("attempted=9 acknowledged=8 lost=0"), None);
    }

    #[test]
    fn runs_add_up_and_one_loss_is_enough() {
        let mut total = Summary::parse(LINE).unwrap();
        total.add(&Summary { lost: 1, seed: 8, ..total });
        assert_eq!((total.attempted, total.lost, total.seed), (18, 1, 8));
        assert!(total.is_bad());
    }
}
