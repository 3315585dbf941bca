//! Checks that tests do not sleep. They wait for the event, or move a manual clock.

use super::Finding;
use super::exceptions::{Exceptions, Measured, Verdict, stale, verdict_of};
use crate::source::{SourceFile, identifiers};

/// Finds calls of `sleep` in test code beyond those that `xtask/tidy.toml` allows.
pub(crate) fn check(sources: &[SourceFile], exceptions: &Exceptions) -> Vec<Finding> {
    let mut findings = Vec::new();
    let found: Vec<_> =
        sources.iter().map(|source| (source, sleeps(source))).filter(|(_, at)| !at.is_empty()).collect();
    let mut needed = Vec::new();
    for (source, lines) in &found {
        let measured = Measured { file: &source.path, function: "", amount: lines.len() };
        match verdict_of(&measured, &exceptions.sleep) {
            Verdict::Agreed => {}
            Verdict::Shrunk => {
                let message = format!("{} sleeps are left; lower the limit in xtask/tidy.toml to that", lines.len());
                findings.push(Finding::file(&source.path, message));
            }
            Verdict::NotExcepted | Verdict::Exceeded => {
                let message = "a test sleeps; await the event or move a ManualClock";
                findings.extend(lines.iter().map(|&line| Finding::line(&source.path, line, message)));
            }
        }
        needed.push(measured);
    }
    for exception in stale(&exceptions.sleep, &needed) {
        let message = format!("`{}` does not sleep any more; remove its exception", exception.file);
        findings.push(Finding::file("xtask/tidy.toml", message));
    }
    findings
}

/// Returns the lines of test code that call a function named `sleep` or `sleep_until`.
fn sleeps(source: &SourceFile) -> Vec<usize> {
    let all = source.is_test();
    let is_sleep = |line: &str| {
        identifiers(line)
            .any(|(at, word)| matches!(word, "sleep" | "sleep_until") && line[at + word.len()..].starts_with('('))
    };
    let marked = source.code.lines().zip(source.test_lines()).enumerate();
    marked.filter(|(_, (line, in_tests))| (all || *in_tests) && is_sleep(line)).map(|(number, _)| number).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLEEPING: &str = "async fn f() { tokio::time::sleep(D).await; }\n";

    fn findings(path: &str, text: &str, exceptions: &str) -> Vec<String> {
        let exceptions = Exceptions::parse(exceptions).unwrap();
        check(&[SourceFile::new(path, text)], &exceptions).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_sleep_in_a_test_is_found_with_its_line() {
        let found = findings("crates/x/tests/it/a.rs", SLEEPING, "");
        assert!(found[0].starts_with("crates/x/tests/it/a.rs:1:"), "{found:?}");
    }

    #[test]
    fn a_sleep_in_a_test_module_is_found() {
        let text = format!("#[cfg(test)]\nmod tests {{\n{SLEEPING}}}\n");
        assert_eq!(findings("crates/x/src/a.rs", &text, "").len(), 1);
    }

    #[test]
    fn a_sleep_outside_tests_is_allowed() {
        assert!(findings("crates/x/src/a.rs", SLEEPING, "").is_empty());
    }

    #[test]
    fn a_sleep_with_a_reason_passes_until_it_is_gone() {
        let allowed = "[[sleep]]\nfile = \"crates/x/tests/a.rs\"\nlimit = 1\nreason = \"real time is the subject\"\n";
        assert!(findings("crates/x/tests/a.rs", SLEEPING, allowed).is_empty());
        assert_eq!(findings("crates/x/tests/a.rs", "fn f() {}\n", allowed).len(), 1);
    }
}
