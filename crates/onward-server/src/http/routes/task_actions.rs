//! Actions on one task.

use std::time::Duration;

use axum::http::Method;
use onward::control::{Cancellation, Moved};
use onward::{Failure, Output};
use onward_store::CompletionToken;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::route::{Access, Route, route};
use super::tasks::record;
use crate::http::access::Role;
use crate::http::problem::Problem;
use crate::http::request::Call;
use crate::http::wire::{DurationText, Reply, TaskBody, check_text, json};

pub(super) fn table() -> Vec<Route> {
    let operator = Access::Needs(Role::Operator);
    let post = Method::POST;
    vec![
        route(post.clone(), "/v1/tasks/{id}/cancel", operator, "Cancels a task.", cancel)
            .returns::<EffectBody>(200, "`ended`, or `requested` if the task runs and was asked to stop."),
        route(post.clone(), "/v1/tasks/{id}/retry", operator, "Makes an ended task wait again.", retry)
            .returns::<TaskBody>(200, "The task."),
        route(post.clone(), "/v1/tasks/{id}/run", operator, "Makes a scheduled task due now.", run_now)
            .returns::<TaskBody>(200, "The task."),
        route(post.clone(), "/v1/tasks/{id}/kill", operator, "Makes a task that does not run a dead letter.", kill)
            .returns::<TaskBody>(200, "The task."),
        route(post.clone(), "/v1/tasks/{id}/move", operator, "Moves a task to another queue.", move_to)
            .takes::<MoveBody>()
            .returns::<EffectBody>(200, "`moved`, or `requested` if the task runs and moves after its attempt."),
        route(post.clone(), "/v1/tasks/{id}/complete", operator, "Completes an attempt externally.", complete)
            .takes::<CompleteBody>()
            .returns::<TaskBody>(200, "The task."),
        route(post.clone(), "/v1/tasks/{id}/fail", operator, "Fails an attempt externally.", fail)
            .takes::<FailBody>()
            .returns::<TaskBody>(200, "The task."),
        route(post, "/v1/tasks/{id}/extend", operator, "Restarts the time for an external completion.", extend)
            .takes::<ExtendBody>()
            .returns::<TaskBody>(200, "The task."),
    ]
}

/// The effect of an action.
#[derive(Debug, Serialize, ToSchema)]
struct EffectBody {
    /// The id of the task.
    id: String,
    /// The effect.
    effect: &'static str,
}

/// The queue to which a task is moved.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct MoveBody {
    /// The name of the queue.
    queue: String,
}

/// An external completion.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct CompleteBody {
    /// The completion token of the attempt. Default: the attempt that waits.
    token: Option<String>,
    /// The result. Default: none.
    result: Option<Value>,
}

/// An external failure.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct FailBody {
    /// The completion token of the attempt. Default: the attempt that waits.
    token: Option<String>,
    /// The message.
    error: String,
    /// True if the task is not to be retried. Default: false.
    #[serde(default)]
    permanent: bool,
}

/// A new time limit.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ExtendBody {
    /// The completion token of the attempt. Default: the attempt that waits.
    token: Option<String>,
    /// The time from now on. Default: no limit.
    within: Option<DurationText>,
}

async fn task(call: &Call) -> Reply {
    json(&TaskBody::new(record(call).await?, false))
}

fn effect(call: &Call, effect: &'static str) -> Reply {
    json(&EffectBody { id: call.parameter("id").to_owned(), effect })
}

async fn cancel(call: Call) -> Reply {
    match call.server.engine.cancel(call.task()?).await? {
        Cancellation::Ended => effect(&call, "ended"),
        Cancellation::Requested => effect(&call, "requested"),
    }
}

async fn retry(call: Call) -> Reply {
    call.server.engine.retry(call.task()?).await?;
    task(&call).await
}

async fn run_now(call: Call) -> Reply {
    call.server.engine.run_now(call.task()?).await?;
    task(&call).await
}

async fn kill(call: Call) -> Reply {
    call.server.engine.kill(call.task()?).await?;
    task(&call).await
}

async fn move_to(call: Call) -> Reply {
    let MoveBody { queue } = call.json()?;
    match call.server.engine.move_to(call.task()?, queue).await? {
        Moved::Now => effect(&call, "moved"),
        Moved::AfterAttempt => effect(&call, "requested"),
    }
}

/// Returns the token of the attempt, which must be one of the task in the path.
fn token(call: &Call, token: Option<String>) -> Result<CompletionToken, Problem> {
    let task = call.task()?;
    let Some(text) = token else { return Ok(task.into()) };
    let token: CompletionToken =
        text.parse().map_err(|error: onward_store::Error| Problem::from(error).field("token"))?;
    if token.task == task {
        return Ok(token);
    }
    Err(Problem::invalid("token", format!("the token {token} is not one of task {task}"), "use the path of its task"))
}

async fn complete(call: Call) -> Reply {
    let body: CompleteBody = call.json()?;
    let output = match &body.result {
        Some(result) => Output::json(result).map_err(|failure| {
            Problem::invalid("result", failure.to_string(), "send a result that can be written as JSON")
        })?,
        None => Output::default(),
    };
    call.server.engine.complete(token(&call, body.token)?, output).await?;
    task(&call).await
}

async fn fail(call: Call) -> Reply {
    let body: FailBody = call.json()?;
    check_text("error", &body.error)?;
    let failure = if body.permanent { Failure::permanent(body.error) } else { Failure::retryable(body.error) };
    call.server.engine.fail(token(&call, body.token)?, failure).await?;
    task(&call).await
}

async fn extend(call: Call) -> Reply {
    let body: ExtendBody = call.json()?;
    let within: Option<Duration> = body.within.map(|within| within.0);
    call.server.engine.extend(token(&call, body.token)?, within).await?;
    task(&call).await
}
