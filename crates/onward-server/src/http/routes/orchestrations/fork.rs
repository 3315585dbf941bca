//! Forks and resets: orchestrations that begin in the middle of another one's history.

use axum::http::Method;
use onward_store::{Submitted, TaskId};
use serde::Deserialize;
use utoipa::ToSchema;

use super::query::check_size;
use super::target::orchestration;
use crate::http::access::Role;
use crate::http::change::tagged_tasks;
use crate::http::problem::Problem;
use crate::http::request::Call;
use crate::http::routes::route::{Access, Route, route};
use crate::http::routes::submit::{SubmittedBody, respond, result_gone};
use crate::http::wire::{Reply, check_text};

pub(super) fn table() -> Vec<Route> {
    let operator = Access::Needs(Role::Operator);
    let post = Method::POST;
    vec![
        route(
            post.clone(),
            "/v1/orchestrations/{id}/fork",
            operator,
            "Starts another orchestration with the first events of this one.",
            fork,
        )
        .takes::<ForkBody>()
        .creates()
        .returns::<SubmittedBody>(201, "The fork."),
        route(
            post,
            "/v1/orchestrations/{id}/reset",
            operator,
            "Replaces an orchestration by a fork, which takes over its key.",
            reset,
        )
        .takes::<ResetBody>()
        .creates()
        .returns::<SubmittedBody>(201, "The fork."),
    ]
}

/// A fork to start.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ForkBody {
    /// The number of events with which the history of the fork begins, from 1.
    events: u64,
}

/// A fork to start in place of the original.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ResetBody {
    /// The number of events with which the history of the fork begins, from 1.
    events: u64,
    /// The reason, which becomes the last error of the original.
    reason: String,
}

async fn fork(call: Call) -> Reply {
    let ForkBody { events } = call.json()?;
    let id = orchestration(&call).await?;
    if call.repeats.is_some() {
        return first(&call).await;
    }
    check_size(&call, id).await?;
    let fork = call.server.engine.fork(id, events).await?;
    started(&call, fork).await
}

async fn reset(call: Call) -> Reply {
    let ResetBody { events, reason } = call.json()?;
    check_text("reason", &reason)?;
    let id = orchestration(&call).await?;
    if call.repeats.is_some() {
        return first(&call).await;
    }
    check_size(&call, id).await?;
    let fork = call.server.engine.reset(id, events, &reason).await?;
    started(&call, fork).await
}

/// Returns the fork of the first request with the idempotency key.
async fn first(call: &Call) -> Reply {
    let digest = call.repeats.as_ref().map(|first| first.digest()).unwrap_or_default();
    let found = tagged_tasks(&*call.server.store, digest).await?.into_iter().next();
    started(call, found.ok_or_else::<Problem, _>(result_gone)?.id).await
}

async fn started(call: &Call, id: TaskId) -> Reply {
    respond(call, Submitted::Inserted { id }, None).await
}
