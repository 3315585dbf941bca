//! All of CI, step by step. A developer runs the same steps as the server.

use std::process::Command;
use std::time::Duration;

use anyhow::{Result, bail};

use crate::project::Project;
use crate::{bench, command, deny, disk, examples, readme, test, tidy};

/// The arguments of `cargo xtask ci`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Run only this step; `list` prints the names of all.
    #[arg(long, value_name = "STEP")]
    only: Option<String>,
}

/// The result of a step that did not fail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verdict {
    Passed,
    /// Part of the step was not possible; the text names the part and the reason.
    Partly(String),
    /// The step was not possible; the text gives the reason.
    Skipped(String),
}

type Step = fn(&Project) -> Result<Verdict>;

/// The steps: name, the property that each shows, and the function.
const STEPS: &[(&str, &str, Step)] = &[
    ("fmt", "every source is formatted", fmt),
    ("clippy", "no lint has anything to say, and what can be left out of the builds can be", clippy),
    ("test", "every test passes", |project| passed(test::run(project, &test::Options::default()))),
    ("tidy", "style, structure, links, generated files", |project| passed(tidy::run(project, &tidy::Options::all()))),
    (
        "docs",
        "the API documentation builds without a warning, and the crate of sockets can be packed for the registry",
        docs,
    ),
    ("deny", "licences, sources and vulnerabilities of dependencies", deny::run),
    ("examples", "every example runs to its end", examples::run),
    ("readme", "the README's first command and the quick start work", readme::run),
    ("bench", "our own benchmark rows still run", bench::smoke),
];

/// Runs all steps, even after one fails, and prints a summary.
pub(crate) fn run(project: &Project, options: &Options) -> Result<()> {
    if options.only.as_deref() == Some("list") {
        STEPS.iter().for_each(|(name, what, _)| println!("{name:9} {what}"));
        return Ok(());
    }
    let chosen: Vec<_> =
        STEPS.iter().filter(|(name, ..)| options.only.as_deref().is_none_or(|only| only == *name)).collect();
    if chosen.is_empty() {
        bail!("there is no such step; `cargo xtask ci --only list` names them all");
    }
    let directories = [project.target(), std::env::temp_dir()];
    if options.only.is_none() {
        disk::ensure_room(&directories[0])?;
    }
    let mut rows = Vec::new();
    for (name, what, step) in chosen {
        println!("\n=== {name}: {what}");
        let started = command::now();
        let ended = step(project).map_err(|error| disk::explain(error, &directories));
        if let Err(error) = &ended {
            println!("{error:#}");
        }
        println!("=== {name}: {:.1} s", started.elapsed().as_secs_f64());
        rows.push((*name, started.elapsed(), ended));
    }
    summarise(&rows)
}

fn summarise(rows: &[(&str, Duration, Result<Verdict>)]) -> Result<()> {
    println!("\nstep       seconds  result");
    for (name, took, ended) in rows {
        println!("{name:9} {:8.1}  {}", took.as_secs_f64(), result(ended));
    }
    let failed: Vec<&str> = rows.iter().filter(|(.., ended)| ended.is_err()).map(|(name, ..)| *name).collect();
    if !failed.is_empty() {
        bail!("failed: {}; run one again with `cargo xtask ci --only STEP`", failed.join(", "));
    }
    Ok(())
}

fn result(ended: &Result<Verdict>) -> String {
    match ended {
        Ok(Verdict::Passed) => "passed".into(),
        Ok(Verdict::Partly(why)) => format!("passed in part: {why}"),
        Ok(Verdict::Skipped(why)) => format!("SKIPPED: {why}"),
        Err(error) => format!("FAILED: {error}"),
    }
}

fn passed(result: Result<()>) -> Result<Verdict> {
    result.map(|()| Verdict::Passed)
}

/// Formats the main workspace, and each package below `bench/`, `xtask/interop/` and
/// `xtask/models/`.
fn fmt(project: &Project) -> Result<Verdict> {
    let is_package = |path: &&str| {
        ["bench/", "xtask/interop/", "xtask/models/"].iter().any(|folder| path.starts_with(folder))
            && path.ends_with("/Cargo.toml")
            && *path != "bench/Cargo.toml"
    };
    let own = project.files_with("toml").filter(is_package);
    for manifest in std::iter::once("Cargo.toml").chain(own) {
        let mut fmt = command::cargo();
        fmt.args(["fmt", "--check", "--manifest-path", manifest]);
        if manifest == "Cargo.toml" {
            fmt.arg("--all");
        }
        command::run(fmt.current_dir(project.root()))?;
    }
    Ok(Verdict::Passed)
}

fn clippy(project: &Project) -> Result<Verdict> {
    for what in [&["--workspace", "--all-targets"][..], WITHOUT_RUNTIME, WITHOUT_FEATURES, WITHOUT_SQLITE] {
        let mut clippy = cargo(project, &["clippy"]);
        command::run(clippy.args(what).args(["--", "-D", "warnings"]))?;
    }
    Ok(Verdict::Passed)
}

/// The fair queue and the protocol must build without tokio.
const WITHOUT_RUNTIME: &[&str] = &["-p", "onward-zmtp", "--lib", "--no-default-features"];

/// The program must build without PostgreSQL, `onward top` and metrics.
const WITHOUT_FEATURES: &[&str] = &["-p", "onward-cli", "--bins", "--no-default-features"];

/// The store must build without SQLite.
const WITHOUT_SQLITE: &[&str] = &["-p", "onward-store", "--lib", "--no-default-features", "--features", "postgres"];

fn docs(project: &Project) -> Result<Verdict> {
    let mut doc = cargo(project, &["doc", "--workspace", "--no-deps", "--lib"]);
    command::run(doc.env("RUSTDOCFLAGS", "-D warnings"))?;
    passed(command::run(&mut cargo(project, &["package", "-p", "onward-zmtp", "--no-verify", "--allow-dirty"])))
}

fn cargo(project: &Project, arguments: &[&str]) -> Command {
    let mut cargo = command::cargo();
    cargo.args(arguments).current_dir(project.root());
    cargo
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_step_fails_the_whole_and_is_named() {
        let rows = [
            ("fmt", Duration::ZERO, Ok(Verdict::Passed)),
            ("deny", Duration::ZERO, Ok(Verdict::Partly("no network".into()))),
            ("test", Duration::ZERO, Err(anyhow::anyhow!("2 failed"))),
        ];
        let error = summarise(&rows).unwrap_err().to_string();
        assert!(error.starts_with("failed: test;"), "{error}");
    }

    #[test]
    fn what_was_not_done_is_said() {
        assert_eq!(result(&Ok(Verdict::Skipped("no bench".into()))), "SKIPPED: no bench");
    }
}
