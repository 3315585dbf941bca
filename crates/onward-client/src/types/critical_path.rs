//! The critical path of a run.

use serde::Deserialize;

/// The chain of steps that determined the duration of a run. Each step of it was ready when the one
/// before it ended. In a run that has not ended it ends with an open step.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct CriticalPath {
    /// The id of the run.
    pub id: String,
    /// The name of the template.
    pub workflow: String,
    /// The phase.
    pub phase: String,
    /// The time at which the run was submitted.
    pub started_at: String,
    /// The time of its end.
    pub ended_at: Option<String>,
    /// The time from the start to the end or until now, in seconds.
    pub took: f64,
    /// The steps of the path, the first one first.
    pub steps: Vec<CriticalStep>,
    /// The time behind the last step, in seconds.
    pub rest: f64,
    /// The other steps that ran, those with the least slack first.
    pub others: Vec<SlackStep>,
}

/// A step of a critical path.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct CriticalStep {
    /// The name.
    pub name: String,
    /// The field of the template that says what the step is, such as `task` or `signal`.
    pub kind: String,
    /// The state.
    pub state: String,
    /// The number of attempts.
    pub attempts: u32,
    /// The seconds from the end of the step before, or the start of the run, until its start.
    pub waited: f64,
    /// The seconds from its start to its end or until now.
    pub took: f64,
    /// The part of the run's duration, from 0 to 1.
    pub share: f64,
}

/// A step beside a critical path.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct SlackStep {
    /// The name.
    pub name: String,
    /// The field of the template that says what the step is.
    pub kind: String,
    /// The state.
    pub state: String,
    /// The seconds from its start to its end or until now.
    pub took: f64,
    /// The most seconds by which it could have ended later without a later end of the last step.
    pub slack: f64,
}
