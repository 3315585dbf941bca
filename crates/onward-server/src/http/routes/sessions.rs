//! `/v1/sessions`, `/v1/me` and `/v1/sign-out`: browsers.

use axum::http::{HeaderValue, Method, StatusCode, header};
use serde::Serialize;
use utoipa::ToSchema;

use super::route::{Access, Route, route};
use crate::http::access::{Actor, NewSession, Role, SessionRecord, cookie};
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
        route(post, "/v1/sessions", viewer, "Signs a browser in with a key.", create)
            .returns::<SessionRecord>(201, "The session. `Set-Cookie` has its secret."),
        route(Method::DELETE, "/v1/sessions/{session}", admin, "Ends a session.", revoke)
            .returns::<SessionRecord>(200, "The session, which no server accepts any more."),
    ]
}

/// The holder of a credential.
#[derive(Debug, Serialize, ToSchema)]
struct MeBody {
    /// The name of the key.
    name: String,
    /// The role.
    role: Role,
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
    let Actor { name, role, session, .. } = actor(&call)?;
    json(&MeBody { name, role, session, store: call.server.store.info().backend })
}

async fn create(call: Call) -> Reply {
    let Actor { key, name, role, session, .. } = actor(&call)?;
    if session.is_some() {
        let remedy = "send a key as `Authorization: Bearer KEY`";
        return Err(Problem::new(Code::Conflict, "a session cannot create another one", remedy));
    }
    let new = NewSession { name, role, key: Some(key) };
    let (secret, record) = call.server.sessions.create(new).await?;
    let reply = created(StatusCode::CREATED, &format!("/v1/sessions/{}", record.id), &record);
    with_cookie(reply, &cookie::set(&call.headers, &secret))
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
    response.headers_mut().insert(header::SET_COOKIE, value);
    Ok(response)
}
