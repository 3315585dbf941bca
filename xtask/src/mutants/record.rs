//! The record of what became of each variant when it was last tried, `docs/mutants.md`, written by the program alone.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, Result};

use super::patch::Patch;
use super::table::Row;

pub(super) const FILE: &str = "docs/mutants.md";

const HEAD: &str = "\
# Broken variants

What became of each variant in [xtask/mutants](../xtask/mutants) when `cargo xtask mutants --record` last tried it: the test beside it
passed, the project was broken as the variant says, and the test was run again. The commit is the one that was broken.

| variant | breaks | verdict | commit | date | test |
|---|---|---|---|---|---|
";

/// Puts a variant's row in the place of its last one, and leaves out those of variants that there are no more.
pub(super) fn put(root: &Path, commit: &str, row: &Row, all: &[Patch]) -> Result<()> {
    let path = root.join(FILE);
    let page = if path.exists() { std::fs::read_to_string(&path)? } else { String::new() };
    std::fs::write(&path, with(&page, commit, row, all)).with_context(|| format!("cannot write {FILE}"))
}

fn with(page: &str, commit: &str, row: &Row, all: &[Patch]) -> String {
    let mut lines: BTreeMap<&str, String> =
        page.lines().filter_map(|line| Some((name_of(line)?, line.to_owned()))).collect();
    let Row { name, breaks, package, test, verdict, .. } = row;
    let test = test.rsplit("::").next().unwrap_or(test);
    let line = format!(
        "| [{name}](../xtask/mutants/{name}.patch) | {breaks} | {verdict} | {commit} | `{test}` of {package} |"
    );
    lines.insert(name, line);
    lines.retain(|name, _| all.iter().any(|patch| patch.name == *name));
    let rows: Vec<String> = lines.into_values().collect();
    format!("{HEAD}{}\n", rows.join("\n"))
}

/// Of which variant a row is.
fn name_of(line: &str) -> Option<&str> {
    line.strip_prefix("| [")?.split_once("](").map(|(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::super::patch::Test;
    use super::super::table::Verdict;
    use super::*;

    fn patch(name: &str) -> Patch {
        let test = Test { package: "onward".into(), path: "ends::a_panic".into() };
        Patch { name: name.into(), path: String::new(), breaks: "leaked-slot".into(), test }
    }

    fn row(name: &str, verdict: Verdict) -> Row {
        let Patch { name, breaks, test: Test { package, path }, .. } = patch(name);
        Row { name, breaks, package, test: path, verdict, seconds: 1.0 }
    }

    #[test]
    fn the_row_of_a_variant_takes_the_place_of_its_last_one_and_the_others_stay() {
        let all = [patch("slot"), patch("other")];
        let page = with("", "abc | 2026-01-01", &row("slot", Verdict::Survived), &all);
        let page = with(&page, "abc | 2026-01-01", &row("other", Verdict::Caught), &all);
        let page = with(&page, "def | 2026-01-02", &row("slot", Verdict::Caught), &all);
        let rows: Vec<&str> = page.lines().filter(|line| line.starts_with("| [")).collect();
        assert_eq!(rows.len(), 2);
        assert!(rows[0].contains("| caught | abc | 2026-01-01 | `a_panic` of onward |"), "{page}");
        assert!(rows[1].contains("| caught | def |"), "{page}");
    }

    #[test]
    fn a_variant_that_there_is_no_more_has_no_row() {
        let page = with("", "abc | 2026-01-01", &row("slot", Verdict::Caught), &[patch("slot")]);
        let page = with(&page, "abc | 2026-01-01", &row("other", Verdict::Caught), &[patch("other")]);
        assert!(!page.contains("[slot]"), "{page}");
    }
}
