//! `GET /v1/runs/{id}/critical-path`: the chain of steps that determined the duration of a run.

use axum::http::Method;
use onward::workflow::{CriticalPath, CriticalStep, SlackStep};
use onward_store::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;

use super::route::{Access, Route, route};
use super::runs::run_id;
use crate::http::access::Role;
use crate::http::request::Call;
use crate::http::wire::{Reply, json};

pub(super) fn table() -> Vec<Route> {
    vec![
        route(
            Method::GET,
            "/v1/runs/{id}/critical-path",
            Access::Needs(Role::Viewer),
            "Returns the chain of steps that determined the duration of a run, and the slack of the others.",
            show,
        )
        .returns::<CriticalPathBody>(200, "The critical path."),
    ]
}

/// The critical path of a run. Each step of it was ready when the one before it ended. In a run
/// that has not ended it ends with an open step, and times last until now.
#[derive(Debug, Serialize, ToSchema)]
struct CriticalPathBody {
    /// The id of the run.
    id: String,
    /// The name of the template.
    workflow: String,
    /// The phase.
    phase: &'static str,
    /// The time at which the run was submitted.
    #[schema(value_type = String, format = DateTime)]
    started_at: Timestamp,
    /// The time of its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    ended_at: Option<Timestamp>,
    /// The time from the start to the end or until now, in seconds.
    took: f64,
    /// The steps of the path, the first one first.
    steps: Vec<CriticalStepBody>,
    /// The time behind the last step, such as that of undos, in seconds.
    rest: f64,
    /// The other steps that ran, those with the least slack first.
    others: Vec<SlackStepBody>,
}

/// A step of a critical path.
#[derive(Debug, Serialize, ToSchema)]
struct CriticalStepBody {
    /// The name.
    name: String,
    /// The field of the template that says what the step is, such as `task` or `signal`.
    kind: &'static str,
    /// The state.
    state: &'static str,
    /// The number of attempts.
    attempts: u32,
    /// The seconds from the end of the step before, or the start of the run, until its start.
    waited: f64,
    /// The seconds from its start to its end or until now.
    took: f64,
    /// The part of the run's duration, from 0 to 1.
    share: f64,
}

/// A step beside a critical path.
#[derive(Debug, Serialize, ToSchema)]
struct SlackStepBody {
    /// The name.
    name: String,
    /// The field of the template that says what the step is.
    kind: &'static str,
    /// The state.
    state: &'static str,
    /// The seconds from its start to its end or until now.
    took: f64,
    /// The most seconds by which it could have ended later without a later end of the last step.
    slack: f64,
}

impl From<CriticalPath> for CriticalPathBody {
    fn from(path: CriticalPath) -> Self {
        Self {
            id: path.id.to_string(),
            workflow: path.workflow,
            phase: path.phase.as_str(),
            started_at: path.started_at,
            ended_at: path.ended_at,
            took: path.took.as_secs_f64(),
            steps: path.steps.into_iter().map(Into::into).collect(),
            rest: path.rest.as_secs_f64(),
            others: path.others.into_iter().map(Into::into).collect(),
        }
    }
}

impl From<CriticalStep> for CriticalStepBody {
    fn from(step: CriticalStep) -> Self {
        let CriticalStep { name, kind, state, attempts, waited, took, share, .. } = step;
        let (waited, took) = (waited.as_secs_f64(), took.as_secs_f64());
        Self { name, kind, state: state.as_str(), attempts, waited, took, share }
    }
}

impl From<SlackStep> for SlackStepBody {
    fn from(step: SlackStep) -> Self {
        let SlackStep { name, kind, state, took, slack, .. } = step;
        Self { name, kind, state: state.as_str(), took: took.as_secs_f64(), slack: slack.as_secs_f64() }
    }
}

async fn show(call: Call) -> Reply {
    let run = run_id(&call).await?;
    json(&CriticalPathBody::from(call.server.engine.critical_path(run).await?))
}
