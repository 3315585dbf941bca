//! Cursors of lists: opaque texts, so that their form can change.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::http::problem::Problem;

/// Writes a position as a cursor.
pub(crate) fn encode<T: Serialize>(position: &T) -> String {
    // Positions are numbers and texts, so they can always be written.
    URL_SAFE_NO_PAD.encode(serde_json::to_vec(position).unwrap_or_default())
}

/// Reads the position of a cursor.
pub(crate) fn decode<T: DeserializeOwned>(cursor: &str) -> Result<T, Problem> {
    let bytes = URL_SAFE_NO_PAD.decode(cursor).ok();
    bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()).ok_or_else(|| {
        Problem::invalid("cursor", "the cursor is not one of this list", "use `next` of the page before")
    })
}
