//! Builds and runs the programs of the systems.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::str::FromStr;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, bail, ensure};
use bench_protocol::{CommitSizes, DurabilityLevel, Entry, Line};
use wait_timeout::ChildExt as _;

use crate::plan::Group;
use crate::postgres::{Postgres, Template};

/// The time limit of a run, after which the program has failed.
const RUN_LIMIT: Duration = Duration::from_secs(600);

/// The time for which the disk rests before a run that syncs, because the disk discards deleted
/// files of the run before in the background.
const REST: Duration = Duration::from_secs(1);

/// The most bytes of a program's output that are kept.
const PRINTED_BYTES: u64 = 64 * 1024 * 1024;

/// The variable with the row in JSON as the system is to run it, for programs that do not read
/// scenario files.
const ROW: &str = "ONWARD_BENCH_ROW";

/// A program that was built elsewhere: `SYSTEM=PATH`.
#[derive(Debug, Clone)]
pub(crate) struct Given {
    system: String,
    path: PathBuf,
}

impl FromStr for Given {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        let (system, path) = text.split_once('=').context("give SYSTEM=PATH")?;
        Ok(Self { system: system.to_owned(), path: std::path::absolute(path)? })
    }
}

/// The requested programs, each built or with the reason why it could not be.
#[derive(Debug)]
pub(crate) struct Programs {
    built: BTreeMap<String, Result<PathBuf, String>>,
    scenarios: PathBuf,
    directory: PathBuf,
    quick: bool,
    template: OnceCell<Template>,
}

impl Programs {
    /// Builds the programs that the plan needs and that were not given.
    pub(crate) fn build(bench: &Path, plan: &[Group<'_>], given: &[Given], directory: PathBuf, quick: bool) -> Self {
        let systems: BTreeSet<&str> =
            plan.iter().flat_map(|group| &group.entries).map(|entry| entry.system.as_str()).collect();
        let built = systems.into_iter().map(|system| {
            let given = given.iter().find(|given| given.system == system).map(|given| Ok(given.path.clone()));
            let program = given.unwrap_or_else(|| build(bench, system)).map_err(|error| format!("{error:#}"));
            (system.to_owned(), program)
        });
        Self { built: built.collect(), scenarios: bench.join("scenarios"), directory, quick, template: OnceCell::new() }
    }

    /// Runs a row once.
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
            "--durability",
            &group.durability.to_string(),
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
        let server = self.server(group)?;
        if let Some(server) = &server {
            command.args(["--postgres", &server.url()]);
        }
        let row = if self.quick { group.row.clone().quick() } else { group.row.clone() };
        command.env(ROW, serde_json::to_string(&row.of_system(&entry.system))?);
        if group.durability != DurabilityLevel::Memory && !self.quick {
            settle(&self.directory)?;
        }
        let output = output_within(&mut command, RUN_LIMIT)?;
        let last = output.lines().last().context("the program printed nothing")?;
        serde_json::from_str(last).with_context(|| format!("the program printed `{last}`"))
    }

