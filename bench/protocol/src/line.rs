//! A line of a record: one JSON object.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::scenario::{Better, DurabilityLevel};

/// A result: of one run as a program prints it, or of all runs as the runner records it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// The row, such as `T/submit_tasks/1000`.
    pub row: String,
    /// The failures that an acknowledged write survives.
    pub durability: DurabilityLevel,
    /// `onward`, `ceiling`, or the peer's name.
    pub system: String,
    /// The name of the settings.
    pub settings: String,
    /// The figure. In a record, the median over all runs.
    pub value: f64,
    /// The unit of the figure.
    pub unit: String,
    /// The direction in which the figure is better.
    pub better: Better,
    /// The smallest figure of any run.
    pub min: f64,
    /// The largest figure of any run.
    pub max: f64,
    /// The median latency of single operations in microseconds, if the row has them.
    pub p50: Option<f64>,
    /// The 99th percentile of single operations in microseconds.
    pub p99: Option<f64>,
    /// The 99.9th percentile of single operations in microseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p999: Option<f64>,
    /// The number of runs.
    pub runs: u32,
    /// The figure of each run, in order. Only in a record.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub figures: Vec<f64>,
    /// Tasks that were acknowledged and never ended.
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

/// The sizes of the commits of a run, which a ceiling must repeat to be comparable.
///
/// As text: `commits,submits,claims,completions`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct CommitSizes {
    /// Commits for each 1000 tasks.
    pub commits: f64,
    /// Submits in a commit that has any, on average.
    pub submits: f64,
    /// Claimed tasks in a commit that has any, on average. Zero if no commit has any.
    pub claims: f64,
    /// Completions in a commit that has any, on average. Zero if no commit has any.
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
