//! `/mcp`: the Model Context Protocol over HTTP.

use axum::body::Body;
use axum::http::{Method, Response, StatusCode};
use serde_json::Value;

use super::route::{Access, Route, route};
use crate::http::access::Role;
use crate::http::mcp::{Caller, PROTOCOLS, reply_to};
use crate::http::problem::{Code, Problem};
use crate::http::request::Call;
use crate::http::wire::{Reply, json};

pub(super) fn table() -> Vec<Route> {
    let viewer = Access::Needs(Role::Viewer);
    vec![
        // The route of each tool writes the audit record.
        route(Method::POST, "/mcp", viewer, "Replies to a message of the Model Context Protocol.", post)
            .takes_any_json()
            .header("MCP-Protocol-Version", "The version that `initialize` has agreed on.")
            .without_record()
            .returns_other("application/json", "The reply; 202 for a message without one."),
    ]
}

async fn post(call: Call) -> Reply {
    if let Some(version) = call.header("mcp-protocol-version").filter(|it| !PROTOCOLS.contains(it)) {
        let detail = format!("the version `{version}` of the protocol is not known here");
        let remedy = format!("use one of {}", PROTOCOLS.join(", "));
        return Err(Problem::new(Code::Malformed, detail, remedy).field("MCP-Protocol-Version"));
    }
    let Some(actor) = call.actor.clone() else {
        return Err(Problem::new(Code::CredentialMissing, "the request has no credential", "send a key"));
    };
    let caller = Caller { server: call.server.clone(), actor, address: call.address, id: call.id.clone() };
    match reply_to(&caller, &call.body).await {
        None => {
            let mut response = Response::new(Body::empty());
            *response.status_mut() = StatusCode::ACCEPTED;
            Ok(response)
        }
        Some(reply) if reply["id"] == Value::Null => {
            // The protocol lets a server refuse what is no message with a body of its own.
            let detail = reply["error"]["message"].as_str().unwrap_or("the body is no message").to_owned();
            let remedy = "send one JSON-RPC message, an object with `jsonrpc`, `method` and `id`";
            Err(Problem::new(Code::Malformed, detail, remedy))
        }
        Some(reply) => json(&reply),
    }
}
