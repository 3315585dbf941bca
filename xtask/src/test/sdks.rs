//! The checks of the SDKs, of the web page and of the HTTP API, as programs among the tests.

use anyhow::Result;

use super::harness::{self, ProgramRun, Style};
use super::run::{self, SILENCE_OF_COMPILER};
use crate::project::Project;
use crate::{command, page, sdk};

/// The script that sends generated requests to a server.
const API_SCRIPT: &str = "crates/onward-server/api-checks/check.sh";

/// The variable with which a script ends when its tools are installed.
const TOOLS_ONLY: &str = "ONWARD_TOOLS_ONLY";

/// Installs the tools of all checks, one after another: two runs of Debian's installer at once
/// would refuse each other. The first run takes some minutes and mostly waits for downloads, so it
/// runs while cargo builds the tests.
pub(super) fn install(project: &Project) -> Result<()> {
    scripts().iter().try_for_each(|(_, script)| command::run(sdk::check(project, script).env(TOOLS_ONLY, "1")))
}

/// Runs the checks of each SDK, of the page and of the API, in two sequences at once.
///
/// Most of the time they wait for processes and timers, so they run beside the test programs.
pub(super) fn run(project: &Project) -> Result<Vec<ProgramRun>> {
    let scripts = scripts();
    let (even, odd): (Vec<_>, Vec<_>) = scripts.iter().enumerate().partition(|(index, _)| index % 2 == 0);
    let check_all = |chosen: Vec<(usize, &(String, &str))>| -> Result<Vec<ProgramRun>> {
        chosen.into_iter().map(|(_, (name, script))| check(project, name, script)).collect()
    };
    let (even, odd) = run::beside(|| check_all(even), || check_all(odd))?;
    Ok(even?.into_iter().chain(odd?).collect())
}

/// Returns the name and the script of each check.
fn scripts() -> Vec<(String, &'static str)> {
    let sdks = sdk::SDKS.iter().map(|(name, script)| (format!("sdk-{name}"), *script));
    sdks.chain([("api".to_owned(), API_SCRIPT), ("page".to_owned(), page::SCRIPT)]).collect()
}

fn check(project: &Project, name: &str, script: &str) -> Result<ProgramRun> {
    let mut command = sdk::check(project, script);
    // A test runner prints its results as the harness of Rust does, so that they are counted.
    command.env("ONWARD_TEST_LINES", "1");
    harness::run_in_style(Style::Prefix, name, &mut command, SILENCE_OF_COMPILER)
}
