//! Responses with the files of the page.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::Path;
use axum::http::{HeaderMap, HeaderValue, Request, Response, StatusCode, header};
use axum::routing::get;

use super::files::{File, VERSION, find};
use crate::http::listen::check_host;
use crate::http::pipeline::{refuse, with_id};
use crate::http::problem::Code;
use crate::http::server::Server;

/// The policy of what the page may load: files of this server, and no code within documents.
const POLICY: &str =
    "default-src 'self'; base-uri 'none'; object-src 'none'; form-action 'none'; frame-ancestors 'none'";

/// A file with the version in its path never changes.
const FOR_EVER: &str = "public, max-age=31536000, immutable";

/// Returns the routes of the page. They need no credential: the page has no data.
pub(in crate::http) fn page_router(server: &Arc<Server>) -> Router {
    let (index, assets) = (Arc::clone(server), Arc::clone(server));
    Router::new().route("/", get(move |request: Request<Body>| respond_index(Arc::clone(&index), request))).route(
        "/assets/{version}/{*file}",
        get(move |Path((version, file)): Path<(String, String)>, request: Request<Body>| {
            respond_asset(Arc::clone(&assets), version, file, request)
        }),
    )
}

async fn respond_index(server: Arc<Server>, request: Request<Body>) -> Response<Body> {
    let (parts, _) = request.into_parts();
    if let Err(problem) = check_host(&server.options, &parts) {
        let id = server.request_id();
        return with_id(problem.into_response(&id), &id);
    }
    let tag = format!("\"{VERSION}\"");
    let known = parts.headers.get(header::IF_NONE_MATCH).and_then(|value| value.to_str().ok());
    let mut response = match find("index.html") {
        Some(file) if known != Some(&tag) => content(file, &parts.headers),
        _ => with_status(StatusCode::NOT_MODIFIED),
    };
    let headers = response.headers_mut();
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        headers.insert(header::ETAG, tag);
    }
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert(header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
    headers.insert("cross-origin-opener-policy", HeaderValue::from_static("same-origin"));
    response
}

async fn respond_asset(server: Arc<Server>, version: String, file: String, request: Request<Body>) -> Response<Body> {
    let Some(found) = find(&file).filter(|_| version == VERSION) else {
        return refuse(server, request, Code::RouteUnknown).await;
    };
    let mut response = content(found, request.headers());
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static(FOR_EVER));
    response.headers_mut().insert("cross-origin-resource-policy", HeaderValue::from_static("same-origin"));
    response
}

/// Returns a file, compressed if the client takes it so.
fn content(file: &'static File, headers: &HeaderMap) -> Response<Body> {
    let accepted = headers.get(header::ACCEPT_ENCODING).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let takes_gzip = accepted.split(',').any(|coding| coding.split(';').next().unwrap_or_default().trim() == "gzip");
    let mut response = Response::new(Body::from(if takes_gzip { file.gzip } else { file.plain }));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(file.content_type));
    headers.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    if takes_gzip {
        headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    response
}

fn with_status(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}
