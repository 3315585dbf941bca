//! The test programs of the workspace, built once and run one by one.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;

use crate::backends::Ready;
use crate::command;
use crate::project::Project;

/// The packages whose tests mostly wait for the disk, a server, a peer or a child process.
const WAITING: &[&str] = &["onward", "onward-cli", "onward-server", "onward-store", "onward-zmtp"];

/// The threads for each processor of a program whose tests wait. With four, concurrent writers that
/// computed for long held their transactions open longer than the server allows (5 s).
const THREADS_PER_PROCESSOR: usize = 2;

/// The test program whose ignored tests run with `--all`.
const PROGRAM_OF_ALL: &str = "onward-store it";

/// The ignored tests that repeat other tests on one more kind of store. All other ignored tests are
/// child processes that tests start.
pub(crate) const FIXTURES_OF_ALL: &[&str] = &[
    "sqlite::in_memory::",
    "sqlite::in_file::",
    "sqlite::in_file_read_through_reader::",
    "postgres::suite::completed_by_the_function::",
    "postgres::suite::through_a_pooler::",
];

/// A built test program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Program {
    /// The package and the target, as in `onward-store it`.
    pub(super) name: String,
    path: PathBuf,
    /// The folder of the package, which is the working directory of its tests.
    folder: PathBuf,
    is_waiting: bool,
}

/// Builds everything that `cargo test` builds and returns its test programs.
pub(super) fn build(project: &Project, ready: &Ready) -> Result<Vec<Program>> {
    let mut cargo = command::cargo();
    cargo.args(["test", "--workspace", "--no-run", "--message-format=json-render-diagnostics"]);
    cargo.args(ready.feature_arguments()).current_dir(project.root()).stderr(Stdio::inherit());
    let output = cargo.output().context("cannot start cargo")?;
    if !output.status.success() {
        bail!("the tests do not build ({})", output.status);
    }
    let messages = String::from_utf8(output.stdout).context("cargo did not write UTF-8")?;
    let programs: Vec<Program> = messages.lines().filter_map(program).collect();
    ensure!(!programs.is_empty(), "cargo built no test program");
    Ok(programs)
}

/// Returns the test program that a line of cargo's messages names, if any.
fn program(line: &str) -> Option<Program> {
    let message: Value = serde_json::from_str(line).ok()?;
    if message["profile"]["test"] != true {
        return None;
    }
    let folder = PathBuf::from(message["manifest_path"].as_str()?).parent()?.to_path_buf();
    let package = folder.file_name()?.to_str()?.to_owned();
    let target = message["target"]["name"].as_str()?;
    let kind = message["target"]["kind"][0].as_str()?;
    let name = if kind == "test" { target } else { kind };
    let is_waiting = kind == "test" && WAITING.contains(&package.as_str());
    let path = message["executable"].as_str()?.into();
    Some(Program { name: format!("{package} {name}"), path, folder, is_waiting })
}

impl Program {
    /// Returns the command that runs the program's tests and prints the time of each.
    pub(super) fn command(&self) -> Command {
        let mut command = Command::new(&self.path);
        command.current_dir(&self.folder).env("CARGO_MANIFEST_DIR", &self.folder);
        // The harness prints times only if unstable options are allowed. The variable allows that
        // for a program that is already built; nothing is compiled with it.
        command.env("RUSTC_BOOTSTRAP", "1").args(["-Zunstable-options", "--report-time"]);
        let processors = thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let threads = if self.is_waiting { processors * THREADS_PER_PROCESSOR } else { processors };
        command.arg(format!("--test-threads={threads}"));
        command
    }
}

impl Program {
    /// Returns the command that runs the ignored tests of the program for `--all`, if it has any.
    pub(super) fn command_for_all(&self) -> Option<Command> {
        if self.name != PROGRAM_OF_ALL {
            return None;
        }
        let mut command = self.command();
        command.arg("--ignored").args(FIXTURES_OF_ALL);
        Some(command)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(test: bool, kind: &str) -> String {
        format!(
            r#"{{"manifest_path":"/p/crates/onward-store/Cargo.toml","target":{{"name":"it","kind":["{kind}"]}},"profile":{{"test":{test}}},"executable":"/t/it-1"}}"#
        )
    }

    #[test]
    fn a_test_program_is_named_after_package_and_target() {
        let program = program(&message(true, "test")).unwrap();
        assert_eq!((program.name.as_str(), program.is_waiting), ("onward-store it", true));
        assert_eq!(program.folder, PathBuf::from("/p/crates/onward-store"));
    }

    #[test]
    fn the_unit_tests_of_a_library_have_as_many_threads_as_processors() {
        let program = program(&message(true, "lib")).unwrap();
        assert_eq!((program.name.as_str(), program.is_waiting), ("onward-store lib", false));
    }

    #[test]
    fn only_the_program_with_more_stores_runs_again_with_all() {
        let run_again = |kind| program(&message(true, kind)).unwrap().command_for_all().is_some();
        assert!(run_again("test") && !run_again("lib"));
    }

    #[test]
    fn a_program_that_is_no_test_is_passed_over() {
        assert_eq!(program(&message(false, "bin")), None);
    }
}
