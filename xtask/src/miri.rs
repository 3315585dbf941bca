//! `cargo xtask miri`: the tests of `onward-zmtp` that need no operating system, under Miri.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::Result;

use crate::command;
use crate::project::Project;

/// The arguments of `cargo xtask miri`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Parts of the names of the tests to run. Default: the tests of the fair queue and of the
    /// protocol.
    names: Vec<String>,
    /// The toolchain; it must have the components `miri` and `rust-src`.
    #[arg(long, default_value = "nightly")]
    toolchain: String,
}

/// The tests that run by default. Tests that would take too long under Miri are ignored there.
const TESTS: [&str; 2] = ["fair_queue::", "zmtp::"];

/// The time limit. Miri takes a thousand times as long as the processor; a test that exceeds this
/// limit hangs.
const LIMIT: Duration = Duration::from_secs(4 * 3600);

/// Builds everything for Miri, into a directory of its own, and runs the tests.
pub(crate) fn run(project: &Project, options: &Options) -> Result<()> {
    let names: Vec<&str> = match &options.names[..] {
        [] => TESTS.to_vec(),
        names => names.iter().map(String::as_str).collect(),
    };
    command::run_within(&mut miri(project.root(), &options.toolchain, &names), LIMIT)
}

fn miri(root: &Path, toolchain: &str, names: &[&str]) -> Command {
    let mut miri = Command::new("rustup");
    miri.args(["run", toolchain, "cargo", "miri", "test", "-p", "onward-zmtp", "--no-default-features"])
        .args(["--test", "it", "--target-dir", "target/miri", "--"])
        .args(names)
        .current_dir(root)
        // Isolation is disabled because the tests read the fuzzers' inputs from files.
        .env("MIRIFLAGS", "-Zmiri-disable-isolation");
    miri
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_named_is_run_in_place_of_all() {
        let arguments = |names: &[&str]| {
            let command = miri(Path::new("."), "nightly", names);
            command
                .get_args()
                .skip_while(|argument| *argument != "--")
                .skip(1)
                .map(ToOwned::to_owned)
                .collect::<Vec<_>>()
        };
        assert_eq!(arguments(&TESTS), ["fair_queue::", "zmtp::"]);
        assert_eq!(arguments(&["wakes"]), ["wakes"]);
    }
}
