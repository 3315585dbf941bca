//! The README's first command works as printed.

use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

use crate::ci::Verdict;
use crate::project::Project;
use crate::{artifacts, command};

/// What the README types to run the program; the smoke test puts the program that is built already in its place.
pub(crate) const RUN: &str = "cargo run --release --bin onward --";

/// How long the command may take.
const LIMIT: Duration = Duration::from_secs(120);

/// Runs the command twice on a store of its own; the second time there is nothing left to do.
pub(crate) fn run(project: &Project) -> Result<Verdict> {
    let readme = project.read("README.md")?;
    let typed = first_command(&readme).with_context(|| format!("README.md has no `sh` block with `{RUN}`"))?;
    let program = artifacts::onward(project)?;
    let script = typed.replace(RUN, "\"$ONWARD_PROGRAM\"");
    let store = project.scratch("readme")?.join("onward.db");
    for _ in 0..2 {
        let mut shell = Command::new("sh");
        shell.args(["-eu", "-c", &script]).current_dir(project.root()).stdin(Stdio::null()).stdout(Stdio::null());
        command::run_within(shell.env("ONWARD_PROGRAM", &program).env("ONWARD_STORE", &store), LIMIT)?;
    }
    ensure!(store.is_file(), "the command ran but left no store at {}", store.display());
    Ok(Verdict::Passed)
}

/// The first command in a shell block of the README that runs the program, its continued lines included.
fn first_command(readme: &str) -> Option<String> {
    let block =
        readme.split("```sh\n").skip(1).filter_map(|rest| rest.split("```").next()).find(|it| it.contains(RUN))?;
    let joined = block.replace("\\\n", " ");
    joined.lines().find(|line| line.contains(RUN)).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_command_is_taken_with_its_continued_lines() {
        let readme = "# Onward\n\n```sh\ncargo build\n```\n\n```sh\nls | \\\n  cargo run --release --bin onward -- each -- cat\n```\n";
        let command = first_command(readme).unwrap();
        assert!(command.starts_with("ls | ") && command.ends_with("each -- cat"), "{command}");
    }

    #[test]
    fn a_readme_without_one_is_noticed() {
        assert_eq!(first_command("```sh\ncargo build\n```\n"), None);
    }
}
