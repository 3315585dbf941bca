//! The actor of a request.

use axum::http::{HeaderMap, Method, header};
use onward_store::Timestamp;

use super::account::SignedIn;
use super::cookie;
use super::issuer::{Identity, Issuer, Rejection, looks_like_token};
use super::key::KeyRecord;
use super::key_file::KeyFile;
use super::oidc::issuer_unavailable;
use super::role::Role;
use crate::http::problem::{Code, Problem};
use crate::http::server::Server;

/// The header that a page sends with each change. A page of another origin cannot send it: the
/// browser asks this server first, which does not allow it.
const PAGE_HEADER: &str = "x-onward-page";

/// The beginning of the id of a subject of the issuer. No key has such an id.
const SUBJECT: &str = "subject:";

/// The holder of the key of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Actor {
    /// The id of the key, or that of the session if no key signed in.
    pub(crate) key: String,
    /// The name of the key.
    pub(crate) name: String,
    /// The role of the key.
    pub(crate) role: Role,
    /// True for the key of a key file, which only the user of the store can read.
    pub(crate) is_key_file: bool,
    /// The time at which the credential expires.
    pub(crate) expires_at: Option<Timestamp>,
    /// The id of the session, if the credential is a cookie.
    pub(crate) session: Option<String>,
    /// The account, if a name and a password signed in.
    pub(crate) account: Option<ActorAccount>,
    /// True if the use of the session is to be noted.
    is_use_due: bool,
}

/// The account of an actor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ActorAccount {
    pub(crate) name: String,
    /// The state of the account at the sign-in. The session ends when it is another one.
    pub(crate) epoch: String,
}

impl Actor {
    /// Returns the owner of the actor's idempotency keys: the id of its key. The key file has a new
    /// key after each start of the server, so all keys of the key file are one owner.
    pub(crate) fn owner(&self) -> &str {
        if self.is_key_file { KeyFile::NAME } else { &self.key }
    }

    fn new(key: String, name: String, role: Role) -> Self {
        let (expires_at, session, account) = (None, None, None);
        Self { key, name, role, is_key_file: false, expires_at, session, account, is_use_due: false }
    }

    /// Returns the actor of a change that needs no key: it was made by the one-time link.
    pub(crate) fn of_link() -> Self {
        Self::new(String::new(), "one-time link".to_owned(), Role::Admin)
    }

    /// Returns the actor of `onward mcp`, which its user has started.
    pub(crate) fn of_process(role: Role) -> Self {
        Self::new(String::new(), "onward mcp".to_owned(), role)
    }

    /// Returns the actor of a command that works on the store itself.
    pub(crate) fn of_command_line(user: String) -> Self {
        Self::new(String::new(), user, Role::Admin)
    }

    /// Returns the actor of a request whose credential was refused.
    pub(crate) fn unknown() -> Self {
        Self::new(String::new(), "unknown".to_owned(), Role::Viewer)
    }

    /// Returns the actor of an account that has just signed in.
    pub(crate) fn of_account(SignedIn { name, epoch, role }: SignedIn) -> Self {
        let account = Some(ActorAccount { name: name.clone(), epoch });
        Self { account, ..Self::new(account_key(&name), name, role) }
    }

    /// Returns the actor of a person or a program that an issuer knows.
    pub(crate) fn of_identity(Identity { subject, name, expires_at, .. }: Identity, role: Role) -> Self {
        Self { expires_at: Some(expires_at), ..Self::new(subject_key(&subject), name, role) }
    }

    /// Returns true if the credential is a token of the issuer, or a session of its subject.
    pub(crate) fn is_token(&self) -> bool {
        self.key.starts_with(SUBJECT)
    }

