//! The actor of a request.

use axum::http::{HeaderMap, header};
use onward_store::Timestamp;

use super::key::KeyRecord;
use super::key_file::KeyFile;
use super::keys::Keys;
use super::role::Role;
use crate::http::problem::{Code, Problem};

/// The holder of the key of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Actor {
    /// The id of the key.
    pub(crate) key: String,
    /// The name of the key.
    pub(crate) name: String,
    /// The role of the key.
    pub(crate) role: Role,
    /// True for the key of a key file.
    pub(crate) is_key_file: bool,
    /// The time at which the key expires.
    pub(crate) expires_at: Option<Timestamp>,
}

impl Actor {
    /// Returns the owner of the actor's idempotency keys: the id of its key. The key file has a new
    /// key after each start of the server, so all keys of the key file are one owner.
    pub(crate) fn owner(&self) -> &str {
        if self.is_key_file { KeyFile::NAME } else { &self.key }
    }

    /// Returns true if the key is that of the key file, which only the user of the store can read.
    pub(crate) fn is_local_user(&self) -> bool {
        self.is_key_file
    }

    /// Returns the actor of a change that needs no key: it was made by the one-time link.
    pub(crate) fn of_link() -> Self {
        let name = "one-time link".to_owned();
        Self { key: String::new(), name, role: Role::Admin, is_key_file: false, expires_at: None }
    }

    /// Returns the actor of a request whose credential was refused.
    pub(crate) fn unknown() -> Self {
        let name = "unknown".to_owned();
        Self { key: String::new(), name, role: Role::Viewer, is_key_file: false, expires_at: None }
    }

    /// Checks that the actor has a role.
    pub(crate) fn needs(&self, role: Role) -> Result<(), Problem> {
        if self.role >= role {
            return Ok(());
        }
        Err(Problem::new(
            Code::Forbidden,
            format!("the key `{}` has the role {} and this needs {role}", self.name, self.role),
            format!("use a key with the role {role}: `onward key create NAME --role {role}`"),
        ))
    }
}

/// Returns the actor of a request by its `Authorization: Bearer` header.
pub(crate) async fn authenticate(keys: &Keys, headers: &HeaderMap) -> Result<Actor, Problem> {
    let Some(value) = headers.get(header::AUTHORIZATION) else { return Err(missing()) };
    let key = value.to_str().ok().and_then(bearer).ok_or_else(invalid)?;
    let record = keys.find(key).await?.ok_or_else(invalid)?;
    let KeyRecord { id, name, role, is_key_file, expires_at, .. } = record;
    Ok(Actor { key: id, name, role, is_key_file, expires_at })
}

fn bearer(value: &str) -> Option<&str> {
    let (scheme, key) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| key.trim())
}

#[cold]
fn missing() -> Problem {
    let remedy = "send `Authorization: Bearer KEY`; `onward key create NAME --role ROLE` makes a key";
    Problem::new(Code::CredentialMissing, "the request has no credential", remedy)
}

/// The problem of every key that is not accepted: the reasons look alike.
#[cold]
fn invalid() -> Problem {
    let remedy = "use another key; `onward key list` shows which are active";
    Problem::new(Code::CredentialInvalid, "the key is unknown, expired or revoked", remedy)
}
