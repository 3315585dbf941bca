//! The tests that name a feature or a fault, and the mutants that reintroduce a fault.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;

use crate::mutants;
use crate::project::Project;
use crate::source::identifiers;

const MARKS: [&str; 2] = ["/// Shows:", "/// Beats:"];

/// A test that names a feature or a fault.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Shown {
    pub(super) path: String,
    pub(super) test: String,
}

/// Tests and patches, by the id of a feature or the name of a fault.
#[derive(Debug, Default)]
pub(super) struct Evidence {
    tests: BTreeMap<String, BTreeSet<Shown>>,
    patches: BTreeMap<String, Vec<String>>,
}

impl Evidence {
    pub(super) fn read(project: &Project) -> Result<Self> {
        let mut evidence = Self { patches: mutants::by_what_they_break(project)?, ..Self::default() };
        for path in project.files_with("rs").filter(|path| path.starts_with("crates/")) {
            evidence.collect(path, &project.read(path)?);
        }
        Ok(evidence)
    }

    /// Adds the tests of one file.
    pub(super) fn collect(&mut self, path: &str, text: &str) {
        let mut lines = text.lines();
        while let Some(line) = lines.next() {
            let Some(ids) = MARKS.iter().find_map(|mark| line.trim_start().strip_prefix(mark)) else { continue };
            let Some(test) = lines.clone().find_map(function_name) else { continue };
            for id in ids.split(',') {
                let id = id.trim().trim_end_matches('.').to_owned();
                let shown = Shown { path: path.to_owned(), test: test.to_owned() };
                self.tests.entry(id).or_default().insert(shown);
            }
        }
    }

    /// Returns every name that a test uses.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.tests.keys().map(String::as_str)
    }

    /// Returns the tests that name `id`, by file.
    pub(super) fn tests(&self, id: &str) -> impl Iterator<Item = &Shown> {
        self.tests.get(id).into_iter().flatten()
    }

    /// Returns the names of the patches that break `id`.
    pub(super) fn patches(&self, id: &str) -> impl Iterator<Item = &str> {
        self.patches.get(id).into_iter().flatten().map(String::as_str)
    }
}

fn function_name(line: &str) -> Option<&str> {
    let mut words = identifiers(line.trim_start().strip_prefix("//").map_or(line, |_| "")).map(|(_, word)| word);
    words.find(|word| *word == "fn")?;
    words.next()
}

#[cfg(test)]
pub(super) mod tests {
    use super::Evidence;

    pub(in crate::features) const TEST: &str =
        "/// Nothing is lost.\n///\n/// Shows: T8, Q1.\n#[tokio::test]\nasync fn a_dead_letter_can_be_retried() {\n";

    pub(in crate::features) fn evidence(text: &str) -> Evidence {
        let mut evidence = Evidence::default();
        evidence.collect("crates/x/tests/it/a.rs", text);
        evidence.patches.insert("lost-letters".to_owned(), vec!["no-retry".to_owned()]);
        evidence
    }

    #[test]
    fn a_test_names_what_it_shows() {
        let evidence = evidence(TEST);
        assert_eq!(evidence.names().collect::<Vec<_>>(), ["Q1", "T8"]);
        assert!(evidence.tests("T8").all(|shown| shown.test == "a_dead_letter_can_be_retried"));
    }
}
