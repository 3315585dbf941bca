//! The programs of the test build. Other steps use them, so that no step builds them a second time.

use std::path::PathBuf;
use std::process::Stdio;

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use crate::command;
use crate::project::Project;

/// The kind of a built program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Program,
    Example,
}

/// A built program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Artifact {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    pub(crate) path: PathBuf,
}

/// Builds everything that `cargo test --workspace` builds, with the same features. Returns the
/// programs and examples in it.
pub(crate) fn build(project: &Project) -> Result<Vec<Artifact>> {
    let output = command::cargo()
        .args(["test", "--workspace", "--no-run", "--quiet", "--message-format=json"])
        .current_dir(project.root())
        .stderr(Stdio::inherit())
        .output()
        .context("cannot start cargo")?;
    if !output.status.success() {
        bail!("the workspace does not build; `cargo test --workspace --no-run` says why");
    }
    let messages = String::from_utf8(output.stdout).context("cargo did not write UTF-8")?;
    Ok(messages.lines().filter_map(artifact).collect())
}

/// Returns the path of the program `onward`.
pub(crate) fn onward(project: &Project) -> Result<PathBuf> {
    let artifacts = build(project)?;
    let found = artifacts.into_iter().find(|it| it.kind == Kind::Program && it.name == "onward");
    Ok(found.context("the test build left no program `onward`; does crates/onward-cli have an integration test?")?.path)
}

/// Returns the path of the test program of this name in cargo's messages.
pub(crate) fn test_program(messages: &str, name: &str) -> Option<PathBuf> {
    let messages = messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut tests = messages.filter(|message| message["profile"]["test"] == true && message["target"]["name"] == name);
    Some(tests.find_map(|message| Some(message["executable"].as_str()?.to_owned()))?.into())
}

/// Returns the program or example that a line of cargo's messages reports as built, if any.
fn artifact(line: &str) -> Option<Artifact> {
    let message: Value = serde_json::from_str(line).ok()?;
    let path = message["executable"].as_str()?.into();
    let kind = match message["target"]["kind"][0].as_str()? {
        "example" => Kind::Example,
        "bin" if message["profile"]["test"] == false => Kind::Program,
        _ => return None,
    };
    Some(Artifact { name: message["target"]["name"].as_str()?.to_owned(), kind, path })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(kind: &str, test: bool) -> String {
        format!(
            r#"{{"reason":"compiler-artifact","target":{{"name":"a","kind":["{kind}"]}},"profile":{{"test":{test}}},"executable":"/t/a"}}"#
        )
    }

    #[test]
    fn programs_and_examples_are_distinguished_from_tests() {
        assert_eq!(artifact(&message("example", false)).map(|it| it.kind), Some(Kind::Example));
        assert_eq!(artifact(&message("bin", false)).map(|it| it.kind), Some(Kind::Program));
        assert_eq!(artifact(&message("bin", true)), None);
        assert_eq!(artifact(&message("test", true)), None);
    }

    #[test]
    fn a_test_program_is_found_by_its_name() {
        let messages = format!("{}\n{}\n", message("lib", false), message("test", true));
        assert_eq!(test_program(&messages, "a"), Some("/t/a".into()));
        assert_eq!(test_program(&messages, "b"), None);
    }

    #[test]
    fn other_lines_are_passed_over() {
        assert_eq!(artifact(r#"{"reason":"build-finished","success":true}"#), None);
    }
}
