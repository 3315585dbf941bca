//! Responses without an error.

use bytes::Bytes;
use hyper::HeaderMap;
use hyper::header::ETAG;
use serde::de::DeserializeOwned;

use crate::error::{Error, Result};

/// A response to a request that succeeded.
#[derive(Debug, Clone)]
pub struct Response {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Response {
    /// Returns the status.
    #[must_use]
    pub fn status(&self) -> u16 {
        self.status
    }

    /// Returns the entity tag of the thing, for [`Request::if_match`](crate::Request::if_match).
    #[must_use]
    pub fn etag(&self) -> Option<&str> {
        self.headers.get(ETAG)?.to_str().ok()
    }

    /// Returns the body.
    #[must_use]
    pub fn body(&self) -> &Bytes {
        &self.body
    }

    /// Reads the body as JSON.
    ///
    /// # Errors
    /// Returns an error if the body is not what the type states, as with a server of another
    /// version.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T> {
        serde_json::from_slice(&self.body).map_err(|error| {
            Error::unreadable(format!(
                "the response cannot be read: {error}; compare the versions of client and server"
            ))
        })
    }
}
