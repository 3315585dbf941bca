//! Checks licences, sources, duplicates and known vulnerabilities of our dependencies.

use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::Result;

use crate::ci::Verdict;
use crate::command;
use crate::project::Project;

/// The version of cargo-deny that is installed if there is none.
const VERSION: &str = "0.20.2";

/// The time limit for fetching the database of vulnerabilities.
const FETCH_LIMIT: Duration = Duration::from_secs(120);

/// Checks everything that needs no network, and vulnerabilities if their database can be fetched.
pub(crate) fn run(project: &Project) -> Result<Verdict> {
    install(project)?;
    command::run(deny(project).args(["check", "--hide-inclusion-graph", "bans", "licenses", "sources"]))?;
    // Without a network the rest still counts, so this part alone is reported as not done.
    if let Err(error) = command::run_within(deny(project).args(["fetch", "db"]), FETCH_LIMIT) {
        return Ok(Verdict::Partly(format!("advisories not checked: their database could not be fetched ({error})")));
    }
    command::run(deny(project).args(["check", "--disable-fetch", "advisories"]))?;
    Ok(Verdict::Passed)
}

fn deny(project: &Project) -> Command {
    let mut deny = command::cargo();
    deny.arg("deny").current_dir(project.root());
    deny
}

fn install(project: &Project) -> Result<()> {
    let found = deny(project).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    if found.is_ok_and(|status| status.success()) {
        return Ok(());
    }
    command::run(command::cargo().args(["install", "cargo-deny", "--locked", "--version", VERSION]))
}
