//! Payloads and results: bytes, shown as JSON where they are JSON.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

/// The content of a payload or a result. One of the fields is set.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub(crate) struct Content {
    /// The content, if it is JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    json: Option<Value>,
    /// The content in base64, if it is not JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    base64: Option<String>,
}

impl Content {
    pub(crate) fn new(bytes: &Bytes) -> Self {
        match serde_json::from_slice(bytes) {
            Ok(json) => Self { json: Some(json), base64: None },
            Err(_) => Self { json: None, base64: Some(STANDARD.encode(bytes)) },
        }
    }
}
