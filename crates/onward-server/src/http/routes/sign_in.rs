//! `/v1/sign-in`: the one-time link.

use axum::body::Body;
use axum::http::{HeaderValue, Method, Response, StatusCode, header};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::route::{Access, Route, route};
use super::sessions::{replaced_session, with_cookie};
use crate::http::access::{KeyRecord, NewKey, NewSession, Role, cookie};
use crate::http::listen::check_host_of;
use crate::http::problem::{Code, Problem};
use crate::http::request::Call;
use crate::http::wire::{Reply, json};

/// The name of the key or the session of the first admin.
const NAME: &str = "first admin";

pub(super) fn table() -> Vec<Route> {
    vec![
        route(Method::GET, "/v1/sign-in", Access::Open, "Uses the one-time link of `onward serve` up.", sign_in)
            .query::<SignInQuery>()
            .header("Accept", "With `text/html` the response is 303 to the page, with the cookie of a session.")
            .uses_up()
            .by_link()
            .returns::<NewKeyBody>(200, "The key of the first admin, which is shown once."),
    ]
}

/// The token of the link.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
struct SignInQuery {
    /// The token.
    token: String,
}

/// A key that was created.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct NewKeyBody {
    /// The key. It is shown once: the store has its digest only.
    pub(super) key: String,
    /// The record of the key.
    pub(super) record: KeyRecord,
}

async fn sign_in(call: Call) -> Reply {
    check_host_of(&call)?;
    let SignInQuery { token } = call.query()?;
    let is_browser = call.header("accept").is_some_and(|accept| accept.contains("text/html"));
    if !call.server.link.take(&token) {
        if is_browser {
            // The page explains the next step. It is also shown to a browser that is signed in and
            // repeats the link.
            return Ok(to_page());
        }
        return Err(Problem::new(
            Code::CredentialInvalid,
            "the link was used, or its time is over",
            "start the server again for another link, or use `onward key create NAME --role admin`",
        ));
    }
    if is_browser {
        let new = NewSession {
            name: NAME.to_owned(),
            role: Role::Admin,
            key: None,
            account: None,
            issuer: None,
            replaces: replaced_session(&call).await?,
        };
        let (secret, _) = call.server.sessions.create(new).await?;
        return with_cookie(Ok(to_page()), &cookie::set(&call.headers, &secret));
    }
    // The link of a later start finds the name taken, and its key has the number of the start.
    let names = [NAME.to_owned(), format!("{NAME} {}", call.server.started)];
    let new = |name: &String| NewKey { name: name.clone(), role: Role::Admin, expires_after: None };
    let (key, record) = match call.server.keys.create(new(&names[0])).await {
        Err(error) if error.is_invalid() => call.server.keys.create(new(&names[1])).await?,
        created => created?,
    };
    json(&NewKeyBody { key, record })
}

/// Returns a redirect to the page. The path is relative, so that it is right below any prefix.
fn to_page() -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SEE_OTHER;
    response.headers_mut().insert(header::LOCATION, HeaderValue::from_static("../"));
    response
}
