//! `/v1/health` and `/v1/openapi.json`.

use axum::http::Method;
use onward_store::StoreReads as _;
use serde::Serialize;
use utoipa::ToSchema;

use super::openapi::openapi_json;
use super::route::{Access, Route, route};
use crate::http::bounds;
use crate::http::problem::{Code, Problem};
use crate::http::request::Call;
use crate::http::wire::{Reply, json};

pub(super) fn table() -> Vec<Route> {
    vec![
        route(Method::GET, "/v1/health/live", Access::Open, "Returns that the process runs.", live)
            .returns::<Health>(200, "The process runs."),
        route(Method::GET, "/v1/health/ready", Access::Open, "Returns whether the server takes requests.", ready)
            .returns::<Health>(200, "The server takes requests."),
        route(Method::GET, "/v1/openapi.json", Access::Open, "Returns this document.", openapi)
            .returns_other("application/json", "The document."),
    ]
}

/// The state of the server.
#[derive(Debug, Serialize, ToSchema)]
struct Health {
    /// `live` or `ready`.
    status: &'static str,
}

async fn live(_: Call) -> Reply {
    json(&Health { status: "live" })
}

async fn ready(call: Call) -> Reply {
    if call.server.is_stopping() {
        return Err(Problem::new(Code::Stopping, "the server is stopping", "use another server").retry_after(1));
    }
    match tokio::time::timeout(bounds::READY_TIME, call.server.store.queue_mode()).await {
        Ok(Ok(_)) => json(&Health { status: "ready" }),
        Ok(Err(error)) => Err(error.into()),
        Err(_) => {
            Err(Problem::new(Code::StoreUnavailable, "the store did not reply in time", "try again").retry_after(1))
        }
    }
}

async fn openapi(_: Call) -> Reply {
    let body: serde_json::Value = serde_json::from_str(&openapi_json()).unwrap_or_default();
    json(&body)
}
