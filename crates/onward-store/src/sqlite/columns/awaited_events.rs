//! The column of `instance` with the events that an orchestration waits for.

use crate::api::error::{Error, Result};
use crate::api::name::Name;

/// Encodes names as JSON; `None` for an empty list.
pub(in crate::sqlite) fn names_text(names: &[Name]) -> Option<String> {
    // The encoding of text cannot fail.
    Some(names).filter(|names| !names.is_empty()).and_then(|names| serde_json::to_string(names).ok())
}

/// Returns the names that [`names_text`] wrote.
pub(in crate::sqlite) fn names(text: Option<&str>) -> Result<Vec<Name>> {
    let Some(text) = text else { return Ok(Vec::new()) };
    serde_json::from_str(text).map_err(|error| {
        Error::corrupt("what an orchestration waits for cannot be read; restore a backup").caused_by(error)
    })
}
