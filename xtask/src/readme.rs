//! The README's first command works as printed, and so does what the quick start types.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

use crate::ci::Verdict;
use crate::project::Project;
use crate::{artifacts, command};

/// What the README types to run the program; the smoke test puts the program that is built already
/// in its place.
pub(crate) const RUN: &str = "cargo run --release --bin onward --";

/// What is typed after the README.
const QUICK_START: &str = "docs/quick-start.md";

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
    quick_start(project, &program)?;
    Ok(Verdict::Passed)
}

/// Types what the quick start types into one terminal, line by line.
fn quick_start(project: &Project, program: &Path) -> Result<()> {
    let lines = lines_for_one_terminal(&project.read(QUICK_START)?);
    ensure!(!lines.is_empty(), "{QUICK_START} has no line to be typed");
    let place = project.scratch("quick-start")?;
    for line in lines {
        // 1 says that work failed, as some of it is to do; 2 and 3 say that the line is not right.
        let script = format!("onward() {{ \"$ONWARD_PROGRAM\" \"$@\"; }}\n{line}\ntest $? -lt 2");
        let mut shell = Command::new("sh");
        shell.args(["-uc", &script]).current_dir(&place).stdin(Stdio::null()).stdout(Stdio::null());
        command::run_within(shell.env("ONWARD_PROGRAM", program).env_remove("ONWARD_STORE"), LIMIT)?;
    }
    Ok(())
}

/// The lines of the shell blocks behind the one that builds, but those of a worker, which works
/// until it is interrupted, and of who waits for it.
fn lines_for_one_terminal(text: &str) -> Vec<String> {
    let blocks = text.split("```sh\n").skip(1).filter_map(|rest| rest.split("```").next());
    let joined: Vec<String> =
        blocks.filter(|block| !block.contains("cargo build")).map(|block| block.replace("\\\n", " ")).collect();
    let needs_another = |line: &&str| line.starts_with("onward work ") || line.contains(" --wait ");
    let lines = joined.iter().flat_map(|block| block.lines()).filter(|line| !needs_another(line));
    lines.map(str::to_owned).collect()
}

/// The first command in a shell block of the README that runs the program, its continued lines
/// included.
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