    /// Starts a server for the run if the row is on PostgreSQL.
    fn server(&self, group: &Group<'_>) -> Result<Option<Postgres<'_>>> {
        if !group.row.postgres {
            return Ok(None);
        }
        let template = match self.template.get() {
            Some(template) => template,
            None => {
                let made = Template::make(&self.directory)?;
                self.template.get_or_init(|| made)
            }
        };
        Ok(Some(Postgres::start(template, group.durability, &group.row.server, self.quick)?))
    }
}

fn build(bench: &Path, system: &str) -> Result<PathBuf> {
    let peer = bench.join("peers").join(system);
    let target = bench.join("target");
    let program = target.join("release").join(format!("bench-{system}"));
    let mut command = if peer.join("Cargo.toml").exists() {
        cargo(&peer, &target)
    } else if peer.join("go.mod").exists() {
        go(&peer, &program)
    } else if peer.join("package.json").exists() {
        return node(&peer);
    } else {
        bail!("there is no program bench/peers/{system}, and none was given with --program {system}=PATH");
    };
    eprintln!("building {system}");
    let status = command.status().with_context(|| format!("{} does not start", command.get_program().display()))?;
    if !status.success() {
        bail!("bench/peers/{system} does not build");
    }
    Ok(program)
}

/// Waits until the disk has finished the writes and deletions of the run before, so that the next
/// run does not pay for them.
#[expect(clippy::disallowed_methods, reason = "nothing tells when the disk has discarded what was deleted")]
fn settle(directory: &Path) -> Result<()> {
    let synced = Command::new("sync").arg("-f").arg(directory).status()?;
    ensure!(synced.success(), "`{}` cannot be synced", directory.display());
    thread::sleep(REST);
    Ok(())
}

/// The release profile of the program `onward`. Variables in the environment take precedence, for
/// all systems alike.
const PROFILE: [(&str, &str); 2] =
    [("CARGO_PROFILE_RELEASE_LTO", "thin"), ("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "4")];

/// Returns a cargo command with the same release profile for all systems, so that a boundary
/// between crates costs none of them anything.
fn cargo(peer: &Path, target: &Path) -> Command {
    let mut command = Command::new(env!("CARGO"));
    command.args(["build", "--release", "--quiet", "--manifest-path"]).arg(peer.join("Cargo.toml"));
    command.env("CARGO_TARGET_DIR", target);
    command.envs(PROFILE.into_iter().filter(|(name, _)| std::env::var_os(name).is_none()));
    command
}

fn go(peer: &Path, program: &Path) -> Command {
    let mut command = Command::new("go");
    command.current_dir(peer).args(["build", "-o"]).arg(program).arg(".");
    command
}

/// Prepares a program for node.js. It is not built; its dependencies are installed from its lock
/// file if they are missing.
fn node(peer: &Path) -> Result<PathBuf> {
    let installed = peer.join("node_modules/.package-lock.json");
    let since = |path: &Path| path.metadata().and_then(|metadata| metadata.modified()).ok();
    if since(&installed) < since(&peer.join("package-lock.json")) {
        eprintln!("installing {}", peer.display());
        let mut install = Command::new("npm");
        install.current_dir(peer).args(["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--silent"]);
        let status = install.stdout(Stdio::null()).status().context("npm does not start")?;
        ensure!(status.success(), "what {} needs cannot be installed", peer.display());
    }
    Ok(peer.join("main.mjs"))
}

/// Returns the output of a command. If the command fails, or exceeds `limit` and is killed, returns
/// an error with its last words.
fn output_within(command: &mut Command, limit: Duration) -> Result<String> {
    command.env("RUST_BACKTRACE", "0");
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let output = read_aside(child.stdout.take().context("no output")?);
    let errors = read_aside(child.stderr.take().context("no error output")?);
    let Some(status) = child.wait_timeout(limit)? else {
        child.kill()?;
        child.wait()?;
        bail!("took longer than {} s", limit.as_secs());
    };
    let (output, errors) = (read(output)?, read(errors)?);
    if !status.success() {
        bail!("{}", errors.lines().next().unwrap_or("failed without a word").trim_start_matches("Error: "));
    }
    Ok(output)
}

/// Reads the output of a command while it runs, because a command that logs more than a pipe holds
/// would otherwise block. Output beyond [`PRINTED_BYTES`] is read and discarded.
fn read_aside(mut from: impl Read + Send + 'static) -> JoinHandle<io::Result<Vec<u8>>> {
    thread::spawn(move || {
        let mut printed = Vec::new();
        from.by_ref().take(PRINTED_BYTES).read_to_end(&mut printed)?;
        io::copy(&mut from, &mut io::sink())?;
        Ok(printed)
    })
}

fn read(printed: JoinHandle<io::Result<Vec<u8>>>) -> Result<String> {
    let printed = printed.join().map_err(|_| anyhow!("reading what it printed panicked"))??;
    Ok(String::from_utf8_lossy(&printed).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_logs_more_than_a_pipe_holds_goes_on() {
        let mut command = Command::new("sh");
        command.args(["-c", "head -c 1000000 /dev/zero >&2; head -c 1000000 /dev/zero; echo over"]);
        let output = output_within(&mut command, Duration::from_secs(60)).unwrap();
        assert_eq!(output.trim_start_matches('\0'), "over\n");
    }
}
