//! Responses of handlers.

use axum::body::Body;
use axum::http::{HeaderValue, Response, StatusCode, header};
use serde::Serialize;

use crate::http::problem::{Code, Problem};

/// The response of a handler, or the problem.
pub(crate) type Reply = Result<Response<Body>, Problem>;

/// Returns a body of JSON with status 200.
pub(crate) fn json<T: Serialize>(body: &T) -> Reply {
    with_status(StatusCode::OK, body)
}

/// Returns a body of JSON.
pub(crate) fn with_status<T: Serialize>(status: StatusCode, body: &T) -> Reply {
    let mut text = serde_json::to_vec(body).map_err(|error| {
        tracing::error!(%error, "a response cannot be written as JSON");
        Problem::new(Code::Internal, "the response cannot be written", "report this as a fault of Onward")
    })?;
    // A line for terminals and line readers.
    text.push(b'\n');
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Ok(response)
}

/// Returns a body of JSON and the path of the thing.
pub(crate) fn created<T: Serialize>(status: StatusCode, location: &str, body: &T) -> Reply {
    let mut response = with_status(status, body)?;
    if let Ok(location) = HeaderValue::from_str(location) {
        response.headers_mut().insert(header::LOCATION, location);
    }
    Ok(response)
}

/// Returns status 204.
pub(crate) fn no_content() -> Reply {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    Ok(response)
}
