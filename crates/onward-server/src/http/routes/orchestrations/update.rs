//! Updates: requests to the code of an orchestration, with a reply.
//!
//! The server has no code. It sends a durable message, and the engine that has the code writes the
//! reply with its next turn, where each server reads it.

use std::time::Duration;

use axum::http::{Method, StatusCode};
use onward::orchestration::UpdateReply;
use onward_store::TaskId;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::target::orchestration;
use crate::http::access::Role;
use crate::http::change::new_request_id;
use crate::http::problem::{Code, Problem};
use crate::http::request::Call;
use crate::http::routes::route::{Access, Route, route};
use crate::http::wire::{Reply, created, json};

/// The time to wait for a reply if the request does not set it.
const WAIT: Duration = onward::bounds::UPDATE_TIMEOUT;

pub(super) fn table() -> Vec<Route> {
    let operator = Access::Needs(Role::Operator);
    vec![
        route(
            Method::POST,
            "/v1/orchestrations/{id}/updates/{name}",
            operator,
            "Sends an update and waits for the reply of the code, 30 seconds if `Prefer` does not say otherwise.",
            send,
        )
        .takes_any_json()
        .creates()
        .prefers_wait()
        .returns::<UpdateBody>(200, "The reply.")
        .returns::<UpdateBody>(202, "The update is stored, and has no reply yet."),
        route(
            Method::GET,
            "/v1/orchestrations/{id}/updates/{name}/{update}",
            operator,
            "Returns the reply to an update, if it is among the last 64.",
            reply,
        )
        .prefers_wait()
        .returns::<UpdateBody>(200, "The reply.")
        .returns::<UpdateBody>(202, "The code has not replied, or newer replies have replaced this one."),
    ]
}

/// An update.
#[derive(Debug, Serialize, ToSchema)]
struct UpdateBody {
    /// The id of the update.
    update: String,
    /// True if the code has replied.
    is_answered: bool,
    /// The reply; null without one.
    #[schema(value_type = Value)]
    reply: Value,
}

async fn send(call: Call) -> Reply {
    let (payload, wait) = (call.any_json()?, call.wait()?.unwrap_or(WAIT));
    let id = orchestration(&call).await?;
    let update = match &call.repeats {
        Some(first) => update_id(first.digest()),
        None => {
            let update = call.idempotency.as_ref().map_or_else(new_request_id, |key| update_id(key.digest()));
            call.server.engine.send_update(id, call.parameter("name"), payload, &update).await?;
            update
        }
    };
    respond(&call, id, update, wait).await
}

async fn reply(call: Call) -> Reply {
    let wait = call.wait()?.unwrap_or_default();
    let id = orchestration(&call).await?;
    let update = call.parameter("update").to_owned();
    respond(&call, id, update, wait).await
}

/// Returns the id of an update: half of the digest of its idempotency key, so that a repeated
/// request waits for the reply to the first.
fn update_id(digest: &str) -> String {
    digest.chars().take(32).collect()
}

/// Returns the path of the updates of the name in the path.
fn sent_to(call: &Call) -> String {
    let path = call.uri.path();
    match call.parameter("update") {
        "" => path.to_owned(),
        _ => path.rsplit_once('/').map_or(path, |(name, _)| name).to_owned(),
    }
}

async fn respond(call: &Call, id: TaskId, update: String, wait: Duration) -> Reply {
    let engine = &call.server.engine;
    let found = match engine.update_reply(id, &update).await? {
        Some(found) => Some(found),
        None => tokio::select! {
            waited = tokio::time::timeout(wait, engine.wait_for_update(id, &update)) => match waited {
                Ok(reply) => Some(reply?),
                Err(_) => None,
            },
            () = call.server.stopping.cancelled() => None,
        },
    };
    match found {
        Some(UpdateReply::Accepted(reply)) => json(&UpdateBody { update, is_answered: true, reply }),
        Some(UpdateReply::Refused(reason)) => {
            let detail = format!("the code refused the update: {reason}");
            Err(Problem::new(Code::UpdateRefused, detail, "send what the code accepts in its present state"))
        }
        None => {
            let location = format!("{}/{update}", sent_to(call));
            let body = UpdateBody { update, is_answered: false, reply: Value::Null };
            created(StatusCode::ACCEPTED, &location, &body)
        }
    }
}
