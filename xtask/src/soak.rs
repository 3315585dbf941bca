//! The long forms of the reliability tests.
//!
//! Each is a test of some crate whose length is set by variables; it prints what it did as a line
//! `attempted=… acknowledged=… lost=… duplicated=… recovered=… seed=…`. That line is shown again as the last one here, and
//! the command succeeds only if it is there and nothing was lost or doubled.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail, ensure};

use crate::command;
use crate::project::Project;

/// What `cargo xtask soak` takes.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Which one; `list` says what each does.
    name: String,
    /// How many rounds (kills, points, operations, sequences). Default: as the table of `list` says.
    #[arg(long)]
    rounds: Option<u64>,
    /// Go on for so long, whatever the rounds.
    #[arg(long)]
    minutes: Option<u64>,
    /// Start from this seed, to see a failure again.
    #[arg(long)]
    seed: Option<u64>,
}

/// A test that can run long.
struct Soak {
    name: &'static str,
    what: &'static str,
    package: &'static str,
    /// The part of the test binary `it` that is run.
    filter: &'static str,
    rounds: u64,
}

const SOAKS: &[Soak] = &[];

/// Runs one, or lists them.
pub(crate) fn run(project: &Project, options: &Options) -> Result<()> {
    if options.name == "list" {
        SOAKS.iter().for_each(|soak| println!("{:14} {} ({} rounds)", soak.name, soak.what, soak.rounds));
        return Ok(());
    }
    let soak = SOAKS.iter().find(|soak| soak.name == options.name);
    let soak =
        soak.with_context(|| format!("there is no soak `{}`; `cargo xtask soak list` names them", options.name))?;
    let summary = execute(project, soak, options)?;
    println!("{summary}");
    judge(&summary)
}

/// Runs the test, showing its output, and answers its last summary line.
fn execute(project: &Project, soak: &Soak, options: &Options) -> Result<String> {
    let mut test = test(project, soak, options);
    let mut child = test.stdout(Stdio::piped()).spawn().context("cannot start cargo")?;
    let mut summary = None;
    for line in BufReader::new(child.stdout.take().context("cargo has no output")?).lines() {
        let line = line?;
        println!("{line}");
        if let Some(start) = line.find("attempted=") {
            summary = Some(line[start..].to_owned());
        }
    }
    ensure!(child.wait()?.success(), "`{}` failed", soak.name);
    summary.with_context(|| format!("`{}` printed no summary; did its test run?", soak.name))
}

fn test(project: &Project, soak: &Soak, options: &Options) -> Command {
    let rounds = options.rounds.unwrap_or(if options.minutes.is_some() { u64::MAX } else { soak.rounds });
    let mut test = command::cargo();
    test.args(["test", "--release", "-p", soak.package, "--test", "it", soak.filter, "--", "--nocapture"]);
    test.current_dir(project.root()).env("ONWARD_ROUNDS", rounds.to_string());
    for (name, value) in [("ONWARD_MINUTES", options.minutes), ("ONWARD_SEED", options.seed)] {
        if let Some(value) = value {
            test.env(name, value.to_string());
        }
    }
    test
}

/// An error if something was lost or doubled, or if the line does not say.
fn judge(summary: &str) -> Result<()> {
    for field in ["lost", "duplicated"] {
        let count = summary.split_whitespace().find_map(|part| part.strip_prefix(field)?.strip_prefix('='));
        match count.map(str::parse::<u64>) {
            Some(Ok(0)) => {}
            Some(Ok(count)) => bail!("{field}: {count}"),
            _ => bail!("the summary does not say `{field}=…`"),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_lost_and_nothing_doubled_is_a_success() {
        assert!(judge("attempted=9 acknowledged=8 lost=0 duplicated=0 recovered=1 seed=7").is_ok());
    }

    #[test]
    fn a_loss_a_double_and_a_line_that_does_not_say_are_failures() {
        assert!(judge("attempted=9 lost=1 duplicated=0").is_err());
        assert!(judge("attempted=9 lost=0 duplicated=2").is_err());
        assert!(judge("attempted=9 lost=0").is_err());
    }
}
