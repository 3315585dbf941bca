//! API keys, as they are stored and listed.

use std::time::Duration;

use onward_store::{Error, Timestamp};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::role::Role;
use super::secret::SecretHash;
use crate::http::bounds;

/// The beginning of every key, by which scanners of sources find one that was published.
const PREFIX: &str = "onward_";

/// The request for a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewKey {
    /// The name, for people: 1 to 128 bytes. No other active key may have it.
    pub name: String,
    /// The role.
    pub role: Role,
    /// The time after which the key is refused. Default: it does not expire.
    pub expires_after: Option<Duration>,
}

impl NewKey {
    pub(super) fn check(&self) -> Result<(), Error> {
        let bytes = self.name.len();
        if self.name.trim().is_empty() || bytes > bounds::KEY_NAME_BYTES || self.name.chars().any(char::is_control) {
            let limit = bounds::KEY_NAME_BYTES;
            return Err(Error::invalid(format!(
                "the name of the key has {bytes} bytes; give it 1 to {limit} bytes without control characters"
            )));
        }
        match self.expires_after {
            Some(Duration::ZERO) => Err(Error::invalid("the key expires at once; give it a longer time, or none")),
            _ => Ok(()),
        }
    }
}

/// A key without its secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[non_exhaustive]
pub struct KeyRecord {
    /// The id, which is also the first part of the key.
    pub id: String,
    /// The name.
    pub name: String,
    /// The role.
    pub role: Role,
    /// The state.
    pub state: KeyState,
    /// True for the key of a key file, which `onward serve` makes for itself.
    pub is_key_file: bool,
    /// The time at which it was created.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    /// The time at which it expires.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub expires_at: Option<Timestamp>,
    /// The time at which it was revoked.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub revoked_at: Option<Timestamp>,
}

/// The state of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum KeyState {
    /// It is accepted.
    Active,
    /// Its time is over.
    Expired,
    /// It was revoked.
    Revoked,
}

/// The content of the document of a key.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct StoredKey {
    pub(super) name: String,
    pub(super) role: Role,
    /// The SHA-256 of the secret.
    pub(super) hash: String,
    /// True for the key of a key file. No request can set it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) is_key_file: bool,
    pub(super) created_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) expires_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) revoked_at: Option<Timestamp>,
}

impl StoredKey {
    pub(super) fn state(&self, now: Timestamp) -> KeyState {
        match (self.revoked_at, self.expires_at) {
            (Some(_), _) => KeyState::Revoked,
            (None, Some(expires)) if expires <= now => KeyState::Expired,
            _ => KeyState::Active,
        }
    }

    pub(super) fn hash(&self) -> Option<SecretHash> {
        SecretHash::from_text(&self.hash)
    }

    pub(super) fn record(self, id: String, now: Timestamp) -> KeyRecord {
        let state = self.state(now);
        let Self { name, role, is_key_file, created_at, expires_at, revoked_at, .. } = self;
        KeyRecord { id, name, role, state, is_key_file, created_at, expires_at, revoked_at }
    }
}

/// Returns the text of a key.
pub(super) fn text(id: &str, secret: &str) -> String {
    format!("{PREFIX}{id}_{secret}")
}

/// Returns the id and the secret of a text that looks like a key.
pub(super) fn parts(text: &str) -> Option<(&str, &str)> {
    let (id, secret) = text.strip_prefix(PREFIX)?.split_once('_')?;
    (is_id(id) && !secret.is_empty()).then_some((id, secret))
}

/// Returns true for a text that may be the id of a key.
pub(super) fn is_id(text: &str) -> bool {
    text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_read_as_it_is_written() {
        let (id, secret) = ("0123456789abcdef", "a_b-c");
        assert_eq!(parts(&text(id, secret)), Some((id, secret)));
    }

    #[test]
    fn other_texts_are_no_keys() {
        for text in ["", "onward_", "onward_0123456789abcdef", "onward_0123456789abcdef_", "onward_../a_b", "x_y_z"] {
            assert_eq!(parts(text), None, "{text}");
        }
    }
}
