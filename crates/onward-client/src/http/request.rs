//! Requests.

use std::time::Duration;

use bytes::Bytes;
use hyper::Method;
use hyper::header::{self, HeaderName, HeaderValue};
use serde::Serialize;

use crate::error::{Error, Result};

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
const PREFER: HeaderName = HeaderName::from_static("prefer");

/// A request to any path of the API, for [`Client::send`](crate::Client::send).
///
/// It is sent again after a lost connection if it only reads, or replaces or removes a thing, or
/// has an idempotency key. Other requests are sent again only if the caller states with
/// [`repeatable`](Self::repeatable) that a repeat has no second effect.
#[derive(Debug, Clone)]
pub struct Request {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) headers: Vec<(HeaderName, HeaderValue)>,
    pub(crate) body: Bytes,
    pub(crate) is_repeatable: bool,
    /// The time for which the server may delay its response.
    pub(crate) wait: Duration,
}

impl Request {
    fn new(method: Method, path: impl Into<String>, is_repeatable: bool) -> Self {
        let (headers, body, wait) = (Vec::new(), Bytes::new(), Duration::ZERO);
        Self { method, path: path.into(), headers, body, is_repeatable, wait }
    }

    /// Creates a request that reads. The path begins with `/v1/`, and its parts are encoded.
    #[must_use]
    pub fn get(path: impl Into<String>) -> Self {
        Self::new(Method::GET, path, true)
    }

    /// Creates a request that replaces a thing.
    #[must_use]
    pub fn put(path: impl Into<String>) -> Self {
        Self::new(Method::PUT, path, true)
    }

    /// Creates a request that changes a part of a thing.
    #[must_use]
    pub fn patch(path: impl Into<String>) -> Self {
        Self::new(Method::PATCH, path, true)
    }

    /// Creates a request that removes a thing.
    #[must_use]
    pub fn delete(path: impl Into<String>) -> Self {
        Self::new(Method::DELETE, path, true)
    }

    /// Creates a request that acts or creates.
    #[must_use]
    pub fn post(path: impl Into<String>) -> Self {
        Self::new(Method::POST, path, false)
    }

    /// Sets the body, as JSON.
    ///
    /// # Errors
    /// Returns an error if the value has no form in JSON.
    pub fn json<T: Serialize + ?Sized>(self, body: &T) -> Result<Self> {
        let body = serde_json::to_vec(body)
            .map_err(|error| Error::invalid(format!("the body cannot be written as JSON: {error}")))?;
        Ok(self.bytes("application/json", body))
    }

    /// Sets the body and its content type.
    #[must_use]
    pub fn bytes(mut self, content_type: &'static str, body: impl Into<Bytes>) -> Self {
        self.headers.push((header::CONTENT_TYPE, HeaderValue::from_static(content_type)));
        self.body = body.into();
        self
    }

    /// Adds an idempotency key, so that the request can be repeated: `key`, or a random one.
    ///
    /// # Errors
    /// Returns an error if the key is not of 1 to 255 visible ASCII characters.
    pub fn idempotent(mut self, key: Option<&str>) -> Result<Self> {
        let key = key.map_or_else(|| format!("{:032x}", fastrand::u128(..)), str::to_owned);
        let is_visible = (1..=255).contains(&key.len()) && key.bytes().all(|byte| byte.is_ascii_graphic());
        let value = HeaderValue::from_str(&key).ok().filter(|_| is_visible).ok_or_else(|| {
            Error::invalid("the idempotency key must have 1 to 255 visible ASCII characters; use a digest of it")
        })?;
        self.headers.push((IDEMPOTENCY_KEY, value));
        self.is_repeatable = true;
        Ok(self)
    }

    /// States that a repeat of the request has no second effect.
    #[must_use]
    pub fn repeatable(mut self) -> Self {
        self.is_repeatable = true;
        self
    }

    /// Makes the change fail with 412 if the thing does not have this entity tag. A repeat after a
    /// lost response would fail too, so the request is not repeated.
    ///
    /// # Errors
    /// Returns an error if the text is no entity tag.
    pub fn if_match(mut self, etag: &str) -> Result<Self> {
        let value = HeaderValue::from_str(etag)
            .map_err(|_| Error::invalid(format!("`{etag}` is no entity tag; take one of a response")))?;
        self.headers.push((header::IF_MATCH, value));
        self.is_repeatable = false;
        Ok(self)
    }

    /// Asks the server to delay its response for at most this time, until a task has ended.
    #[must_use]
    pub fn wait(mut self, wait: Duration) -> Self {
        if let Ok(value) = HeaderValue::from_str(&format!("wait={}ms", wait.as_millis().max(1))) {
            self.headers.push((PREFER, value));
        }
        self.wait = wait;
        self
    }
}

impl Request {
    /// Creates a request for a stream of server-sent events behind a cursor.
    pub(crate) fn events(path: &str, cursor: Option<&str>) -> Result<Self> {
        let mut request = Self::get(path);
        request.headers.push((header::ACCEPT, HeaderValue::from_static("text/event-stream")));
        request.headers.push((header::CACHE_CONTROL, HeaderValue::from_static("no-cache")));
        if let Some(cursor) = cursor {
            let value = HeaderValue::from_str(cursor)
                .map_err(|_| Error::invalid(format!("`{cursor}` is no cursor; take one of an event")))?;
            request.headers.push((HeaderName::from_static("last-event-id"), value));
        }
        Ok(request)
    }
}
