//! Compares the table of allowed dependencies in ARCHITECTURE.md with cargo's metadata of the
//! workspace.
//!
//! The table is the rule. It is read here, so the document cannot drift from the check.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result};
use serde_json::Value;

use super::Finding;

const PATH: &str = "ARCHITECTURE.md";

/// The crate that only tests may depend on, and that the tests of every crate may depend on.
const TEST_ONLY: &str = "onward-testkit";

/// The crates of this workspace that each crate may depend on.
type Allowed<'a> = BTreeMap<&'a str, BTreeSet<&'a str>>;

/// A dependency between two crates of the workspace.
struct Edge<'a> {
    from: &'a str,
    to: &'a str,
    is_test: bool,
}

/// Finds crates that are missing from the table or do not exist, and dependencies that it does not
/// allow.
pub(crate) fn check(document: &str, metadata: &Value) -> Result<Vec<Finding>> {
    let allowed = table(document);
    let packages = metadata["packages"].as_array().context("cargo metadata names no packages")?;
    let members: BTreeSet<&str> = packages.iter().filter_map(|package| package["name"].as_str()).collect();
    let mut findings = Vec::new();
    for missing in members.iter().filter(|member| !allowed.contains_key(*member)) {
        findings.push(Finding::file(PATH, format!("the table \"may depend on\" leaves out the crate `{missing}`")));
    }
    for gone in allowed.keys().filter(|name| !members.contains(*name)) {
        findings.push(Finding::file(PATH, format!("the table names `{gone}`, which is no crate of the workspace")));
    }
    let edges = packages.iter().flat_map(|package| edges(package, &members));
    findings.extend(edges.filter(|edge| !is_allowed(edge, &allowed)).map(|edge| refuse(&edge)));
    Ok(findings)
}

fn is_allowed(edge: &Edge<'_>, allowed: &Allowed<'_>) -> bool {
    if edge.to == TEST_ONLY {
        return edge.is_test;
    }
    allowed.get(edge.from).is_some_and(|targets| targets.contains(edge.to))
}

fn refuse(edge: &Edge<'_>) -> Finding {
    let remedy =
        if edge.to == TEST_ONLY { "make it a dev-dependency" } else { "turn it round, or change the design first" };
    Finding::file(
        format!("crates/{}/Cargo.toml", edge.from),
        format!("`{}` may not depend on `{}`; {remedy}", edge.from, edge.to),
    )
}

/// Returns the dependencies of a package on other members.
fn edges<'a>(package: &'a Value, members: &BTreeSet<&'a str>) -> Vec<Edge<'a>> {
    let from = package["name"].as_str().unwrap_or_default();
    let dependencies = package["dependencies"].as_array().map(Vec::as_slice).unwrap_or_default();
    let edge = |dependency: &'a Value| {
        let to = dependency["name"].as_str()?;
        Some(Edge { from, to, is_test: dependency["kind"].as_str() == Some("dev") })
    };
    dependencies.iter().filter_map(edge).filter(|edge| members.contains(edge.to)).collect()
}

/// Returns the rows of the table whose last column is headed "may depend on".
fn table(document: &str) -> Allowed<'_> {
    let rows = document
        .lines()
        .skip_while(|line| !(line.starts_with('|') && line.contains("may depend on")))
        .take_while(|line| line.starts_with('|'));
    let row = |line| {
        let cells: Vec<&str> = str::trim_matches(line, '|').split('|').collect();
        let name = quoted(cells.first()?).next()?;
        Some((name, quoted(cells.last()?).collect()))
    };
    rows.filter_map(row).collect()
}

/// Returns the texts between backticks.
fn quoted(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const DOCUMENT: &str = "\
        | crate | purpose | may depend on |\n|---|---|---|\n\
        | `onward-store` | keeps | – |\n| `onward` | runs | `onward-store` |\n| `onward-testkit` | tests | `onward-store` |\n";

    fn findings(document: &str, from: &str, to: &str, kind: Option<&str>) -> Vec<String> {
        let package = |name: &str| {
            let dependency = json!({ "name": to, "kind": kind });
            json!({ "name": name, "dependencies": if name == from { vec![dependency] } else { vec![] } })
        };
        let metadata = json!({ "packages": [package("onward-store"), package("onward"), package("onward-testkit")] });
        check(document, &metadata).unwrap().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn what_the_table_allows_passes() {
        assert!(findings(DOCUMENT, "onward", "onward-store", None).is_empty());
        assert!(findings(DOCUMENT, "onward", "serde", None).is_empty());
    }

    #[test]
    fn a_dependency_against_the_table_is_found() {
        assert_eq!(findings(DOCUMENT, "onward-store", "onward", None).len(), 1);
        assert_eq!(findings(DOCUMENT, "onward-store", "onward", Some("dev")).len(), 1);
    }

    #[test]
    fn the_testkit_is_for_tests_alone() {
        assert!(findings(DOCUMENT, "onward", "onward-testkit", Some("dev")).is_empty());
        assert_eq!(findings(DOCUMENT, "onward", "onward-testkit", None).len(), 1);
    }

    #[test]
    fn a_crate_left_out_or_gone_is_found() {
        assert_eq!(findings(&DOCUMENT.replace("| `onward` |", "| `onward-x` |"), "", "", None).len(), 2);
    }
}
