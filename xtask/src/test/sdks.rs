//! The checks of the SDKs, as programs among the tests.

use anyhow::Result;

use super::harness::{self, ProgramRun, Style};
use super::run::SILENCE_OF_COMPILER;
use crate::project::Project;
use crate::sdk;

/// Runs the checks of each SDK, one after another. Their first run installs the tools, which takes
/// a minute.
///
/// Most of the time they wait for processes and timers, so they run beside the test programs.
pub(super) fn run(project: &Project) -> Result<Vec<ProgramRun>> {
    let check = |(name, script): &(&str, &str)| {
        let mut command = sdk::check(project, script);
        // A test runner prints its results as the harness of Rust does, so that they are counted.
        command.env("ONWARD_TEST_LINES", "1");
        harness::run_in_style(Style::Prefix, &format!("sdk-{name}"), &mut command, SILENCE_OF_COMPILER)
    };
    sdk::SDKS.iter().map(check).collect()
}
