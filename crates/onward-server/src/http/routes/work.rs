//! `/v1/work`: the worker protocol over HTTP.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderValue, Method, Response, StatusCode, header};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::route::{Access, Route, route};
use crate::gateway::bounds::SESSIONS;
use crate::http::access::Role;
use crate::http::bounds;
use crate::http::problem::{Code, Problem};
use crate::http::request::Call;
use crate::http::wire::{Reply, created, no_content};
use crate::http::work::{Tunnel, TunnelError};

/// The content type of the protocol's frames.
const FRAMES: &str = "application/octet-stream";

pub(super) fn table() -> Vec<Route> {
    let operator = Access::Needs(Role::Operator);
    let (send_path, receive_path) = ("/v1/work/{connection}/send", "/v1/work/{connection}/receive");
    vec![
        route(Method::POST, "/v1/work", operator, "Opens a connection of a worker.", open)
            .without_record()
            .returns::<ConnectionBody>(201, "The connection. It lives while the worker's session does."),
        route(Method::POST, send_path, operator, "Sends bytes of a worker to the gateway.", send)
            .query::<SendQuery>()
            .takes_text(FRAMES)
            .without_record()
            .returns_nothing("The gateway has the bytes."),
        route(Method::POST, receive_path, operator, "Returns bytes of the gateway, and waits for the first.", receive)
            .query::<ReceiveQuery>()
            .without_record()
            .waits()
            .returns_other(FRAMES, "The bytes; none if none came in time."),
        route(Method::DELETE, "/v1/work/{connection}", operator, "Closes a connection of a worker.", close)
            .without_record()
            .returns_nothing("It is closed. The attempts that the worker ran count as crashed."),
    ]
}

/// A connection of a worker.
#[derive(Debug, Serialize, ToSchema)]
struct ConnectionBody {
    /// The name of the connection, for the paths below `/v1/work`. It is a secret.
    connection: String,
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
struct SendQuery {
    /// The number of bytes that the worker sent before. Those that the gateway has are skipped.
    from: u64,
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
struct ReceiveQuery {
    /// The number of bytes that the worker has received. The gateway keeps those after it.
    from: u64,
    /// The longest wait for the first byte, in milliseconds; at most 60000, by default 30000.
    wait_ms: Option<u64>,
}

async fn open(call: Call) -> Reply {
    let Some(connection) = call.server.work.open()? else {
        let detail = format!("{SESSIONS} workers are connected to this server, and it takes no more");
        let problem = Problem::new(Code::TooManyStreams, detail, "try again later, or connect to another server");
        return Err(problem.retry_after(1));
    };
    let location = format!("/v1/work/{connection}");
    created(StatusCode::CREATED, &location, &ConnectionBody { connection })
}

fn find(call: &Call) -> Result<Arc<Tunnel>, Problem> {
    call.server.work.find(call.parameter("connection")).ok_or_else(ended)
}

async fn send(call: Call) -> Reply {
    let SendQuery { from } = call.query()?;
    find(&call)?.send(from, &call.body).await.map_err(problem)?;
    no_content()
}

async fn receive(call: Call) -> Reply {
    let ReceiveQuery { from, wait_ms } = call.query()?;
    let wait = wait_ms.map_or(bounds::WORK_WAIT, Duration::from_millis).min(bounds::WAIT);
    let bytes = find(&call)?.receive(from, wait).await.map_err(problem)?;
    let mut response = Response::new(Body::from(bytes));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(FRAMES));
    Ok(response)
}

async fn close(call: Call) -> Reply {
    if call.server.work.close(call.parameter("connection")) { no_content() } else { Err(ended()) }
}

fn problem(error: TunnelError) -> Problem {
    let again = "open another connection, and send `hello` with `resume`";
    match error {
        TunnelError::Ended => ended(),
        TunnelError::Gap(expected) => {
            Problem::invalid("from", format!("`from` does not follow; the server is at {expected}"), again)
        }
        TunnelError::Busy => Problem::new(
            Code::Conflict,
            "another request of this connection is under way in this direction",
            "wait for its response, or repeat it later",
        ),
    }
}

/// Returns the problem of a connection that is not there. Its name is a secret, so it is not named.
fn ended() -> Problem {
    let detail = "the connection has ended, or never was";
    Problem::new(Code::NotFound, detail, "open another connection, and send `hello` with `resume`")
}
