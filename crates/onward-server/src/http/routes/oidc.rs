//! `/v1/sign-in/oidc`: people who sign in at the issuer.

use std::sync::Arc;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::route::{Access, Route, route};
use super::sessions::with_cookie;
use crate::http::access::{
    Actor, Flow, Identity, Issuer, NewSession, OidcRefusal, Returned, Role, SessionIssuer, SignInOptions,
    authorization_url, cookie, finish_sign_in, is_place, issuer_unavailable,
};
use crate::http::bounds;
use crate::http::change::{AuditRecord, ChangeScope, in_scope};
use crate::http::listen::{check_host_of, loopback_port};
use crate::http::problem::{Code, Problem};
use crate::http::request::Call;
use crate::http::server::Server;
use crate::http::wire::{Reply, json};

/// The path to which the issuer sends a person back. It is registered at the issuer.
const CALLBACK: &str = "/v1/sign-in/oidc/callback";

/// The page, seen from the two routes of the sign-in.
const PAGE_OF_START: &str = "../../";
const PAGE_OF_CALLBACK: &str = "../../../";

pub(super) fn table() -> Vec<Route> {
    let get = Method::GET;
    vec![
        route(get.clone(), "/v1/sign-in/methods", Access::Open, "Lists the ways to sign in.", methods)
            .returns::<MethodsBody>(200, "The ways to sign in, besides a key and a password."),
        route(get.clone(), "/v1/sign-in/oidc", Access::Open, "Begins a sign-in at the issuer.", start)
            .query::<StartQuery>()
            .returns_redirect("The issuer, at which the person signs in. `Set-Cookie` has the sign-in."),
        route(get, CALLBACK, Access::Open, "Ends a sign-in at the issuer.", callback)
            .query::<CallbackQuery>()
            .uses_up()
            .returns_redirect("The page, with the cookie of a session."),
    ]
}

/// The ways to sign in.
#[derive(Debug, Serialize, ToSchema)]
struct MethodsBody {
    /// The name of the issuer at which people sign in, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    oidc: Option<String>,
}

/// The start of a sign-in.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
struct StartQuery {
    /// The place of the page to return to, such as `#/tasks/5`. Default: `#/`.
    to: Option<String>,
}

/// The response of the issuer. It may have further parameters, which are not used.
#[derive(Debug, Deserialize, IntoParams)]
struct CallbackQuery {
    /// The state of the sign-in.
    state: Option<String>,
    /// The code, if the person has signed in.
    code: Option<String>,
    /// The error, if not.
    error: Option<String>,
    /// The issuer.
    iss: Option<String>,
}

async fn methods(call: Call) -> Reply {
    check_host_of(&call)?;
    json(&MethodsBody { oidc: call.server.sign_in_issuer().map(|(_, options)| options.name.clone()) })
}

async fn start(call: Call) -> Reply {
    check_host_of(&call)?;
    let query: StartQuery = call.query()?;
    let place = query.to.as_deref().unwrap_or("#/");
    if !is_place(place) {
        let limit = bounds::OIDC_RETURN_BYTES;
        let remedy = format!("write it as #/tasks/5, encoded, with at most {limit} bytes");
        return Err(Problem::invalid("to", "the place to return to is none of the page", remedy));
    }
    let (issuer, options) = sign_in(&call.server)?;
    let flow = Flow::begin(call.server.store.clock().now(), place)?;
    let metadata = issuer.metadata(call.server.limits.get().request_time).await;
    let redirect = redirect_uri(&call)?;
    let url = metadata.and_then(|metadata| authorization_url(&metadata, options, &flow, &redirect));
    let Some(url) = url else {
        return Err(for_browser(&call.headers, PAGE_OF_START, &OidcRefusal::Unavailable));
    };
    with_cookie(Ok(see_other(&url)?), &cookie::set_sign_in(&call.headers, flow.cookie()))
}

async fn callback(call: Call) -> Reply {
    check_host_of(&call)?;
    let query: CallbackQuery = call.query()?;
    let (issuer, options) = sign_in(&call.server)?;
    let redirect = redirect_uri(&call)?;
    let returned = Returned {
        cookie: cookie::read_sign_in(&call.headers).unwrap_or_default(),
        state: query.state.as_deref().unwrap_or_default(),
        code: query.code.as_deref(),
        error: query.error.as_deref(),
        issuer: query.iss.as_deref(),
        redirect: &redirect,
        address: call.address,
    };
    let finished = finish_sign_in(&call.server, (issuer, options), returned).await;
    let (identity, place) = finished.map_err(|refusal| for_browser(&call.headers, PAGE_OF_CALLBACK, &refusal))?;
    let secret = new_session(&call, issuer, identity).await?;
    let reply = see_other(&format!("{PAGE_OF_CALLBACK}{place}"))?;
    let reply = with_cookie(Ok(reply), &cookie::set(&call.headers, &secret));
    with_cookie(reply, &cookie::remove_sign_in(&call.headers))
}

/// Creates the session of a person, with its audit record.
async fn new_session(call: &Call, issuer: &Issuer, identity: Identity) -> Result<String, Problem> {
    let (url, subject) = (issuer.options.url.clone(), identity.subject.clone());
    // A person without a role has been refused before.
    let role = identity.role.unwrap_or(Role::Viewer);
    let actor = Actor::of_identity(identity, role);
    let (address, action) = (call.address.map(|it| it.to_string()), format!("GET {CALLBACK}"));
    let record = AuditRecord::new(&actor, address, &call.id, action, CALLBACK);
    let new = NewSession {
        name: actor.name,
        role,
        key: None,
        account: None,
        issuer: Some(SessionIssuer { url, subject }),
        // The browser does not send the cookie of a session with a request from another site.
        replaces: None,
    };
    let scope = Arc::new(ChangeScope::new(Some(record), None));
    Ok(in_scope(scope, call.server.sessions.create(new)).await?.0)
}

fn sign_in(server: &Server) -> Result<(&Issuer, &SignInOptions), Problem> {
    server.sign_in_issuer().ok_or_else(|| {
        let remedy = "start the server with --issuer and --oidc-client, or sign in with a password or a key";
        Problem::new(Code::NotFound, "people do not sign in at an issuer here", remedy)
    })
}

/// Returns the address of this server to which the issuer sends a person back. The `Host` of the
/// request is one of the known names.
fn redirect_uri(call: &Call) -> Result<String, Problem> {
    let host = call.header("host").or_else(|| call.uri.authority().map(|it| it.as_str()));
    let host = host.ok_or_else(issuer_unavailable)?;
    let is_plain = loopback_port(&call.headers).is_some() && !call.server.has_tls();
    let scheme = if is_plain { "http" } else { "https" };
    Ok(format!("{scheme}://{host}{}{CALLBACK}", call.server.options.base_path))
}

/// Returns the problem of a refusal. A browser is sent to the page, which shows it.
fn for_browser(headers: &HeaderMap, page: &str, refusal: &OidcRefusal) -> Problem {
    let accept = headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default();
    let problem = refusal.problem();
    match accept.contains("text/html") {
        true => problem.shown_at(format!("{page}{}", refusal.place())),
        false => problem,
    }
}

fn see_other(address: &str) -> Result<Response<Body>, Problem> {
    let location = HeaderValue::from_str(address).map_err(|_| issuer_unavailable())?;
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SEE_OTHER;
    response.headers_mut().insert(header::LOCATION, location);
    Ok(response)
}
