//! Checks that docs/dependencies.md gives a reason for every direct dependency, and names no other.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result};
use serde_json::Value;

use super::Finding;

const PATH: &str = "docs/dependencies.md";

/// Compares the first column of the document's tables with the workspace's direct dependencies.
pub(crate) fn check(document: &str, metadata: &Value) -> Result<Vec<Finding>> {
    let direct = direct(metadata)?;
    let named = named(document);
    let missing = direct.difference(&named).map(|name| format!("does not say why `{name}` is there"));
    let gone = named.difference(&direct).map(|name| format!("names `{name}`, which nothing depends on directly"));
    Ok(missing.chain(gone).map(|message| Finding::file(PATH, message)).collect())
}

/// Returns every dependency of a member that comes from a registry.
fn direct(metadata: &Value) -> Result<BTreeSet<&str>> {
    let packages = metadata["packages"].as_array().context("cargo metadata names no packages")?;
    let dependencies = packages.iter().filter_map(|package| package["dependencies"].as_array()).flatten();
    Ok(dependencies.filter(|it| it["source"].is_string()).filter_map(|it| it["name"].as_str()).collect())
}

/// Returns the names between backticks in the first column of each table.
fn named(document: &str) -> BTreeSet<&str> {
    let rows = document.lines().filter_map(|line| line.strip_prefix("| `"));
    rows.filter_map(|row| row.split('`').next()).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn findings(document: &str) -> usize {
        let ours = json!({ "name": "onward-store", "source": null });
        let serde = json!({ "name": "serde", "source": "registry+https://github.com/rust-lang/crates.io-index" });
        let metadata = json!({ "packages": [{ "name": "onward", "dependencies": [ours, serde] }] });
        check(document, &metadata).unwrap().len()
    }

    #[test]
    fn a_dependency_that_is_explained_passes() {
        assert_eq!(findings("| crate | why |\n|---|---|\n| `serde` | JSON |\n"), 0);
    }

    #[test]
    fn one_without_a_reason_and_one_that_is_gone_are_found() {
        assert_eq!(findings("We use serde.\n"), 1);
        assert_eq!(findings("| `serde` | JSON |\n| `chrono` | time |\n"), 1);
    }
}
