//! The order of the steps: prepare; build, while the tools of the SDKs are installed; run each test
//! program and test the documentation, beside the checks of the SDKs; then summarise.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, bail};

use super::harness::{self, ProgramRun};
use super::programs::{self, Program};
use super::{hang_ups, interop, models, sdks, summary};
use crate::backends::{self, Ready};
use crate::command;
use crate::disk::temporary_files;
use crate::project::Project;

/// The longest time without a line from a test program. The slowest test takes less than a minute
/// on two cores; a busy machine gets five minutes.
const SILENCE: Duration = Duration::from_secs(5 * 60);

/// The longest time without a line while cargo compiles before it runs tests.
pub(super) const SILENCE_OF_COMPILER: Duration = Duration::from_secs(20 * 60);

/// The options of `cargo xtask test`.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct Options {
    /// Also run the tests that repeat others on one more kind of store, and those of
    /// `xtask/interop/`. Use it before a release.
    #[arg(long, conflicts_with = "arguments")]
    pub(crate) all: bool,
    /// Arguments for `cargo test`: a filter, `-p CRATE`, `-- --nocapture`.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

/// Prepares what the tests need, then runs them.
pub(crate) fn run(project: &Project, options: &Options) -> Result<()> {
    hang_ups::check()?;
    let ready = backends::prepare()?;
    if options.arguments.is_empty() {
        run_all(project, &ready, options.all)
    } else {
        run_some(project, &ready, options)
    }
}

/// Runs the tests that a developer names, as `cargo test` would. A package gets the features of its
/// own stores alone, because cargo refuses features of packages that are not built.
fn run_some(project: &Project, ready: &Ready, options: &Options) -> Result<()> {
    let mut test = command::cargo();
    test.arg("test").current_dir(project.root()).envs(ready.variables.iter().cloned());
    let arguments = &options.arguments;
    let names_package = arguments.iter().any(|argument| argument == "-p" || argument.starts_with("--package"));
    if !names_package {
        test.arg("--workspace");
    }
    let is_tested = |package: &str| !names_package || arguments.iter().any(|argument| argument == package);
    let features = ready.features.iter().filter(|(package, _)| is_tested(package));
    test.args(features.map(|(_, feature)| format!("--features={feature}")));
    command::run(test.arg("--no-fail-fast").args(arguments))
}

/// Runs every test program of the workspace and every example in the documentation.
fn run_all(project: &Project, ready: &Ready, all: bool) -> Result<()> {
    let started = command::now();
    let (programs, installed) = beside(|| programs::build(project, ready), || sdks::install(project))?;
    let (programs, ()) = (programs?, installed?);
    let built = started.elapsed();
    let temporary = temporary_files::folder()?;
    let (ran, sdks) = beside(|| run_programs(project, ready, &programs, &temporary, all), || sdks::run(project))?;
    let ran: Vec<ProgramRun> = ran?.into_iter().chain(sdks?).collect();
    print!("{}", summary::table(built, &ran));
    let failures = summary::failures(&ran);
    if !failures.is_empty() {
        // The temporary files stay, because those of killed and failed tests may show why they
        // failed.
        bail!("tests failed; their temporary files are in {}:{failures}", temporary.display());
    }
    temporary_files::check(&temporary)?;
    fs::remove_dir(&temporary).with_context(|| format!("cannot remove {}", temporary.display()))
}

/// Runs two functions at the same time, the second on a thread of its own. Returns both results.
pub(super) fn beside<A, B: Send>(one: impl FnOnce() -> A, other: impl FnOnce() -> B + Send) -> Result<(A, B)> {
    thread::scope(|scope| {
        let other = scope.spawn(other);
        let result = one();
        let other =
            other.join().map_err(|_| anyhow!("the second of two functions that ran at the same time panicked"))?;
        Ok((result, other))
    })
}

/// Runs the test programs of the workspace one after another, then the examples in the
/// documentation. With `all` it also runs what repeats other tests, and the tests with other
/// libraries.
fn run_programs(
    project: &Project,
    ready: &Ready,
    programs: &[Program],
    temporary: &Path,
    all: bool,
) -> Result<Vec<ProgramRun>> {
    let mut ran = Vec::new();
    for program in programs {
        ran.push(run_program(program, program.command(), ready, temporary)?);
        if let Some(more) = program.command_for_all().filter(|_| all) {
            ran.push(run_program(program, more, ready, temporary)?);
        }
    }
    ran.push(documentation(project, ready)?);
    ran.push(models::run(project)?);
    if all {
        ran.push(interop::run(project, ready)?);
    }
    Ok(ran)
}

fn run_program(program: &Program, mut run: Command, ready: &Ready, temporary: &Path) -> Result<ProgramRun> {
    run.envs(ready.variables.iter().cloned()).env("TMPDIR", temporary);
    harness::run(&program.name, &mut run, SILENCE)
}

fn documentation(project: &Project, ready: &Ready) -> Result<ProgramRun> {
    let mut test = command::cargo();
    test.args(["test", "--workspace", "--doc", "--no-fail-fast"]).args(ready.feature_arguments());
    test.current_dir(project.root()).envs(ready.variables.iter().cloned());
    harness::run("documentation", &mut test, SILENCE_OF_COMPILER)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn two_functions_run_at_the_same_time_and_both_results_return() {
        let (sender, receiver) = mpsc::channel();
        // The first one ends only if the second one runs meanwhile.
        let ran = beside(|| receiver.recv_timeout(SILENCE), || sender.send(1)).unwrap();
        assert_eq!(ran, (Ok(1), Ok(())));
    }

    #[test]
    fn a_thread_that_panics_is_an_error() {
        let error = beside(|| (), || panic!("on purpose")).unwrap_err();
        assert!(error.to_string().contains("panicked"), "{error}");
    }
}
