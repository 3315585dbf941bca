//! Reading bodies and queries.

use axum::body::Body;
use axum::extract::Query;
use axum::http::Uri;
use bytes::Bytes;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use serde::de::DeserializeOwned;

use crate::http::problem::{Code, Problem};

/// Reads a body of at most `limit` bytes.
pub(crate) async fn read_body(body: Body, limit: usize) -> Result<Bytes, Problem> {
    match Limited::new(body, limit).collect().await {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(too_large(limit)),
        Err(_) => Err(Problem::new(Code::Malformed, "the body ended before its length", "send the whole body")),
    }
}

#[cold]
fn too_large(limit: usize) -> Problem {
    Problem::new(
        Code::BodyTooLarge,
        format!("the body has more than {limit} bytes"),
        "send less at once, or keep the data elsewhere and send a reference",
    )
}

/// Reads the parameters of a query. Unknown parameters are refused.
pub(crate) fn read_query<T: DeserializeOwned>(uri: &Uri) -> Result<T, Problem> {
    match Query::<T>::try_from_uri(uri) {
        Ok(Query(query)) => Ok(query),
        Err(error) => {
            let message = std::error::Error::source(&error).map_or_else(|| error.to_string(), ToString::to_string);
            Err(malformed("the query", &message))
        }
    }
}

/// Reads a body of JSON. Unknown fields are refused. An empty body is an empty object.
pub(crate) fn read_json<T: DeserializeOwned>(body: &[u8]) -> Result<T, Problem> {
    let body = if body.is_empty() { b"{}" } else { body };
    serde_json::from_slice(body).map_err(|error| malformed("the body", &error.to_string()))
}

#[cold]
fn malformed(what: &str, message: &str) -> Problem {
    let problem =
        Problem::new(Code::Malformed, format!("{what} cannot be read: {message}"), "compare it with /v1/openapi.json");
    match field(message) {
        Some(field) => problem.field(field),
        None => problem,
    }
}

/// Returns the field that an error of serde names.
fn field(message: &str) -> Option<&str> {
    let named = ["unknown field `", "missing field `", "duplicate field `"];
    let rest = named.iter().find_map(|start| message.split_once(start).map(|(_, rest)| rest))?;
    rest.split_once('`').map(|(field, _)| field)
}
