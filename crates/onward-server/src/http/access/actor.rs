//! The actor of a request.

use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, header};

use super::cookie;
use super::key_file::KeyFile;
use super::role::Role;
use crate::http::problem::{Code, Problem};
use crate::http::server::Server;

/// The header that a page sends with each change. A page of another origin cannot send it: the
/// browser asks this server first, which does not allow it.
const PAGE_HEADER: &str = "x-onward-page";

/// The holder of the key of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Actor {
    /// The id of the key, or that of the session if no key signed in.
    pub(crate) key: String,
    /// The name of the key.
    pub(crate) name: String,
    /// The role of the key.
    pub(crate) role: Role,
    /// The id of the session, if the credential is a cookie.
    pub(crate) session: Option<String>,
}

impl Actor {
    /// Returns the owner of the actor's idempotency keys: the id of its key. The key file has a new
    /// key after each start of the server, so its owner is its name.
    pub(crate) fn owner(&self) -> &str {
        if self.name == KeyFile::NAME && self.role == Role::Admin { KeyFile::NAME } else { &self.key }
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

/// Returns the actor of a request by its `Authorization: Bearer` header, or by the cookie of a
/// session.
pub(crate) async fn authenticate(server: &Server, parts: &Parts) -> Result<Actor, Problem> {
    let headers = &parts.headers;
    if let Some(value) = headers.get(header::AUTHORIZATION) {
        let key = value.to_str().ok().and_then(bearer).ok_or_else(invalid)?;
        let record = server.keys.find(key).await?.ok_or_else(invalid)?;
        return Ok(Actor { key: record.id, name: record.name, role: record.role, session: None });
    }
    let cookie = cookie::read(headers).ok_or_else(missing)?;
    check_own_page(&parts.method, headers)?;
    let session = server.sessions.find(cookie).await?.ok_or_else(session_over)?;
    let key = session.key.unwrap_or_else(|| session.id.clone());
    Ok(Actor { key, name: session.name, role: session.role, session: Some(session.id) })
}

/// Checks that a request with a cookie comes from a page of this server. Browsers send a cookie
/// with requests of other pages, too: those of another port of the same host count as the same
/// site.
fn check_own_page(method: &Method, headers: &HeaderMap) -> Result<(), Problem> {
    let site = headers.get("sec-fetch-site").and_then(|site| site.to_str().ok());
    let is_own = site.is_none_or(|site| matches!(site, "same-origin" | "none"));
    if is_own && (method == Method::GET || headers.contains_key(PAGE_HEADER)) {
        return Ok(());
    }
    let detail = "a request with a cookie must come from a page of this server";
    Err(Problem::new(Code::OriginRefused, detail, "send `X-Onward-Page: 1` with a change, or use a key")
        .field("X-Onward-Page"))
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

#[cold]
fn session_over() -> Problem {
    let remedy = "sign in again";
    Problem::new(Code::CredentialInvalid, "the session is unknown, over or revoked", remedy)
}

/// The problem of every key that is not accepted: the reasons look alike.
#[cold]
fn invalid() -> Problem {
    let remedy = "use another key; `onward key list` shows which are active";
    Problem::new(Code::CredentialInvalid, "the key is unknown, expired or revoked", remedy)
}
