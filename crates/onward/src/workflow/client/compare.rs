//! Two runs side by side.

use std::collections::BTreeSet;
use std::time::Duration;

use onward_store::{StoreReads, TaskId};
use serde::Serialize;
use serde_json::Value;

use super::follow::RunFollower;
use super::view::StepView;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::workflow::run::{Phase, StepResultSource, StepState};
use crate::workflow::template::TemplateHash;
use crate::workflow::turn::RunSource;

/// Two runs side by side ([`Engine::compare_runs`]).
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct RunComparison {
    /// The first run.
    pub one: ComparedRun,
    /// The second run.
    pub other: ComparedRun,
    /// The steps of both, by name.
    pub steps: Vec<StepComparison>,
}

/// A run in a comparison.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ComparedRun {
    /// The task of the run.
    pub id: TaskId,
    /// The name of the template.
    pub workflow: String,
    /// The template.
    pub template: TemplateHash,
    /// The environment.
    pub environment: Option<String>,
    /// The phase.
    pub phase: Phase,
    /// The input.
    pub input: Value,
    /// The result of a completed run.
    pub result: Option<Value>,
    /// The time from the start to the end, in seconds when serialized.
    #[serde(serialize_with = "seconds")]
    pub took: Option<Duration>,
}

/// A step of two runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct StepComparison {
    /// The name.
    pub name: String,
    /// The step in the first run; `None` if its template has no such step.
    pub one: Option<ComparedStep>,
    /// The step in the second run.
    pub other: Option<ComparedStep>,
    /// True if state or result differ.
    pub differs: bool,
}

/// A step in a comparison.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ComparedStep {
    /// The state.
    pub state: StepState,
    /// The payload of the step's task; `None` for a step without a task, and if the task was
    /// deleted.
    pub input: Option<Value>,
    /// The result; `None` if there is none.
    pub result: Option<Value>,
    /// The error of a bad end, or the reason why the step did not run.
    pub reason: Option<String>,
    /// The time from the start to the end, in seconds when serialized.
    #[serde(serialize_with = "seconds")]
    pub took: Option<Duration>,
}

#[expect(clippy::ref_option, reason = "serde passes a reference")]
fn seconds<S: serde::Serializer>(took: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
    took.map(|took| took.as_secs_f64()).serialize(serializer)
}

/// Comparisons of runs.
impl Engine {
    /// Compares two runs: their templates, inputs and results, and each step by its name.
    ///
    /// # Errors
    /// As [`run_view`](Self::run_view); `is_invalid` if a result is needed whose task was deleted.
    pub async fn compare_runs(&self, one: TaskId, other: TaskId) -> Result<RunComparison> {
        let (one, mut firsts) = self.compared(one).await?;
        let (other, mut seconds) = self.compared(other).await?;
        let names: BTreeSet<String> = firsts.iter().chain(&seconds).map(|(name, _)| name.clone()).collect();
        let take = |steps: &mut Vec<(String, ComparedStep)>, name: &str| {
            let place = steps.iter().position(|(step, _)| step == name)?;
            Some(steps.swap_remove(place).1)
        };
        let compare = |name: String| {
            let (one, other) = (take(&mut firsts, &name), take(&mut seconds, &name));
            let parts = |step: &Option<ComparedStep>| step.as_ref().map(|step| (step.state, step.result.clone()));
            let differs = parts(&one) != parts(&other);
            StepComparison { name, one, other, differs }
        };
        let steps = names.into_iter().map(compare).collect();
        Ok(RunComparison { one, other, steps })
    }

    async fn compared(&self, run: TaskId) -> Result<(ComparedRun, Vec<(String, ComparedStep)>)> {
        let follower = self.follow_run(run).await?.at_end().await?;
        let (view, record) = (self.run_view(run).await?, self.run_record(run).await?);
        let bytes = record.payload.as_deref().unwrap_or_default();
        let payload = RunSource::read(&**self.store(), run, record.submitted_at, bytes).await?.payload;
        let mut steps = Vec::with_capacity(view.steps.len());
        for step in &view.steps {
            steps.push((step.name.clone(), self.compared_step(&follower, step).await?));
        }
        let result = record.result.bytes().map(|bytes| json(bytes));
        let took = record.finished_at.map(|end| end - record.submitted_at);
        let (template, environment, input) = (payload.template, payload.environment, payload.input);
        let (workflow, phase) = (view.workflow, view.phase);
        Ok((ComparedRun { id: run, workflow, template, environment, phase, input, result, took }, steps))
    }

    async fn compared_step(&self, follower: &RunFollower, step: &StepView) -> Result<ComparedStep> {
        let took = step.started_at.zip(step.ended_at).map(|(start, end)| end - start);
        let result = match follower.result_source(&step.name) {
            StepResultSource::None => None,
            StepResultSource::Kept(result) => Some(json(&result)),
            StepResultSource::Task(task) => self.result_of_task(task).await?,
            StepResultSource::Items(items) => {
                let mut results = Vec::with_capacity(items.len());
                for item in items {
                    let result = match item {
                        StepResultSource::Kept(result) => Some(json(&result)),
                        StepResultSource::Task(task) => self.result_of_task(task).await?,
                        _ => None,
                    };
                    results.push(result.unwrap_or_default());
                }
                Some(Value::Array(results))
            }
        };
        let input = match step.task {
            Some(task) => self.store().task(task).await?.and_then(|record| record.payload).map(|bytes| json(&bytes)),
            None => None,
        };
        Ok(ComparedStep { state: step.state, input, result, reason: step.reason.clone(), took })
    }

    async fn result_of_task(&self, task: TaskId) -> Result<Option<Value>> {
        let record = self.store().task(task).await?.ok_or_else(|| {
            Error::invalid(format!(
                "the result of task {task} was deleted, so the runs cannot be compared; compare others"
            ))
        })?;
        Ok(record.result.bytes().map(|bytes| json(bytes)))
    }
}

/// Returns a result as a value. Bytes that are no JSON are a text.
fn json(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap_or_else(|_| Value::String(String::from_utf8_lossy(bytes).into_owned()))
}
