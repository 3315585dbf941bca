//! The document that describes a problem (RFC 9457).

use axum::body::Body;
use axum::http::{HeaderValue, Response, StatusCode, header};
use serde::Serialize;
use utoipa::ToSchema;

use super::code::Code;

/// A problem, before it is sent.
#[derive(Debug)]
pub(crate) struct Problem {
    pub(crate) code: Code,
    detail: String,
    remedy: String,
    field: Option<String>,
    retry_after: Option<u32>,
    /// The address of a page that shows it to a person.
    shown_at: Option<String>,
}

/// A problem, as it is sent.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ProblemBody {
    /// The address of the description of the code.
    #[serde(rename = "type")]
    #[schema(value_type = String)]
    kind: String,
    /// The title, the same for each problem of the code.
    title: &'static str,
    /// The status of the response.
    status: u16,
    /// A description of this problem, for people.
    detail: String,
    /// The code, for programs.
    code: Code,
    /// The remedy, for people.
    remedy: String,
    /// The field of the body, the parameter or the header at fault.
    #[serde(skip_serializing_if = "Option::is_none")]
    field: Option<String>,
    /// The number of the request, which the server logs.
    request_id: String,
}

impl Problem {
    #[cold]
    pub(crate) fn new(code: Code, detail: impl Into<String>, remedy: impl Into<String>) -> Self {
        let (detail, remedy) = (detail.into(), remedy.into());
        Self { code, detail, remedy, field: None, retry_after: None, shown_at: None }
    }

    /// Splits a message of the form "fault; remedy".
    #[cold]
    pub(crate) fn of_message(code: Code, message: &str) -> Self {
        match message.rsplit_once("; ") {
            Some((detail, remedy)) => Self::new(code, detail, remedy),
            None => Self::new(code, message, "change the request"),
        }
    }

    pub(crate) fn field(mut self, field: impl Into<String>) -> Self {
        self.field = Some(field.into());
        self
    }

    /// Names the item of a list in which the field is.
    pub(crate) fn within(self, list: &str, index: usize) -> Self {
        let field = self
            .field
            .as_deref()
            .map_or_else(|| format!("{list}[{index}]"), |field| format!("{list}[{index}].{field}"));
        self.field(field)
    }

    /// Asks the client to wait for some seconds before a retry.
    pub(crate) fn retry_after(mut self, seconds: u32) -> Self {
        self.retry_after = Some(seconds);
        self
    }

    /// Redirects the browser of a person to a page that shows the problem.
    pub(crate) fn shown_at(mut self, address: String) -> Self {
        self.shown_at = Some(address);
        self
    }

    pub(crate) fn detail(&self) -> &str {
        &self.detail
    }

    pub(crate) fn remedy(&self) -> &str {
        &self.remedy
    }

    #[cold]
    pub(crate) fn invalid(field: &str, detail: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::new(Code::Invalid, detail, remedy).field(field)
    }

    #[cold]
    pub(crate) fn not_found(what: &str, name: &str, remedy: &str) -> Self {
        Self::new(Code::NotFound, format!("there is no {what} `{name}`"), remedy)
    }

    pub(crate) fn into_response(self, request_id: &str) -> Response<Body> {
        if let Some(address) = self.shown_at.as_deref().and_then(|it| HeaderValue::from_str(it).ok()) {
            let mut response = Response::new(Body::empty());
            *response.status_mut() = StatusCode::SEE_OTHER;
            response.headers_mut().insert(header::LOCATION, address);
            return response;
        }
        let status = self.code.status();
        let body = ProblemBody {
            kind: format!("urn:onward:problem:{}", self.code.as_str()),
            title: self.code.title(),
            status: status.as_u16(),
            detail: self.detail,
            code: self.code,
            remedy: self.remedy,
            field: self.field,
            request_id: request_id.to_owned(),
        };
        // The body has only strings and numbers, so it can always be written.
        let mut text = serde_json::to_vec(&body).unwrap_or_default();
        text.push(b'\n');
        let mut response = Response::new(Body::from(text));
        *response.status_mut() = status;
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if let Some(seconds) = self.retry_after {
            headers.insert(header::RETRY_AFTER, seconds.into());
        }
        if status == 401 {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"onward\""));
        }
        response
    }
}
