//! Checks that each store on which the conformance suite runs is in the table of CONTRIBUTING.md,
//! at its level, and that `cargo xtask test --all` starts all stores of the level `all`.

use std::collections::BTreeMap;

use super::Finding;
use crate::source::SourceFile;
use crate::test::FIXTURES_OF_ALL;

const PATH: &str = "CONTRIBUTING.md";

/// The folder of the tests that run the suite.
const TESTS: &str = "crates/onward-store/tests/it/";

/// The level at which a fixture is tested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Level {
    /// With each change.
    Change,
    /// With `--all`; its tests are ignored otherwise.
    All,
}

/// The level of each fixture, by the path of its module.
type Levels = BTreeMap<String, Level>;

/// Finds fixtures that the table, the tests and `cargo xtask test --all` do not agree about.
pub(crate) fn check(document: &str, sources: &[SourceFile]) -> Vec<Finding> {
    let tested: Levels = sources.iter().flat_map(tested).collect();
    compare(&table(document), &tested, FIXTURES_OF_ALL)
}

fn compare(table: &Levels, tested: &Levels, started: &[&str]) -> Vec<Finding> {
    let find = |message: String| Finding::file(PATH, message);
    let mut findings = Vec::new();
    for (name, level) in tested.iter().filter(|(name, level)| table.get(*name) != Some(*level)) {
        findings.push(find(format!("the table of fixtures has no row `{name}` at the level {}", level.name())));
    }
    for name in table.keys().filter(|name| !tested.contains_key(*name)) {
        findings.push(find(format!("the table of fixtures names `{name}`, and no test runs the suite on it")));
    }
    for (name, _) in tested.iter().filter(|(name, level)| (**level == Level::All) != is_started(name, started)) {
        findings.push(find(format!("`{name}` and FIXTURES_OF_ALL in xtask/src/test/programs.rs do not agree")));
    }
    findings
}

/// Returns true if a filter for tests, such as `sqlite::in_file::`, selects the fixture.
fn is_started(name: &str, started: &[&str]) -> bool {
    started.iter().any(|filter| format!("{name}::").starts_with(filter))
}

impl Level {
    fn name(self) -> &'static str {
        match self {
            Self::Change => "change",
            Self::All => "all",
        }
    }
}

/// Returns the rows of the table whose first columns are headed "fixture" and "level".
fn table(document: &str) -> Levels {
    let rows = document.lines().skip_while(|line| !line.starts_with("| fixture | level |"));
    let row = |line: &str| {
        let mut cells = line.split('|').skip(1).map(str::trim);
        let name = cells.next()?.trim_matches('`').to_owned();
        let level = [Level::Change, Level::All].into_iter().find(|level| Some(level.name()) == cells.clone().next())?;
        Some((name, level))
    };
    rows.take_while(|line| line.starts_with('|')).filter_map(row).collect()
}

/// Returns the fixtures on which a file runs the suite.
fn tested(source: &SourceFile) -> Vec<(String, Level)> {
    let Some(file) = source.path.strip_prefix(TESTS).and_then(|path| path.strip_suffix(".rs")) else {
        return Vec::new();
    };
    let file = file.trim_end_matches("/mod").replace('/', "::");
    let mut module = None;
    let mut found = Vec::new();
    for line in source.code.lines() {
        if let Some(name) = line.strip_prefix("mod ").and_then(|rest| rest.strip_suffix(" {")) {
            module = Some(name);
        } else if line == "}" {
            module = None;
        } else if let Some((_, fixture)) = line.split_once("conformance!(") {
            let name = module.map_or_else(|| file.clone(), |module| format!("{file}::{module}"));
            let level = if fixture.starts_with("ignored ") { Level::All } else { Level::Change };
            found.push((name, level));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str =
        "| fixture | level | covers |\n|---|---|---|\n| `sqlite::fast` | change | x |\n| `sqlite::slow` | all | y |\n";

    const TESTED: &str = "mod fast {\n    onward_testkit::conformance!(crate::Fast);\n}\n\nmod slow {\n    conformance!(ignored crate::Slow);\n}\n";

    fn findings(document: &str, code: &str, started: &[&str]) -> usize {
        let source = SourceFile::new(format!("{TESTS}sqlite.rs"), code);
        compare(&table(document), &tested(&source).into_iter().collect(), started).len()
    }

    #[test]
    fn a_table_that_lists_the_fixtures_of_the_tests_passes() {
        assert_eq!(findings(TABLE, TESTED, &["sqlite::slow::"]), 0);
    }

    #[test]
    fn a_fixture_that_the_table_leaves_out_or_has_at_another_level_is_found() {
        assert_eq!(findings(&TABLE.replace("slow", "other"), TESTED, &["sqlite::slow::"]), 2);
        assert_eq!(findings(&TABLE.replace("| change |", "| all |"), TESTED, &["sqlite::slow::"]), 1);
    }

    #[test]
    fn a_fixture_that_no_command_starts_is_found() {
        assert_eq!(findings(TABLE, TESTED, &[]), 1);
        assert_eq!(findings(TABLE, TESTED, &["sqlite::"]), 1);
    }

    #[test]
    fn a_fixture_of_a_whole_file_has_the_name_of_the_file() {
        let source = SourceFile::new(format!("{TESTS}memory.rs"), "onward_testkit::conformance!(Memory);\n");
        assert_eq!(tested(&source), [("memory".to_owned(), Level::Change)]);
    }
}
