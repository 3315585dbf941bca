//! Checks that the lock files of other workspaces know the dependencies of our crates. They are
//! built with `--locked`, which refuses a lock file that a new dependency has made stale.

use anyhow::{Context as _, Result};
use serde_json::Value;

use super::Finding;

/// The name of lock files.
const NAME: &str = "Cargo.lock";

/// Returns true for the lock file of another workspace; cargo itself keeps that of ours fresh.
pub(crate) fn is_of_another_workspace(path: &str) -> bool {
    path.strip_suffix(NAME).is_some_and(|folder| folder.ends_with('/'))
}

/// Finds dependencies of members that a lock file with these members leaves out. Optional ones
/// depend on features, and those of tests are not built there.
pub(crate) fn check(path: &str, lock: &str, metadata: &Value) -> Result<Vec<Finding>> {
    let lock: toml::Table = lock.parse().with_context(|| format!("{path} cannot be read"))?;
    let locked = lock.get("package").and_then(toml::Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let members = metadata["packages"].as_array().context("cargo metadata names no packages")?;
    let mut findings = Vec::new();
    for member in members {
        let Some(name) = member["name"].as_str() else { continue };
        let Some(known) = locked.iter().find(|package| is_named(package, name)).map(dependencies) else { continue };
        let missing = required(member).filter(|dependency| !known.contains(dependency));
        findings.extend(missing.map(|dependency| stale(path, name, dependency)));
    }
    Ok(findings)
}

fn stale(path: &str, name: &str, dependency: &str) -> Finding {
    let manifest = path.replace(NAME, "Cargo.toml");
    let remedy = format!("run `cargo update --workspace --manifest-path {manifest}`");
    Finding::file(path, format!("leaves out `{dependency}`, a dependency of `{name}`; {remedy}"))
}

/// Returns true for an entry of this name without a source, which is a package in this repository.
fn is_named(package: &toml::Value, name: &str) -> bool {
    package.get("source").is_none() && package.get("name").and_then(toml::Value::as_str) == Some(name)
}

/// Returns the names of an entry's dependencies. A version follows a name that occurs twice.
fn dependencies(package: &toml::Value) -> Vec<&str> {
    let list = package.get("dependencies").and_then(toml::Value::as_array).map(Vec::as_slice).unwrap_or_default();
    list.iter().filter_map(|entry| entry.as_str()?.split(' ').next()).collect()
}

/// Returns the names of a member's dependencies that every build of it has.
fn required(member: &Value) -> impl Iterator<Item = &str> {
    let all = member["dependencies"].as_array().map(Vec::as_slice).unwrap_or_default();
    let is_required = |dependency: &&Value| {
        dependency["kind"].as_str() != Some("dev") && dependency["optional"] != true && dependency["target"].is_null()
    };
    all.iter().filter(is_required).filter_map(|dependency| dependency["name"].as_str())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const LOCK: &str =
        "[[package]]\nname = \"onward\"\nversion = \"0.1.0\"\ndependencies = [\n \"jiff\",\n \"syn 2.0.1\",\n]\n";

    fn findings(dependency: &Value) -> usize {
        let metadata = json!({ "packages": [{ "name": "onward", "dependencies": [dependency] }] });
        check("bench/Cargo.lock", LOCK, &metadata).unwrap().len()
    }

    #[test]
    fn a_dependency_that_the_lock_file_knows_passes() {
        assert_eq!(findings(&json!({ "name": "jiff", "optional": false })), 0);
        assert_eq!(findings(&json!({ "name": "syn", "optional": false })), 0);
    }

    #[test]
    fn a_new_dependency_is_found() {
        assert_eq!(findings(&json!({ "name": "jsonschema", "optional": false })), 1);
    }

    #[test]
    fn dependencies_of_tests_features_and_other_systems_pass() {
        assert_eq!(findings(&json!({ "name": "insta", "kind": "dev" })), 0);
        assert_eq!(findings(&json!({ "name": "anyhow", "optional": true })), 0);
        assert_eq!(findings(&json!({ "name": "procfs-core", "target": "cfg(unix)" })), 0);
    }

    #[test]
    fn the_lock_file_of_the_main_workspace_is_left_to_cargo() {
        assert!(is_of_another_workspace("bench/Cargo.lock") && !is_of_another_workspace("Cargo.lock"));
    }
}
