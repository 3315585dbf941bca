//! Sessions of browsers, as they are stored and listed.

use onward_store::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::role::Role;

/// A session of a browser, without its secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct SessionRecord {
    /// The id.
    pub(crate) id: String,
    /// The name of the key that signed in; `first admin` after the one-time link.
    pub(crate) name: String,
    /// The role.
    pub(crate) role: Role,
    /// The id of the key that signed in. The session ends when the key does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) key: Option<String>,
    /// The time of the sign-in.
    #[schema(value_type = String, format = DateTime)]
    pub(crate) created_at: Timestamp,
    /// The time at which the session ends.
    #[schema(value_type = String, format = DateTime)]
    pub(crate) expires_at: Timestamp,
}

/// The content of the document of a session.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct StoredSession {
    pub(super) name: String,
    pub(super) role: Role,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) key: Option<String>,
    /// The SHA-256 of the secret.
    pub(super) hash: String,
    pub(super) created_at: Timestamp,
    pub(super) expires_at: Timestamp,
}

impl StoredSession {
    pub(super) fn record(self, id: String) -> SessionRecord {
        let Self { name, role, key, created_at, expires_at, .. } = self;
        SessionRecord { id, name, role, key, created_at, expires_at }
    }
}
