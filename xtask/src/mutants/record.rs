//! The record of the last time that all variants were tried, `docs/mutants.md`, written by the program alone.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context as _, Result};

use super::table::Row;

pub(super) const FILE: &str = "docs/mutants.md";

const HEAD: &str = "\
# Broken variants

What became of every variant in [xtask/mutants](../xtask/mutants) when `cargo xtask mutants --record` last tried them all: the test
beside it passed, the project was broken as the variant says, and the test was run again.

| commit | date | variants | caught |
|---|---|---|---|
";

/// Writes it anew.
pub(super) fn write(root: &Path, commit: &str, rows: &[Row]) -> Result<()> {
    std::fs::write(root.join(FILE), page(commit, rows)).with_context(|| format!("cannot write {FILE}"))
}

fn page(commit: &str, rows: &[Row]) -> String {
    let caught = rows.iter().filter(|row| row.is_caught()).count();
    let mut page = format!("{HEAD}| {commit} | {} | {caught} |\n\n", rows.len());
    page.push_str("| variant | breaks | verdict | test |\n|---|---|---|---|\n");
    for Row { name, breaks, package, test, verdict, .. } in rows {
        let test = test.rsplit("::").next().unwrap_or(test);
        // Writing to a string does not fail.
        let _ = writeln!(
            page,
            "| [{name}](../xtask/mutants/{name}.patch) | {breaks} | {verdict} | `{test}` of {package} |"
        );
    }
    page
}

#[cfg(test)]
mod tests {
    use super::super::table::Verdict;
    use super::*;

    #[test]
    fn the_page_counts_what_was_caught_and_has_a_row_for_each() {
        let row = |name: &str, verdict| Row {
            name: name.into(),
            breaks: "leaked-slot".into(),
            package: "onward".into(),
            test: "ends::a_panic".into(),
            verdict,
            seconds: 1.0,
        };
        let page = page("abc | 2026-01-01", &[row("slot", Verdict::Caught), row("other", Verdict::Survived)]);
        assert!(page.contains("| abc | 2026-01-01 | 2 | 1 |"), "{page}");
        assert!(
            page.contains("| [other](../xtask/mutants/other.patch) | leaked-slot | SURVIVED | `a_panic` of onward |")
        );
    }
}
