//! `/v1/sessions`, `/v1/me` and `/v1/sign-out`: browsers.

use axum::http::{HeaderValue, Method, StatusCode, header};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::route::{Access, Route, route};
use crate::http::access::{Actor, NewSession, Role, SessionRecord, SignInBody, change_own_password, cookie};
use crate::http::problem::{Code, Problem};
use crate::http::request::Call;
use crate::http::wire::{Page, Reply, created, json, no_content};

pub(super) fn table() -> Vec<Route> {
    let (viewer, admin) = (Access::Needs(Role::Viewer), Access::Needs(Role::Admin));
    let (get, post) = (Method::GET, Method::POST);
    vec![
        route(get.clone(), "/v1/me", viewer, "Returns the holder of the credential.", me)
            .returns::<MeBody>(200, "The name and the role."),
        route(post.clone(), "/v1/sign-out", viewer, "Ends the session of the cookie.", sign_out)
            .returns_nothing("The cookie is not accepted any more."),
        route(get, "/v1/sessions", admin, "Lists the sessions of browsers.", list)
            .returns_page::<SessionRecord>("All sessions, the oldest first."),
        route(post, "/v1/sessions", Access::SignsIn, "Signs a browser in, with a password or a key.", create)
            .takes_optional::<SignInBody>()
            .header("Authorization", "A key, instead of a name and a password.")
            .header("X-Onward-Page", "`1`, which a page of another origin cannot send. A password needs it.")
            .returns::<SessionRecord>(201, "The session. `Set-Cookie` has its secret."),
        route(Method::PUT, "/v1/me/password", viewer, "Sets the password of the account of the session.", set_password)
            .takes::<OwnPasswordBody>()
            .returns_nothing("The password is set. All sessions of the account have ended."),
        route(Method::DELETE, "/v1/sessions/{session}", admin, "Ends a session.", revoke)
            .returns::<SessionRecord>(200, "The session, which no server accepts any more."),
    ]
}

/// The holder of a credential.
#[derive(Debug, Serialize, ToSchema)]
struct MeBody {
    /// The name of the key or the account.
    name: String,
    /// The role.
    role: Role,
    /// The account, if a name and a password signed in.
    #[serde(skip_serializing_if = "Option::is_none")]
    account: Option<String>,
    /// The id of the session, if the credential is a cookie.
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<String>,
    /// The sort of the store: `memory`, `sqlite` or `postgres`.
    store: &'static str,
}

fn actor(call: &Call) -> Result<Actor, Problem> {
    let missing = || Problem::new(Code::CredentialMissing, "the request has no credential", "sign in");
    call.actor.clone().ok_or_else(missing)
}

async fn me(call: Call) -> Reply {
    let Actor { name, role, session, account, .. } = actor(&call)?;
    let account = account.map(|account| account.name);
    json(&MeBody { name, role, account, session, store: call.server.store.info().backend })
}

async fn create(call: Call) -> Reply {
    let actor = actor(&call)?;
    let is_token = actor.is_token();
    let Actor { key, name, role, account, .. } = actor;
    if !matches!(call.body.trim_ascii(), b"" | b"{}") {
        let detail = "the request has two credentials: a key, and a name with a password";
        return Err(Problem::new(Code::Malformed, detail, "send one of them"));
    }
    if is_token {
        let remedy = "send the token with each request; people sign in at GET /v1/sign-in/oidc";
        return Err(Problem::new(
            Code::Conflict,
            "a token of the issuer opens no session, which would outlive it",
            remedy,
        ));
    }
    let key = if account.is_some() { None } else { Some(key) };
    let new = NewSession { name, role, key, account, issuer: None, replaces: replaced_session(&call).await? };
    let (secret, record) = call.server.sessions.create(new).await?;
    let reply = created(StatusCode::CREATED, &format!("/v1/sessions/{}", record.id), &record);
    with_cookie(reply, &cookie::set(&call.headers, &secret))
}

/// Returns the id of the session that a browser has while it signs in again. It ends, so that a
/// cookie from before is worth nothing after.
pub(super) async fn replaced_session(call: &Call) -> Result<Option<String>, Problem> {
    match cookie::read(&call.headers) {
        Some(cookie) => Ok(call.server.sessions.id_of(cookie).await?),
        None => Ok(None),
    }
}

/// A new password.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct OwnPasswordBody {
    /// The present password.
    #[schema(format = Password)]
    password: String,
    /// The new password: at least 12 characters.
    #[schema(format = Password)]
    new_password: String,
}

async fn set_password(call: Call) -> Reply {
    let OwnPasswordBody { password, new_password } = call.json()?;
    let Some(account) = actor(&call)?.account else {
        let remedy = "sign in with a name and a password; an admin sets another with `onward account password NAME`";
        return Err(Problem::new(Code::Conflict, "the credential is no session of an account", remedy));
    };
    change_own_password(&call.server, &account.name, [password, new_password], call.address).await?;
    call.server.key_checks.note_revoked();
    with_cookie(no_content(), &cookie::remove(&call.headers))
}

async fn sign_out(call: Call) -> Reply {
    let Some(session) = actor(&call)?.session else {
        let remedy = "revoke a key with DELETE /v1/keys/{key}";
        return Err(Problem::new(Code::Conflict, "the credential is a key, which has no session", remedy));
    };
    call.server.sessions.end(&session).await?;
    call.server.key_checks.note_revoked();
    with_cookie(no_content(), &cookie::remove(&call.headers))
}

async fn list(call: Call) -> Reply {
    json(&Page { items: call.server.sessions.list().await?, next: None })
}

async fn revoke(call: Call) -> Reply {
    let id = call.parameter("session");
    match call.server.sessions.end(id).await? {
        Some(record) => {
            call.server.key_checks.note_revoked();
            json(&record)
        }
        None => Err(Problem::not_found("session", id, "GET /v1/sessions lists the ids")),
    }
}

/// Adds a cookie to a response.
pub(super) fn with_cookie(reply: Reply, cookie: &str) -> Reply {
    let mut response = reply?;
    let value = HeaderValue::from_str(cookie).map_err(|_| {
        Problem::new(Code::Malformed, "the host of the request is no host name", "use another name of the server")
    })?;
    response.headers_mut().append(header::SET_COOKIE, value);
    Ok(response)
}
