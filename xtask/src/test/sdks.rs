//! The checks of the SDKs, of the web page and of the HTTP API, as programs among the tests.

use anyhow::Result;

use super::harness::{self, ProgramRun, Style};
use super::run::SILENCE_OF_COMPILER;
use crate::project::Project;
use crate::{page, sdk};

/// The script that sends generated requests to a server.
const API_SCRIPT: &str = "crates/onward-server/api-checks/check.sh";

/// Runs the checks of each SDK, of the page and of the API, one after another. Their first run
/// installs the tools, which takes a minute, and Chromium, which takes another one.
///
/// Most of the time they wait for processes and timers, so they run beside the test programs.
pub(super) fn run(project: &Project) -> Result<Vec<ProgramRun>> {
    let check = |(name, script): (String, &str)| {
        let mut command = sdk::check(project, script);
        // A test runner prints its results as the harness of Rust does, so that they are counted.
        command.env("ONWARD_TEST_LINES", "1");
        harness::run_in_style(Style::Prefix, &name, &mut command, SILENCE_OF_COMPILER)
    };
    let sdks = sdk::SDKS.iter().map(|(name, script)| (format!("sdk-{name}"), *script));
    sdks.chain([("page".to_owned(), page::SCRIPT), ("api".to_owned(), API_SCRIPT)]).map(check).collect()
}
