//! The outcome of a test.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde::Serialize;

use crate::workflow::run::Phase;

/// The outcome of all cases of a test file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct WorkflowTestReport {
    /// The name of the test file.
    pub file: String,
    /// The cases, in the order of their names.
    pub cases: Vec<CaseReport>,
}

/// The outcome of a case.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct CaseReport {
    /// The name.
    pub name: String,
    /// The differences to what the case expects; none if it passed.
    pub mismatches: Vec<String>,
    /// The phase in which the run ended, or is held.
    pub state: Phase,
    /// The time that the run took by its own clock.
    pub took: Duration,
    /// The states of the steps.
    pub steps: BTreeMap<String, String>,
}

impl WorkflowTestReport {
    /// Returns true if every case passed.
    #[must_use]
    pub fn is_ok(&self) -> bool {
        self.cases.iter().all(CaseReport::is_ok)
    }
}

impl CaseReport {
    /// Returns true if the run came to what the case expects.
    #[must_use]
    pub fn is_ok(&self) -> bool {
        self.mismatches.is_empty()
    }
}

impl fmt::Display for WorkflowTestReport {
    /// Writes a line for each case, and one for each difference below it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for case in &self.cases {
            writeln!(f, "{} {}", if case.is_ok() { "ok" } else { "FAILED" }, case.name)?;
            case.mismatches.iter().try_for_each(|mismatch| writeln!(f, "    {mismatch}"))?;
        }
        let failed = self.cases.iter().filter(|case| !case.is_ok()).count();
        write!(f, "{}: {} passed, {failed} failed", self.file, self.cases.len() - failed)
    }
}
