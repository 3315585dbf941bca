//! Checks the cases of the engine's suite that leave a store out: `crates/onward/tests/stores.toml`
//! gives the reason for each.

use anyhow::{Context as _, Result};
use serde::Deserialize;

use super::Finding;
use crate::source::SourceFile;

/// The list of exceptions.
pub(crate) const LIST: &str = "crates/onward/tests/stores.toml";

/// The directory of the suite.
const SUITE: &str = "crates/onward/tests/it/";

/// The stores that a case may leave out.
const STORES: [&str; 3] = ["memory", "sqlite", "postgres"];

/// The beginning of a file's list of cases. A `}` ends the list.
const CASES: &str = "on_every_store! {\n";

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Exceptions {
    #[serde(default)]
    not_on: Vec<Exception>,
}

/// A case that does not run on one store.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Exception {
    /// The test as `file::case`.
    test: String,
    store: String,
    reason: String,
}

/// A case as its file lists it.
#[derive(Debug)]
struct Case<'a> {
    path: &'a str,
    /// The test as `file::case`.
    test: String,
    not_on: Option<&'a str>,
}

/// Finds exceptions without a reason, reasons without an exception, and tests that do not exist.
pub(crate) fn check(list: &str, sources: &[SourceFile]) -> Result<Vec<Finding>> {
    let Exceptions { not_on } = toml::from_str(list).with_context(|| format!("{LIST} cannot be read"))?;
    let cases: Vec<Case<'_>> = sources.iter().flat_map(cases).collect();
    let mut findings: Vec<Finding> = not_on.iter().filter_map(|exception| stale(exception, &cases)).collect();
    let has_reason = |case: &Case<'_>, store: &str| not_on.iter().any(|it| it.test == case.test && it.store == store);
    for case in &cases {
        if let Some(store) = case.not_on.filter(|store| !has_reason(case, store)) {
            let message = format!("`{}` does not run on {store}; give the reason in {LIST}", case.test);
            findings.push(Finding::file(case.path, message));
        }
    }
    Ok(findings)
}

/// Returns a finding if an entry of the list has no case or gives no reason.
fn stale(exception: &Exception, cases: &[Case<'_>]) -> Option<Finding> {
    let Exception { test, store, reason } = exception;
    let message = match cases.iter().find(|case| case.test == *test) {
        None => format!("there is no case `{test}`; remove its entry"),
        Some(_) if !STORES.contains(&store.as_str()) => format!("there is no store `{store}`"),
        Some(case) if case.not_on != Some(store) => format!("`{test}` runs on {store}; remove its entry"),
        Some(_) if reason.trim().is_empty() => format!("the entry of `{test}` gives no reason"),
        Some(_) => return None,
    };
    Some(Finding::file(LIST, message))
}

/// Reads the list of cases of one file.
fn cases<'a>(source: &'a SourceFile) -> Vec<Case<'a>> {
    let Some(module) = source.path.strip_prefix(SUITE).and_then(|name| name.strip_suffix(".rs")) else {
        return Vec::new();
    };
    let list = source.code.split_once(CASES).and_then(|(_, list)| list.split('}').next()).unwrap_or_default();
    let entries = list.split(',').map(str::trim).filter(|entry| !entry.is_empty());
    let case = |entry: &str| entry.split_whitespace().next().map(|case| format!("{module}::{case}"));
    let not_on = |entry: &'a str| entry.split_once(" not on ").map(|(_, store)| store.trim());
    entries.filter_map(|entry| Some(Case { path: &source.path, test: case(entry)?, not_on: not_on(entry) })).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const REASON: &str = "[[not_on]]\ntest = \"a::one\"\nstore = \"postgres\"\nreason = \"it is about files\"\n";

    fn findings(list: &str, cases: &str) -> Vec<String> {
        let text = format!("on_every_store! {{\n{cases}}}\n");
        let found = check(list, &[SourceFile::new("crates/onward/tests/it/a.rs", text)]).unwrap();
        found.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn an_exception_with_a_reason_passes() {
        assert!(findings(REASON, "    one not on postgres,\n    two with threads,\n").is_empty());
    }

    #[test]
    fn an_exception_without_a_reason_is_found() {
        let found = findings("", "    one with threads not on postgres,\n");
        assert!(found[0].contains("`a::one` does not run on postgres"), "{found:?}");
        assert_eq!(findings(&REASON.replace("postgres", "memory"), "    one not on postgres,\n").len(), 2);
        assert_eq!(findings(&REASON.replace("it is about files", " "), "    one not on postgres,\n").len(), 1);
    }

    #[test]
    fn a_reason_without_an_exception_is_found() {
        let found = findings(REASON, "    one,\n");
        assert!(found[0].contains("`a::one` runs on postgres"), "{found:?}");
    }

    #[test]
    fn a_store_that_does_not_exist_is_found() {
        let found = findings(&REASON.replace("postgres", "postgre"), "    one not on postgre,\n");
        assert!(found[0].contains("there is no store `postgre`"), "{found:?}");
    }

    #[test]
    fn a_reason_for_a_test_that_does_not_exist_is_found() {
        let found = findings(REASON, "    two,\n");
        assert!(found[0].contains("there is no case `a::one`"), "{found:?}");
    }
}
