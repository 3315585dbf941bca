//! `cargo xtask miri`: the tests of `onward-zmtp` that need no operating system, under Miri.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::Result;

use crate::command;
use crate::project::Project;

/// What `cargo xtask miri` takes.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Which tests: parts of their names. Default: those of the fair queue and of the protocol.
    names: Vec<String>,
    /// Which toolchain; it must have the components `miri` and `rust-src`.
    #[arg(long, default_value = "nightly")]
    toolchain: String,
}

/// The tests that run unless others are named. Those that would take Miri too long leave themselves
/// out.
const TESTS: [&str; 2] = ["fair_queue::", "zmtp::"];

/// Miri takes a thousand times as long as the processor; what has not ended by then hangs.
const LIMIT: Duration = Duration::from_secs(4 * 3600);

/// Builds everything anew for Miri, into a directory of its own, and runs the tests.
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
        // The fuzzers' inputs are read from files.
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
