//! The record of soaks that were run, `docs/soaks.md`: one row a run, written by the program alone.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context as _, Result};

pub(crate) const FILE: &str = "docs/soaks.md";

const HEAD: &str = "\
# Soaks

What the long forms of the reliability tests did, newest last. `cargo xtask soak NAME --record` adds a row; nobody else does. The
seed is the last run's; a failure would be shown again by `--seed`. What each soak does, `cargo xtask soak list` says.

| commit | date | soak | rounds | runs | attempted | acknowledged | lost | duplicated | recovered | seed |
|---|---|---|---|---|---|---|---|---|---|---|
";

/// A soak that has been run.
#[derive(Debug)]
pub(crate) struct Row<'a> {
    pub(crate) name: &'a str,
    /// Of one run.
    pub(crate) rounds: u64,
    pub(crate) runs: u64,
    /// Attempted, acknowledged, lost, duplicated, recovered, seed.
    pub(crate) counts: [u64; 6],
}

/// Adds a row; the first makes the file.
pub(crate) fn add(root: &Path, commit: &str, row: &Row<'_>) -> Result<()> {
    let path = root.join(FILE);
    let mut text = if path.exists() { std::fs::read_to_string(&path)? } else { HEAD.to_owned() };
    text.push_str(&line(commit, row));
    std::fs::write(&path, text).with_context(|| format!("cannot write {FILE}"))
}

fn line(commit: &str, row: &Row<'_>) -> String {
    let mut line = format!("| {commit} | {} | {} | {} |", row.name, row.rounds, row.runs);
    for count in row.counts {
        // Writing to a string does not fail.
        let _ = write!(line, " {count} |");
    }
    line.push('\n');
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_as_many_cells_as_the_head() {
        let row = Row { name: "damage", rounds: 1, runs: 2, counts: [1, 2, 3, 4, 5, 6] };
        let cells = |line: &str| line.matches('|').count();
        let head = HEAD.lines().last().unwrap();
        assert_eq!(cells(&line("abc | 2026-01-01", &row)), cells(head));
    }

    #[test]
    fn rows_follow_one_another_under_one_head() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("docs")).unwrap();
        let row = Row { name: "damage", rounds: 1, runs: 2, counts: [0; 6] };
        add(root.path(), "abc | 2026-01-01", &row).unwrap();
        add(root.path(), "abc | 2026-01-01", &row).unwrap();
        let text = std::fs::read_to_string(root.path().join(FILE)).unwrap();
        assert_eq!((text.matches("# Soaks").count(), text.matches("| damage |").count()), (1, 2));
    }
}
