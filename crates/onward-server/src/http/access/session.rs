//! Sessions of browsers, as they are stored and listed.

use onward_store::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::role::Role;
use crate::http::bounds;

/// A session of a browser, without its secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct SessionRecord {
    /// The id.
    pub(crate) id: String,
    /// The name of the key or the account that signed in; `first admin` after the one-time link.
    pub(crate) name: String,
    /// The role. A session of an account has the present role of the account.
    pub(crate) role: Role,
    /// The id of the key that signed in. The session ends when the key does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) key: Option<String>,
    /// The account that signed in. The session ends when the account is disabled or deleted, or its
    /// password is changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) account: Option<String>,
    /// The issuer at which the person signed in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) issuer: Option<String>,
    /// The subject of the person at the issuer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) subject: Option<String>,
    /// The time of the sign-in.
    #[schema(value_type = String, format = DateTime)]
    pub(crate) created_at: Timestamp,
    /// The last time at which the use of the session was noted, which happens once an hour.
    #[schema(value_type = String, format = DateTime)]
    pub(crate) used_at: Timestamp,
    /// The time at which the session ends, unless it is used before.
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
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) account: Option<String>,
    /// The epoch of the account at the sign-in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) epoch: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) issuer: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) subject: Option<String>,
    /// The SHA-256 of the secret.
    pub(super) hash: String,
    pub(super) created_at: Timestamp,
    /// The last time at which its use was noted; `None` for the sign-in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) used_at: Option<Timestamp>,
    /// The time at which it ends at the latest.
    pub(super) expires_at: Timestamp,
}

impl StoredSession {
    pub(super) fn used_at(&self) -> Timestamp {
        self.used_at.unwrap_or(self.created_at)
    }

    /// Returns the time at which the session ends if it is not used any more.
    pub(super) fn ends_at(&self) -> Timestamp {
        self.expires_at.min(self.used_at().plus(bounds::SESSION_IDLE))
    }

    pub(super) fn record(self, id: String) -> SessionRecord {
        let (used_at, expires_at) = (self.used_at(), self.ends_at());
        let Self { name, role, key, account, issuer, subject, created_at, .. } = self;
        SessionRecord { id, name, role, key, account, issuer, subject, created_at, used_at, expires_at }
    }
}
