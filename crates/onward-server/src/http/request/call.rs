//! A request that was checked and read.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::http::{HeaderMap, Uri};
use bytes::Bytes;
use onward_store::{Name, TaskId};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::media::is_json;
use super::reading::{read_json, read_query};
use crate::http::access::{Actor, Role};
use crate::http::bounds;
use crate::http::change::Idempotency;
use crate::http::problem::{Code, Problem};
use crate::http::server::Server;
use crate::http::wire::read_duration;

/// A request: its actor may make it, and its body has arrived.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) server: Arc<Server>,
    /// The number of the request.
    pub(crate) id: String,
    /// The actor; `None` on a path that needs no credential.
    pub(crate) actor: Option<Actor>,
    /// The address of the client; `None` in a router that another program serves without it.
    pub(crate) address: Option<IpAddr>,
    pub(crate) parameters: Vec<(String, String)>,
    pub(crate) uri: Uri,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    /// The idempotency key, if the request repeats an earlier one: its result is to be found, and
    /// nothing is to be done.
    pub(crate) repeats: Option<Idempotency>,
    /// The idempotency key.
    pub(crate) idempotency: Option<Idempotency>,
}

impl Call {
    /// Returns a parameter of the path, decoded.
    pub(crate) fn parameter(&self, name: &str) -> &str {
        self.parameters.iter().find(|(key, _)| key == name).map_or("", |(_, value)| value)
    }

    /// Returns the number of the task in the path.
    pub(crate) fn task(&self) -> Result<TaskId, Problem> {
        let text = self.parameter("id");
        text.parse().map_err(|_| Problem::not_found("task", text, "a task id is a whole number from 1 up"))
    }

    /// Returns a name in the path.
    pub(crate) fn name(&self, parameter: &str) -> Result<Name, Problem> {
        Name::new(self.parameter(parameter)).map_err(|error| Problem::from(error).field(parameter))
    }

    /// Reads the parameters of the query.
    pub(crate) fn query<T: DeserializeOwned>(&self) -> Result<T, Problem> {
        read_query(&self.uri)
    }

    /// Reads the body, which must be JSON.
    pub(crate) fn json<T: DeserializeOwned>(&self) -> Result<T, Problem> {
        if !self.body.is_empty() && !is_json(&self.headers) {
            let remedy = "send `Content-Type: application/json`";
            return Err(Problem::new(Code::MediaTypeUnknown, "the body is not declared as JSON", remedy));
        }
        read_json(&self.body)
    }

    /// Reads a body that is any JSON value, whatever its content type; null if it is empty.
    pub(crate) fn any_json(&self) -> Result<Value, Problem> {
        if self.body.is_empty() {
            return Ok(Value::Null);
        }
        serde_json::from_slice(&self.body).map_err(|error| {
            let remedy = "send JSON: a text needs quotation marks";
            Problem::new(Code::Malformed, format!("the body is not JSON: {error}"), remedy).field("body")
        })
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    /// Returns the time that `Prefer: wait=30s` asks for, at most [`bounds::WAIT`]. A number
    /// without a unit counts seconds, as RFC 7240 has it.
    pub(crate) fn wait(&self) -> Result<Option<Duration>, Problem> {
        let preferences = self.header("prefer").unwrap_or_default().split([',', ';']);
        let Some(wait) = preferences.filter_map(|it| it.trim().strip_prefix("wait=")).next() else { return Ok(None) };
        let duration = match wait.parse() {
            Ok(seconds) => Ok(Duration::from_secs(seconds)),
            Err(_) => read_duration(wait),
        };
        match duration {
            Ok(duration) => Ok(Some(duration.min(bounds::WAIT))),
            Err(message) => Err(Problem::invalid("Prefer", message, "write it as `Prefer: wait=30s`")),
        }
    }

    /// Returns true if the actor may read payloads and results.
    pub(crate) fn reads_payloads(&self) -> bool {
        self.actor.as_ref().is_some_and(|actor| actor.role.reads_payloads())
    }

    /// Checks that the actor may read payloads and results.
    pub(crate) fn needs_payloads(&self) -> Result<(), Problem> {
        match &self.actor {
            Some(actor) => actor.needs(Role::Operator),
            None => Ok(()),
        }
    }
}
