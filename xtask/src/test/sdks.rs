//! The checks of the SDKs and of the web page, as programs among the tests.

use anyhow::Result;

use super::harness::{self, ProgramRun, Style};
use super::run::SILENCE_OF_COMPILER;
use crate::project::Project;
use crate::{page, sdk};

/// Runs the checks of each SDK and of the page, one after another. Their first run installs the
/// tools, which takes a minute, and Chromium, which takes another one.
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
    sdks.chain([("page".to_owned(), page::SCRIPT)]).map(check).collect()
}
