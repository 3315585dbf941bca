//! `/v1/changes`.

use axum::http::Method;

use super::route::{Access, Route, route};
use crate::http::access::Role;
use crate::http::live::change_stream;
use crate::http::request::Call;
use crate::http::wire::Reply;

pub(super) fn table() -> Vec<Route> {
    vec![
        route(
            Method::GET,
            "/v1/changes",
            Access::Needs(Role::Viewer),
            "Reports that something changed, at most five times a second.",
            changes,
        )
        .waits()
        .returns_other("text/event-stream", "A message `change` at once, and one after changes."),
    ]
}

async fn changes(call: Call) -> Reply {
    change_stream(&call)
}
