//! The description of a patch, and the check that it is still true.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use super::ambiguous_hunks;
use crate::command;
use crate::project::Project;
use crate::tidy::Finding;

const DIRECTORY: &str = "xtask/mutants/";

/// A mutant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Patch {
    pub(crate) name: String,
    /// The path of the patch, relative to the root of the project.
    pub(crate) path: String,
    /// The name of the feature or fault that it breaks, from `docs/features.toml`.
    pub(crate) breaks: String,
    pub(crate) test: Test,
}

/// The test that must catch a mutant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Test {
    pub(crate) package: String,
    /// The full path of the test in the package's test program `it`.
    pub(crate) path: String,
}

impl Patch {
    fn parse(path: &str, text: &str) -> Result<Self> {
        let name = Path::new(path).file_stem().and_then(|stem| stem.to_str()).context("a patch has a name")?;
        let header = text.split("\n--- ").next().unwrap_or_default();
        let field = |field: &str| {
            let value = header.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':')).map(str::trim);
            value
                .filter(|value| !value.is_empty())
                .with_context(|| format!("{path} has no line `{field}: …` before its changes"))
        };
        let (package, test) =
            field("Test")?.split_once(' ').with_context(|| format!("{path}: a test is named `CRATE PATH`"))?;
        Ok(Self {
            name: name.to_owned(),
            path: path.to_owned(),
            breaks: field("Breaks")?.to_owned(),
            test: Test { package: package.to_owned(), path: test.trim().to_owned() },
        })
    }
}

/// Returns every patch, by name.
pub(crate) fn all(project: &Project) -> Result<Vec<Patch>> {
    let paths = project.files_with("patch").filter(|path| path.starts_with(DIRECTORY));
    paths.map(|path| Patch::parse(path, &project.read(path)?)).collect()
}

/// Returns the names of the patches, by the feature or fault that they break.
pub(crate) fn by_what_they_break(project: &Project) -> Result<BTreeMap<String, Vec<String>>> {
    let mut names = BTreeMap::<String, Vec<String>>::new();
    for patch in all(project)? {
        names.entry(patch.breaks).or_default().push(patch.name);
    }
    Ok(names)
}

/// Finds patches that no longer apply or that name something missing, and faults that no patch
/// reintroduces. A patch may break the names in `known`, and each name in `required` needs a patch.
pub(crate) fn check(project: &Project, known: &BTreeSet<String>, required: &BTreeSet<String>) -> Result<Vec<Finding>> {
    let patches = all(project)?;
    let mut findings = missing(&patches, required);
    for patch in &patches {
        let mut find = |message: String| findings.push(Finding::file(&patch.path, message));
        if !known.contains(&patch.breaks) {
            find(format!("breaks `{}`, which docs/features.toml does not have", patch.breaks));
        }
        if !exists(project, &patch.test)? {
            find(format!("names the test `{}` of {}, which is not there", patch.test.path, patch.test.package));
        }
        if let Err(error) = applies(project.root(), &patch.path) {
            find(format!("does not apply any more; make it again from the current code: {error:#}"));
        } else {
            ambiguous_hunks::messages(project.root(), &project.read(&patch.path)?)?.into_iter().for_each(find);
        }
    }
    Ok(findings)
}

fn missing(patches: &[Patch], required: &BTreeSet<String>) -> Vec<Finding> {
    let broken: BTreeSet<&str> = patches.iter().map(|patch| patch.breaks.as_str()).collect();
    let missing = required.iter().filter(|name| !broken.contains(name.as_str()));
    missing.map(|name| Finding::file(DIRECTORY, format!("no patch brings `{name}` back"))).collect()
}

/// The modules that a file of the engine's suite has for its cases on each store.
const STORES: [&str; 3] = ["on_memory", "on_sqlite", "on_postgres"];

/// Returns whether a test of this name exists in the module that the path names, either in the
/// package or in the test kit whose cases it runs.
fn exists(project: &Project, test: &Test) -> Result<bool> {
    let parts: Vec<&str> = test.path.split("::").filter(|part| !STORES.contains(part)).collect();
    let [.., module, name] = parts[..] else { return Ok(false) };
    let function = format!("fn {name}(");
    let directories =
        [format!("crates/{}/tests/it/", test.package), "crates/onward-testkit/src/conformance/".to_owned()];
    let file = format!("{module}.rs");
    for path in
        project.files_with("rs").filter(|path| directories.iter().any(|directory| path.starts_with(directory.as_str())))
    {
        if path.rsplit('/').next() == Some(&file) && project.read(path)?.contains(&function) {
            return Ok(true);
        }
    }
    Ok(false)
}

fn applies(root: &Path, patch: &str) -> Result<()> {
    command::output(git_apply(root).args(["--check", patch])).map(drop)
}

/// Applies a patch to the tree at `root`.
pub(crate) fn apply(root: &Path, patch: &Path) -> Result<()> {
    ensure!(patch.is_file(), "{} is not there", patch.display());
    command::output(git_apply(root).arg(patch)).map(drop)
}

/// Returns `git apply` as a plain patch tool. It ignores the repository around the tree, because
/// git would otherwise skip files outside its directory.
fn git_apply(root: &Path) -> Command {
    let mut git = Command::new("git");
    git.args(["-c", "safe.directory=*", "apply"]).current_dir(root).env_remove("GIT_DIR").env_remove("GIT_WORK_TREE");
    if let Some(above) = root.parent() {
        git.env("GIT_CEILING_DIRECTORIES", above);
    }
    git
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str =
        "Breaks: leaked-slot\nTest: onward ends::a_panic\n\nBecause.\n\n--- a/x.rs\n+++ b/x.rs\nTest: other x::y\n";

    #[test]
    fn a_patch_says_what_it_breaks_and_what_must_catch_it() {
        let patch = Patch::parse("xtask/mutants/slot.patch", TEXT).unwrap();
        assert_eq!((patch.name.as_str(), patch.breaks.as_str()), ("slot", "leaked-slot"));
        assert_eq!(patch.test, Test { package: "onward".into(), path: "ends::a_panic".into() });
    }

    #[test]
    fn a_patch_without_a_test_is_refused() {
        let error =
            Patch::parse("xtask/mutants/slot.patch", &TEXT.replace("Test: onward ends::a_panic", "")).unwrap_err();
        assert!(error.to_string().contains("no line `Test: …` before"), "{error}");
    }

    #[test]
    fn a_fault_that_no_patch_brings_back_is_found() {
        let patches = [Patch::parse("xtask/mutants/slot.patch", TEXT).unwrap()];
        let required = |name: &str| BTreeSet::from([name.to_owned()]);
        assert_eq!(missing(&patches, &required("leaked-slot")), []);
        assert_eq!(missing(&patches, &required("lost-events")).len(), 1);
    }

    #[test]
    fn a_patch_applies_where_its_lines_are_and_nowhere_else() {
        let root = tempfile::tempdir().unwrap();
        std::fs::write(root.path().join("x.rs"), "one\ntwo\n").unwrap();
        let patch = "Breaks: x\nTest: y z::w\n\n--- a/x.rs\n+++ b/x.rs\n@@ -1,2 +1,2 @@\n one\n-two\n+three\n";
        std::fs::write(root.path().join("p.patch"), patch).unwrap();
        applies(root.path(), "p.patch").unwrap();
        apply(root.path(), &root.path().join("p.patch")).unwrap();
        assert_eq!(std::fs::read_to_string(root.path().join("x.rs")).unwrap(), "one\nthree\n");
        applies(root.path(), "p.patch").unwrap_err();
    }
}
