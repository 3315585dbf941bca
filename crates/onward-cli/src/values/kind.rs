//! Kinds that users define.

use onward_store::Name;

/// Reads a kind or a pattern of kinds. Rejects kinds reserved for Onward.
pub(crate) fn parse_kind(text: &str) -> Result<Name, String> {
    let kind = Name::new(text).map_err(|error| error.to_string())?;
    kind.check_own("kind").map_err(|error| error.to_string())?;
    Ok(kind)
}
