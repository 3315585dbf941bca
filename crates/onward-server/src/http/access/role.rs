//! Roles of keys.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The role of a key. Each role may do what the roles before it may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Reads everything except payloads and results.
    Viewer,
    /// Reads payloads and results, submits tasks, and acts on tasks, queues and limits.
    Operator,
    /// Changes schedules and templates.
    Developer,
    /// Manages keys and reads the audit records.
    Admin,
}

impl Role {
    /// All roles, the least first.
    pub const ALL: [Self; 4] = [Self::Viewer, Self::Operator, Self::Developer, Self::Admin];

    /// Returns the name in lower case.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Operator => "operator",
            Self::Developer => "developer",
            Self::Admin => "admin",
        }
    }

    /// Returns true if the role may read payloads and results.
    #[must_use]
    pub fn reads_payloads(self) -> bool {
        self >= Self::Operator
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Role {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|role| role.as_str() == text);
        found.ok_or_else(|| format!("`{text}` is not a role; the roles are {}", Self::ALL.map(Self::as_str).join(", ")))
    }
}
