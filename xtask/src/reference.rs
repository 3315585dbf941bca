//! `docs/reference`: the program's own description of its command line.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result};

use crate::project::Project;
use crate::tidy::Finding;
use crate::{artifacts, command};

const DIRECTORY: &str = "docs/reference";

/// The arguments of `cargo xtask docs`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Write nothing; fail if the files are stale.
    #[arg(long)]
    check: bool,
}

/// Pages by file name.
type Pages = BTreeMap<String, String>;

/// Writes the reference, or checks it.
pub(crate) fn run(project: &Project, options: &Options) -> Result<()> {
    if options.check {
        let findings = check(project)?;
        findings.iter().for_each(|finding| println!("{finding}"));
        anyhow::ensure!(findings.is_empty(), "{} findings", findings.len());
        return Ok(());
    }
    let directory = project.path(DIRECTORY);
    std::fs::create_dir_all(&directory).with_context(|| format!("cannot make {DIRECTORY}"))?;
    for (name, text) in generate(project)? {
        std::fs::write(directory.join(&name), text).with_context(|| format!("cannot write {DIRECTORY}/{name}"))?;
        println!("wrote {DIRECTORY}/{name}");
    }
    Ok(())
}

/// Finds pages that are missing, stale, or no longer generated.
pub(crate) fn check(project: &Project) -> Result<Vec<Finding>> {
    let expected = generate(project)?;
    let directory = project.path(DIRECTORY);
    let present = if directory.is_dir() { pages(&directory)? } else { Pages::new() };
    Ok(compare(&expected, &present))
}

fn compare(expected: &Pages, present: &Pages) -> Vec<Finding> {
    let stale = expected.iter().filter(|(name, text)| present.get(*name) != Some(text));
    let stale = stale.map(|(name, _)| (name, "is not fresh; run `cargo xtask docs`"));
    let gone = present.keys().filter(|name| !expected.contains_key(*name));
    let gone = gone.map(|name| (name, "is not generated any more; delete it"));
    stale.chain(gone).map(|(name, message)| Finding::file(format!("{DIRECTORY}/{name}"), message)).collect()
}

/// Lets the program generate its reference.
fn generate(project: &Project) -> Result<Pages> {
    let program = artifacts::onward(project)?;
    let directory = project.scratch("reference")?;
    command::output(Command::new(program).args(["generate", "reference"]).arg(&directory))?;
    pages(&directory)
}

fn pages(directory: &Path) -> Result<Pages> {
    let mut pages = Pages::new();
    for entry in std::fs::read_dir(directory).with_context(|| format!("cannot read {}", directory.display()))? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        pages.insert(name, std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?);
    }
    Ok(pages)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(name: &str, text: &str) -> Pages {
        Pages::from([(name.to_owned(), text.to_owned())])
    }

    #[test]
    fn pages_that_agree_pass() {
        assert_eq!(compare(&page("cli.md", "a"), &page("cli.md", "a")), []);
    }

    #[test]
    fn a_stale_a_missing_and_a_left_over_page_are_found() {
        assert_eq!(compare(&page("cli.md", "a"), &page("cli.md", "b")).len(), 1);
        assert_eq!(compare(&page("cli.md", "a"), &page("old.md", "a")).len(), 2);
    }
}
