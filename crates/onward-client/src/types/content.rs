//! Payloads and results inside other bodies.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::{Error, Result};

/// The content of a payload or a result. One of the fields is set.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Content {
    /// The content, if it is JSON. Whole numbers beyond 64 bits have lost digits.
    pub json: Option<Value>,
    /// The content in base64, if it is not JSON.
    pub base64: Option<String>,
}

impl Content {
    /// Returns the content as bytes.
    ///
    /// # Errors
    /// Returns an error if the field `base64` has other characters.
    pub fn bytes(&self) -> Result<Bytes> {
        match (&self.base64, &self.json) {
            (Some(text), _) => STANDARD
                .decode(text)
                .map(Bytes::from)
                .map_err(|error| Error::unreadable(format!("a content is not base64: {error}"))),
            (None, Some(json)) => Ok(json.to_string().into()),
            (None, None) => Ok(Bytes::new()),
        }
    }
}
