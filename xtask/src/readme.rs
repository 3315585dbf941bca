//! Checks that the README's first command works as printed, and that the commands of the quick
//! start do.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

use crate::ci::Verdict;
use crate::project::Project;
use crate::{artifacts, command};

/// The start of the README's command. The smoke test runs the program that is already built
/// instead.
pub(crate) const RUN: &str = "cargo run --profile quick --bin onward --";

/// The document whose commands are run after that of the README.
const QUICK_START: &str = "docs/quick-start.md";

/// The time limit of the command.
const LIMIT: Duration = Duration::from_secs(120);

/// Runs the command twice on a store of its own. The second run has nothing left to do.
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
    quick_start(project, &program)?;
    Ok(Verdict::Passed)
}

/// Runs the commands of the quick start for one terminal, line by line.
fn quick_start(project: &Project, program: &Path) -> Result<()> {
    let lines = lines_for_one_terminal(&project.read(QUICK_START)?);
    ensure!(!lines.is_empty(), "{QUICK_START} has no line to be typed");
    let place = project.scratch("quick-start")?;
    for line in lines {
        // Status 1 means that work failed, which some of it is meant to; 2 and 3 mean that the
        // command is wrong.
        let script = format!("onward() {{ \"$ONWARD_PROGRAM\" \"$@\"; }}\n{line}\ntest $? -lt 2");
        let mut shell = Command::new("sh");
        shell.args(["-uc", &script]).current_dir(&place).stdin(Stdio::null()).stdout(Stdio::null());
        command::run_within(shell.env("ONWARD_PROGRAM", program).env_remove("ONWARD_STORE"), LIMIT)?;
    }
    Ok(())
}

/// Returns the lines of the shell blocks after the one that builds. Leaves out the worker, which
/// runs until it is interrupted, and the command that waits for it.
fn lines_for_one_terminal(text: &str) -> Vec<String> {
    let blocks = text.split("```sh\n").skip(1).filter_map(|rest| rest.split("```").next());
    let joined: Vec<String> =
        blocks.filter(|block| !block.contains("cargo build")).map(|block| block.replace("\\\n", " ")).collect();
    let needs_another = |line: &&str| line.starts_with("onward work ") || line.contains(" --wait ");
    let lines = joined.iter().flat_map(|block| block.lines()).filter(|line| !needs_another(line));
    lines.map(str::to_owned).collect()
}

/// Returns the first command in a shell block of the README that runs the program, with its
/// continued lines.
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
        let readme = "# Onward\n\n```sh\ncargo build\n```\n\n```sh\nls | \\\n  cargo run --profile quick --bin onward -- each -- cat\n```\n";
        let command = first_command(readme).unwrap();
        assert!(command.starts_with("ls | ") && command.ends_with("each -- cat"), "{command}");
    }

    #[test]
    fn of_the_quick_start_is_typed_what_needs_no_second_terminal() {
        let text = "```sh\ncargo build\n```\n\n```sh\nseq 3 | \\\n  onward each -- cat\n```\n\n```sh\nonward work --kind k -- cat\n```\n\n\
                    ```sh\nonward submit --kind k --wait x\nonward stats\n```\n";
        assert_eq!(lines_for_one_terminal(text), ["seq 3 |    onward each -- cat", "onward stats"]);
    }

    #[test]
    fn a_readme_without_one_is_noticed() {
        assert_eq!(first_command("```sh\ncargo build\n```\n"), None);
    }
}
