//! The commit that a record is about.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

/// The commit that is checked out, its number and its date as two cells of a table; `record` is the file that will say so, and may be
/// changed.
///
/// # Errors
/// If what is checked out differs from it: a record must say what was run.
pub(crate) fn checked_out(root: &Path, record: &str) -> Result<String> {
    let changed = git(root, &["status", "--porcelain", "--untracked-files=no", "--", ".", &format!(":!{record}")])?;
    ensure!(changed.is_empty(), "a record is of a commit; commit these changes first:\n{changed}");
    git(root, &["log", "-1", "--format=%h | %cs"])
}

fn git(root: &Path, arguments: &[&str]) -> Result<String> {
    let output = Command::new("git").args(arguments).current_dir(root).output().context("cannot run git")?;
    ensure!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr).trim());
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}
