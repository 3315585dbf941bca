//! Checks the profile of ordinary builds: it optimizes dependencies a little, and neither
//! procedural macros nor our own crates.

use anyhow::{Context as _, Result};
use serde_json::Value;

use super::Finding;

/// The manifests of workspaces whose programs tests use.
pub(crate) const MANIFESTS: [&str; 3] = ["Cargo.toml", "bench/Cargo.toml", "xtask/interop/sqlx/Cargo.toml"];

/// The manifest whose members must be listed.
const MAIN: &str = "Cargo.toml";

/// Finds settings for all packages, which would also apply to macros, and members of the main
/// workspace without settings of their own, which would be optimized and without line numbers.
pub(crate) fn check(path: &str, manifest: &str, metadata: &Value) -> Result<Vec<Finding>> {
    let manifest: toml::Table = manifest.parse().with_context(|| format!("{path} cannot be read"))?;
    let profile = manifest.get("profile").and_then(|profiles| profiles.get("dev"));
    let packages = profile.and_then(|profile| profile.get("package")).and_then(toml::Value::as_table);
    let is_listed = |name: &str| packages.is_some_and(|packages| packages.contains_key(name));
    let mut findings = Vec::new();
    if is_listed("*") {
        let message = "`profile.dev.package.\"*\"` also applies to macros and takes precedence over `build-override`; \
                       set `profile.dev` and list our own crates";
        findings.push(Finding::file(path, message));
    }
    if path == MAIN {
        let members = metadata["packages"].as_array().context("cargo metadata names no packages")?;
        let unlisted = members.iter().filter_map(|member| member["name"].as_str()).filter(|name| !is_listed(name));
        findings
            .extend(unlisted.map(|name| Finding::file(path, format!("has no `profile.dev.package.{name}`; add it"))));
    }
    Ok(findings)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn findings(path: &str, manifest: &str) -> usize {
        let metadata = json!({ "packages": [{ "name": "onward" }] });
        check(path, manifest, &metadata).unwrap().len()
    }

    #[test]
    fn settings_for_all_packages_are_found() {
        assert_eq!(findings("bench/Cargo.toml", "[profile.dev.package.\"*\"]\nopt-level = 1\n"), 1);
        assert_eq!(findings("bench/Cargo.toml", "[profile.dev]\nopt-level = 1\n"), 0);
    }

    #[test]
    fn a_member_without_settings_is_found() {
        assert_eq!(findings(MAIN, "[profile.dev.package.onward]\nopt-level = 0\n"), 0);
        assert_eq!(findings(MAIN, "[profile.dev]\nopt-level = 1\n"), 1);
    }
}