    /// Returns the id of the credential: of the session, or of the key.
    pub(crate) fn credential(&self) -> &str {
        self.session.as_deref().unwrap_or(&self.key)
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

/// Returns the id that an account has in the place of a key. No key has such an id.
fn account_key(name: &str) -> String {
    format!("account:{name}")
}

/// Returns the id that a subject of the issuer has in the place of a key.
fn subject_key(subject: &str) -> String {
    format!("{SUBJECT}{subject}")
}

/// Returns the actor of a request by its `Authorization: Bearer` header, or by the cookie of a
/// session.
pub(crate) async fn authenticate(server: &Server, method: &Method, headers: &HeaderMap) -> Result<Actor, Problem> {
    if let Some(value) = headers.get(header::AUTHORIZATION) {
        let key = value.to_str().ok().and_then(bearer).ok_or_else(invalid)?;
        if let Some(issuer) = server.issuer_of_bearers().filter(|_| looks_like_token(key)) {
            return of_token(server, issuer, key).await;
        }
        let record = server.keys.find(key).await?.ok_or_else(invalid)?;
        let KeyRecord { id, name, role, is_key_file, expires_at, .. } = record;
        return Ok(Actor { is_key_file, expires_at, ..Actor::new(id, name, role) });
    }
    let cookie = cookie::read(headers).ok_or_else(missing)?;
    check_own_page(method, headers)?;
    let found = server.sessions.find(cookie).await?.ok_or_else(session_over)?;
    let (session, is_use_due) = (found.record, found.is_use_due);
    if session.issuer.is_some()
        && session.issuer.as_deref() != server.sign_in_issuer().map(|it| it.0.options.url.as_str())
    {
        return Err(session_over());
    }
    let holder = session.account.as_deref().map(account_key).or(session.subject.as_deref().map(subject_key));
    let key = holder.or(session.key).unwrap_or_else(|| session.id.clone());
    let account = session.account.zip(found.epoch).map(|(name, epoch)| ActorAccount { name, epoch });
    let (expires_at, session_id) = (Some(session.expires_at), Some(session.id));
    let actor = Actor::new(key, session.name, session.role);
    Ok(Actor { expires_at, session: session_id, account, is_use_due, ..actor })
}

/// Returns the actor of a bearer token of the issuer.
async fn of_token(server: &Server, issuer: &Issuer, token: &str) -> Result<Actor, Problem> {
    let time = server.limits.get().request_time;
    let identity = issuer.check_bearer(token, time).await.map_err(|rejection| token_refused(&rejection))?;
    match identity.role {
        Some(role) => Ok(Actor::of_identity(identity, role)),
        None => Err(without_role(&identity, issuer)),
    }
}

/// Returns the actor of a request, and notes that its session is in use.
pub(crate) async fn authenticate_request(
    server: &Server,
    method: &Method,
    headers: &HeaderMap,
) -> Result<Actor, Problem> {
    let actor = authenticate(server, method, headers).await?;
    if let (true, Some(session)) = (actor.is_use_due, &actor.session)
        && let Err(error) = server.sessions.note_use(session).await
    {
        // A store that only reads serves a request that only reads.
        tracing::warn!(%error, "the use of a session could not be noted, so it may end early");
    }
    Ok(actor)
}

/// Checks that a request with a cookie comes from a page of this server. Browsers send a cookie
/// with requests of other pages, too: those of another port of the same host count as the same
/// site.
pub(crate) fn check_own_page(method: &Method, headers: &HeaderMap) -> Result<(), Problem> {
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

/// Returns the problem of every key that is not accepted. It does not show the reason.
#[cold]
fn invalid() -> Problem {
    let remedy = "use another key; `onward key list` shows which are active";
    Problem::new(Code::CredentialInvalid, "the key is unknown, expired or revoked", remedy)
}

/// The problem of a token. The reason is given: who has a token with a right signature may read it.
#[cold]
fn token_refused(rejection: &Rejection) -> Problem {
    if *rejection == Rejection::Unavailable {
        return issuer_unavailable();
    }
    Problem::new(Code::CredentialInvalid, rejection.to_string(), "get another token from the issuer for this server")
}

#[cold]
fn without_role(identity: &Identity, issuer: &Issuer) -> Problem {
    let (name, claim) = (&identity.name, &issuer.options.roles_claim);
    let detail = format!("the claim `{claim}` of `{name}` gives no role here");
    let remedy = "ask an admin for a group with a role; `onward serve --claim-role GROUP=ROLE` gives it one";
    Problem::new(Code::Forbidden, detail, remedy)
}
