//! The result of a check.

use serde::Serialize;

use crate::exit_code::ExitCode;
use crate::output::print_line;

/// The severity of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Level {
    /// As it should be.
    Ok,
    /// It works, but the operator should know.
    Warn,
    /// Work has stopped or is in danger.
    Bad,
}

/// The result of one check, with a remedy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Finding {
    pub(super) check: &'static str,
    pub(super) level: Level,
    pub(super) found: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) remedy: Option<String>,
}

impl Finding {
    /// Creates a finding without a problem.
    pub(super) fn ok(check: &'static str, found: impl Into<String>) -> Self {
        Self { check, level: Level::Ok, found: found.into(), remedy: None }
    }

    /// Creates a finding that the operator should know.
    pub(super) fn warn(check: &'static str, found: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { check, level: Level::Warn, found: found.into(), remedy: Some(remedy.into()) }
    }

    /// Creates a finding that the operator must act on.
    pub(super) fn bad(check: &'static str, found: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { check, level: Level::Bad, found: found.into(), remedy: Some(remedy.into()) }
    }

    /// Returns true if opening the store would migrate it, which a check must not do.
    pub(super) fn has_older_schema(&self) -> bool {
        self.check == "schema" && self.level == Level::Warn
    }

    /// Prints the finding for people.
    pub(super) fn print(&self) -> std::io::Result<()> {
        let (style, word) = match self.level {
            Level::Ok => (anstyle::AnsiColor::Green.on_default(), "ok"),
            Level::Warn => (anstyle::AnsiColor::Yellow.on_default(), "warn"),
            Level::Bad => (anstyle::AnsiColor::Red.on_default(), "bad"),
        };
        print_line(format_args!("{style}{word:<4}{style:#}  {:<14} {}", self.check, self.found))?;
        self.remedy.iter().try_for_each(|remedy| print_line(format_args!("{:22}→ {remedy}", "")))
    }
}

/// Returns 1 if any finding is bad, otherwise 0.
pub(super) fn exit_code(findings: &[Finding]) -> ExitCode {
    match findings.iter().map(|finding| finding.level).max() {
        Some(Level::Bad) => ExitCode::Failed,
        _ => ExitCode::Done,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warning_is_no_failure() {
        assert_eq!(exit_code(&[Finding::ok("a", ""), Finding::warn("b", "", "")]), ExitCode::Done);
    }

    #[test]
    fn one_bad_finding_is() {
        assert_eq!(exit_code(&[Finding::bad("a", "", ""), Finding::ok("b", "")]), ExitCode::Failed);
    }
}
