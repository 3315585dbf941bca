//! Kinds of a user's own.

use onward_store::Name;

/// Reads a kind, or a pattern of kinds, that is none of Onward's own.
pub(crate) fn parse_kind(text: &str) -> Result<Name, String> {
    let kind = Name::new(text).map_err(|error| error.to_string())?;
    kind.check_own("kind").map_err(|error| error.to_string())?;
    Ok(kind)
}
