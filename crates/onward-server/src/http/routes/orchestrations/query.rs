//! Queries: questions to the code of an orchestration that change nothing.

use std::sync::Arc;

use axum::http::Method;
use onward::Engine;
use onward_store::TaskId;
use serde_json::Value;
use tokio::sync::OwnedSemaphorePermit;

use super::target::orchestration;
use crate::http::access::Role;
use crate::http::bounds;
use crate::http::problem::{Code, Problem};
use crate::http::request::Call;
use crate::http::routes::route::{Access, Route, route};
use crate::http::wire::{Reply, json};

pub(super) fn table() -> Vec<Route> {
    vec![
        route(
            Method::POST,
            "/v1/orchestrations/{id}/queries/{name}",
            Access::Needs(Role::Operator),
            "Replays the code of an orchestration and returns its reply to a query.",
            query,
        )
        .takes_any_json()
        .without_record()
        .returns_other("application/json", "The reply."),
    ]
}

async fn query(call: Call) -> Reply {
    let question = call.any_json()?;
    let id = orchestration(&call).await?;
    check_size(&call, id).await?;
    let Some(engine) = &call.server.options.code else {
        let detail = "a query runs the code of the orchestration, which this server does not have";
        let remedy = "read what it has published, send an update, or query it in a program with the code";
        return Err(Problem::new(Code::CodeElsewhere, detail, remedy));
    };
    // The permit is held until the replay ends, also if the request has ended before.
    let Ok(permit) = Arc::clone(&call.server.queries).acquire_owned().await else {
        return Err(Problem::new(Code::Stopping, "the server is stopping", "try again at another server"));
    };
    json(&ask(engine.clone(), id, call.parameter("name").to_owned(), question, permit).await?)
}

/// Queries on a thread of its own, because the replay of a long history is work without a pause.
async fn ask(
    engine: Engine,
    id: TaskId,
    name: String,
    question: Value,
    permit: OwnedSemaphorePermit,
) -> Result<Value, Problem> {
    let runtime = tokio::runtime::Handle::current();
    let asked = move || {
        let reply = runtime.block_on(async { engine.query::<Value, Value>(id, &name, &question).await });
        drop(permit);
        reply
    };
    match tokio::task::spawn_blocking(asked).await {
        Ok(reply) => Ok(reply?),
        Err(_) => Err(Problem::new(Code::Conflict, "the code panicked in a query", "see the log of the server")),
    }
}

/// Checks that the history is short enough to be read in one request.
pub(super) async fn check_size(call: &Call, id: TaskId) -> Result<(), Problem> {
    let status = call.server.engine.orchestration_status(id).await?;
    let (events, bytes) = (status.record().length, status.record().bytes);
    if events <= bounds::HISTORY_EVENTS && bytes <= bounds::HISTORY_BYTES {
        return Ok(());
    }
    let detail = format!(
        "the history of orchestration {id} has {events} events and {bytes} bytes; a request reads at most {} and {}",
        bounds::HISTORY_EVENTS,
        bounds::HISTORY_BYTES
    );
    Err(Problem::new(Code::Conflict, detail, "use the command line on the store, which has no such bound"))
}
