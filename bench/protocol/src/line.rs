//! The line of a record: one JSON object.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::scenario::{Better, Class};

/// One result: of one run as a program prints it, or of all runs as the runner records it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// The row, such as `T/submit_tasks/1000`.
    pub row: String,
    /// What an acknowledgement survives.
    pub class: Class,
    /// `onward`, `ceiling`, or the peer's name.
    pub system: String,
    /// With which settings.
    pub settings: String,
    /// The figure; the median over runs in a record.
    pub value: f64,
    /// Of what.
    pub unit: String,
    /// Which way is good.
    pub better: Better,
    /// The smallest figure of any run.
    pub min: f64,
    /// The largest figure of any run.
    pub max: f64,
    /// Median latency of single operations in microseconds, if the row has such.
    pub p50: Option<f64>,
    /// 99th percentile of single operations in microseconds.
    pub p99: Option<f64>,
    /// 99.9th percentile of single operations in microseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p999: Option<f64>,
    /// How many runs.
    pub runs: u32,
    /// The figure of each run, in their order; of a record alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub figures: Vec<f64>,
    /// Tasks acknowledged that never ended.
    pub lost: u64,
    /// Tasks that ended more than once.
    pub duplicated: u64,
    /// CPU time of the whole program, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_seconds: Option<f64>,
    /// Peak resident memory of the program, in MiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_mib: Option<f64>,
    /// The sizes of the run's commits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commits: Option<CommitSizes>,
    /// Further figures.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub extra: BTreeMap<String, f64>,
}

/// How large the commits of a run were: what a ceiling must repeat to be comparable.
///
/// As text: `commits,submits,claims,completions`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct CommitSizes {
    /// Commits for each 1000 lives.
    pub commits: f64,
    /// Submits in a commit that has any, on average.
    pub submits: f64,
    /// Claimed tasks in a commit that has any, on average; zero if none has.
    pub claims: f64,
    /// Completions in a commit that has any, on average; zero if none has.
    pub completions: f64,
}

impl fmt::Display for CommitSizes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.3},{:.3},{:.3},{:.3}", self.commits, self.submits, self.claims, self.completions)
    }
}

impl FromStr for CommitSizes {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parts: Vec<f64> = text.split(',').map(str::parse).collect::<Result<_, _>>()?;
        let &[commits, submits, claims, completions] = parts.as_slice() else {
            anyhow::bail!("`{text}` is not `commits,submits,claims,completions`");
        };
        anyhow::ensure!(
            commits > 0.0 && parts.iter().all(|part| part.is_finite() && *part >= 0.0),
            "the commit sizes `{text}` must be numbers, and there must be commits"
        );
        Ok(Self { commits, submits, claims, completions })
    }
}
