//! `/v1/runs`: forks, comparisons and published events, which concern the results of runs.

use axum::http::Method;
use onward::workflow::{ComparedRun, ComparedStep, RunComparison, StepComparison};
use onward_store::{Submitted, TaskId};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

use super::route::{Access, Route, route};
use super::runs::run_id;
use super::submit::{ReplyBody, SubmittedBody, respond, result_gone};
use crate::http::access::Role;
use crate::http::change::tagged_tasks;
use crate::http::problem::Problem;
use crate::http::request::Call;
use crate::http::wire::{Reply, json};

pub(super) fn table() -> Vec<Route> {
    // The bodies have inputs and results, which an operator may read.
    let operator = Access::Needs(Role::Operator);
    let (get, post) = (Method::GET, Method::POST);
    vec![
        route(post, "/v1/runs/{id}/fork", operator, "Starts a run with the results of another one.", fork)
            .takes::<ForkBody>()
            .creates()
            .prefers_wait()
            .returns::<SubmittedBody>(201, "The fork was started.")
            .returns::<SubmittedBody>(202, "The fork did not end within the time to wait.")
            .returns::<ReplyBody>(200, "The fork has ended."),
        route(get.clone(), "/v1/runs/{id}/compare", operator, "Compares two runs, step by step.", compare)
            .query::<CompareQuery>()
            .returns::<RunComparisonBody>(200, "The runs side by side."),
        route(
            get,
            "/v1/runs/{id}/published/{position}",
            operator,
            "Returns an event that a run published to the log.",
            published,
        )
        .returns::<PublishedBody>(200, "The event."),
    ]
}

/// The start of a fork.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ForkBody {
    /// The steps that run again, with all behind them and all that did not complete.
    from: Vec<String>,
    /// Other input. Default: the input of the run.
    input: Option<Value>,
}

/// The run to compare with.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
struct CompareQuery {
    /// The id of the other run.
    with: String,
}

/// Two runs side by side.
#[derive(Debug, Serialize, ToSchema)]
struct RunComparisonBody {
    /// The run of the path.
    one: ComparedRunBody,
    /// The run of the query.
    other: ComparedRunBody,
    /// The steps of both, by name.
    steps: Vec<StepComparisonBody>,
}

/// A run in a comparison.
#[derive(Debug, Serialize, ToSchema)]
struct ComparedRunBody {
    /// The id.
    id: String,
    /// The name of the template.
    workflow: String,
    /// The hash of the template.
    template: String,
    /// The environment.
    #[serde(skip_serializing_if = "Option::is_none")]
    environment: Option<String>,
    /// The phase.
    phase: &'static str,
    /// The input.
    input: Value,
    /// The result of a completed run.
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<Value>,
    /// The time from the start to the end, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    took: Option<f64>,
}

/// A step of two runs.
#[derive(Debug, Serialize, ToSchema)]
struct StepComparisonBody {
    /// The name.
    name: String,
    /// The step in the first run, if its template has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    one: Option<ComparedStepBody>,
    /// The step in the second run, if its template has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    other: Option<ComparedStepBody>,
    /// True if the states or the results differ.
    differs: bool,
}

/// A step in a comparison.
#[derive(Debug, Serialize, ToSchema)]
struct ComparedStepBody {
    /// The state.
    state: &'static str,
    /// The payload of its task.
    #[serde(skip_serializing_if = "Option::is_none")]
    input: Option<Value>,
    /// The result.
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<Value>,
    /// The error of a bad end, or the reason why the step did not run.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// The time from the start to the end, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    took: Option<f64>,
}

/// An event that a run published.
#[derive(Debug, Serialize, ToSchema)]
struct PublishedBody {
    /// The id of the run.
    run: String,
    /// The name of the event.
    name: String,
    /// The payload.
    payload: Value,
}

impl From<RunComparison> for RunComparisonBody {
    fn from(comparison: RunComparison) -> Self {
        let RunComparison { one, other, steps, .. } = comparison;
        Self { one: one.into(), other: other.into(), steps: steps.into_iter().map(Into::into).collect() }
    }
}

impl From<ComparedRun> for ComparedRunBody {
    fn from(run: ComparedRun) -> Self {
        Self {
            id: run.id.to_string(),
            workflow: run.workflow,
            template: run.template.to_string(),
            environment: run.environment,
            phase: run.phase.as_str(),
            input: run.input,
            result: run.result,
            took: run.took.map(|took| took.as_secs_f64()),
        }
    }
}

impl From<StepComparison> for StepComparisonBody {
    fn from(step: StepComparison) -> Self {
        let StepComparison { name, one, other, differs, .. } = step;
        Self { name, one: one.map(Into::into), other: other.map(Into::into), differs }
    }
}

impl From<ComparedStep> for ComparedStepBody {
    fn from(step: ComparedStep) -> Self {
        let ComparedStep { state, input, result, reason, took, .. } = step;
        Self { state: state.as_str(), input, result, reason, took: took.map(|took| took.as_secs_f64()) }
    }
}

async fn fork(call: Call) -> Reply {
    let wait = call.wait()?;
    let ForkBody { from, input } = call.json()?;
    if from.is_empty() {
        return Err(Problem::invalid("from", "the fork has no step that runs again", "name at least one step"));
    }
    let run = run_id(&call).await?;
    if let Some(request) = &call.repeats {
        let first = tagged_tasks(&*call.server.store, request.digest()).await?.into_iter().next();
        let id = first.ok_or_else(result_gone)?.id;
        return respond(&call, Submitted::Inserted { id }, wait).await;
    }
    let mut start = call.server.engine.fork_run(run, from);
    if let Some(input) = input {
        start = start.input(&input);
    }
    let id = start.await?.id;
    respond(&call, Submitted::Inserted { id }, wait).await
}

async fn compare(call: Call) -> Reply {
    let CompareQuery { with } = call.query()?;
    let one = run_id(&call).await?;
    let other: i64 = with
        .parse()
        .map_err(|_| Problem::invalid("with", format!("`{with}` is not the id of a run"), "write it as with=12"))?;
    json(&RunComparisonBody::from(call.server.engine.compare_runs(one, TaskId(other)).await?))
}

async fn published(call: Call) -> Reply {
    let run = run_id(&call).await?;
    let text = call.parameter("position");
    let missing = || Problem::not_found("published event", text, "take the position from the stream of events");
    let position: u64 = text.parse().map_err(|_| missing())?;
    let (name, payload) = call.server.engine.published_event(run, position).await?.ok_or_else(missing)?;
    json(&PublishedBody { run: run.to_string(), name, payload })
}
