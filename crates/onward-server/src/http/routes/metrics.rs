//! `/metrics`.

use axum::body::Body;
use axum::http::{HeaderValue, Method, Response, header};

use super::route::{Access, Route, route};
use crate::http::access::Role;
use crate::http::metrics::metrics_text;
use crate::http::request::Call;
use crate::http::wire::Reply;

/// The content type of the text format of Prometheus.
const TEXT: &str = "text/plain; version=0.0.4";

pub(super) fn table() -> Vec<Route> {
    vec![
        route(Method::GET, "/metrics", Access::Needs(Role::Viewer), "Returns metrics for Prometheus.", metrics)
            .returns_other(TEXT, "The metrics of the store and of this server."),
    ]
}

async fn metrics(call: Call) -> Reply {
    let mut response = Response::new(Body::from(metrics_text(&call.server).await?));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(TEXT));
    Ok(response)
}
