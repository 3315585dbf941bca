//! The critical path of a run for readers.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use onward_store::{TaskId, Timestamp};
use serde::Serialize;

use super::view::{RunView, StepView};
use crate::engine::Engine;
use crate::error::Result;
use crate::workflow::critical_path::{Link, Path, TimedStep, critical_path};
use crate::workflow::run::{Phase, StepState};
use crate::workflow::template::{Step, StepAction, WorkKind};

/// The chain of steps that determined the duration of a run ([`Engine::critical_path`]).
///
/// Each step of the chain was ready when the one before it ended. So the times of its steps add up
/// to the time from the start of the run to the end of the last step.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct CriticalPath {
    /// The task of the run.
    pub id: TaskId,
    /// The name of the template.
    pub workflow: String,
    /// The phase.
    pub phase: Phase,
    /// The time at which the run was submitted.
    pub started_at: Timestamp,
    /// The time of its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    /// The time from the start to the end or until now, in seconds when serialized.
    #[serde(serialize_with = "seconds")]
    pub took: Duration,
    /// The chain, the first step first.
    pub steps: Vec<CriticalStep>,
    /// The time behind the last step, such as that of undos, in seconds when serialized.
    #[serde(serialize_with = "seconds")]
    pub rest: Duration,
    /// The other steps that ran, those with the least slack first.
    pub others: Vec<SlackStep>,
}

/// A step of a critical path.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct CriticalStep {
    /// The name.
    pub name: String,
    /// The field of the template that says what the step is, such as `task` or `signal`.
    pub kind: &'static str,
    /// The state.
    pub state: StepState,
    /// The attempts that began.
    pub attempts: u32,
    /// The time from the end of the step before, or the start of the run, until the start. It has
    /// pauses and earlier epochs of a step that was retried by hand. In seconds when serialized.
    #[serde(serialize_with = "seconds")]
    pub waited: Duration,
    /// The time from the start to the end or until now, with delays, queues, attempts and items.
    /// In seconds when serialized.
    #[serde(serialize_with = "seconds")]
    pub took: Duration,
    /// The part of the run's duration that is `waited` and `took`, from 0 to 1.
    pub share: f64,
}

/// A step beside a critical path.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct SlackStep {
    /// The name.
    pub name: String,
    /// The field of the template that says what the step is.
    pub kind: &'static str,
    /// The state.
    pub state: StepState,
    /// The time from the start to the end or until now, in seconds when serialized.
    #[serde(serialize_with = "seconds")]
    pub took: Duration,
    /// The most by which it could have ended later without a later end of the last step, in seconds
    /// when serialized.
    #[serde(serialize_with = "seconds")]
    pub slack: Duration,
}

fn seconds<S: serde::Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(time.as_secs_f64())
}

/// Critical paths of runs.
impl Engine {
    /// Returns the chain of steps that determined the duration of a run, and the slack of the other
    /// steps. In a run that has not ended, the chain ends with an open step, and its times last
    /// until now.
    ///
    /// # Errors
    /// As [`run_view`](Self::run_view).
    pub async fn critical_path(&self, run: TaskId) -> Result<CriticalPath> {
        let mut follower = self.follow_run(run).await?;
        let view = follower.view().await?;
        let record = self.run_record(run).await?;
        let now = self.inner.clock.now();
        let (began, ended_at) = (record.submitted_at, record.finished_at);
        let end = ended_at.unwrap_or(now);
        let path = critical_path(&timed(&view), began.as_microseconds(), end.as_microseconds());
        let kinds: HashMap<&str, &'static str> =
            follower.template().steps.iter().map(|step| (step.name.as_str(), kind(step))).collect();
        let kind = |step: &StepView| kinds.get(step.name.as_str()).copied().unwrap_or_default();
        let took = end - began;
        let rest = microseconds(end.as_microseconds().saturating_sub(path.end));
        let (steps, others) = (links(&view, &path, took, kind), others(&view, &path, end, kind));
        let (workflow, phase) = (view.workflow, view.phase);
        Ok(CriticalPath { id: run, workflow, phase, started_at: began, ended_at, took, steps, rest, others })
    }
}

/// Returns the times of the steps, each after those that it depends on.
fn timed(view: &RunView) -> Vec<TimedStep> {
    let numbers: HashMap<&str, usize> =
        view.steps.iter().enumerate().map(|(number, step)| (step.name.as_str(), number)).collect();
    let time = |at: Option<Timestamp>| at.map(Timestamp::as_microseconds);
    let timed = |step: &StepView| TimedStep {
        depends_on: step.depends_on.iter().filter_map(|name| numbers.get(name.as_str()).copied()).collect(),
        did_run: did_run(step),
        started: time(step.started_at),
        ended: time(step.ended_at),
    };
    view.steps.iter().map(timed).collect()
}

fn links(view: &RunView, path: &Path, total: Duration, kind: impl Fn(&StepView) -> &'static str) -> Vec<CriticalStep> {
    let link = |link: &Link| {
        let step = view.steps.get(link.step)?;
        let (waited, took) = (microseconds(link.waited), microseconds(link.took));
        let share = if total.is_zero() { 0.0 } else { (waited + took).as_secs_f64() / total.as_secs_f64() };
        let (name, state, attempts) = (step.name.clone(), step.state, step.attempts);
        Some(CriticalStep { name, kind: kind(step), state, attempts, waited, took, share: share.min(1.0) })
    };
    path.links.iter().filter_map(link).collect()
}

fn others(view: &RunView, path: &Path, end: Timestamp, kind: impl Fn(&StepView) -> &'static str) -> Vec<SlackStep> {
    let critical: HashSet<usize> = path.links.iter().map(|link| link.step).collect();
    let steps = view.steps.iter().zip(&path.slack).enumerate();
    let steps = steps.filter(|(number, (step, _))| did_run(step) && !critical.contains(number));
    let other = |(_, (step, slack)): (usize, (&StepView, &Option<i64>))| {
        let (took, slack) = (took(step, end), microseconds((*slack)?));
        Some(SlackStep { name: step.name.clone(), kind: kind(step), state: step.state, took, slack })
    };
    let mut others: Vec<SlackStep> = steps.filter_map(other).collect();
    others.sort_by_key(|step| step.slack);
    others
}

/// Returns true if a step was neither skipped nor left out.
fn did_run(step: &StepView) -> bool {
    let is_left_out = matches!(step.state, StepState::Pending | StepState::Skipped | StepState::Unreached);
    !is_left_out && (step.started_at.is_some() || step.state != StepState::Cancelled)
}

/// Returns the duration of a step that ran. One without a task and without a wait has none.
fn took(step: &StepView, end: Timestamp) -> Duration {
    step.started_at.map_or(Duration::ZERO, |started| step.ended_at.unwrap_or(end) - started)
}

fn microseconds(time: i64) -> Duration {
    Duration::from_micros(u64::try_from(time).unwrap_or_default())
}

/// Returns the field of the template that says what a step is.
fn kind(step: &Step) -> &'static str {
    match &step.action {
        StepAction::Work(work) => match work.kind {
            WorkKind::Task { .. } => "task",
            WorkKind::Run { .. } => "run",
            WorkKind::Workflow { .. } => "workflow",
            WorkKind::Orchestration { .. } => "orchestration",
        },
        StepAction::Wait(_) => "wait",
        StepAction::Signal(_) => "signal",
        StepAction::Value(_) => "value",
        StepAction::Fail(_) => "fail",
    }
}
