//! `/v1/sign-in`: the one-time link.

use axum::http::Method;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::route::{Access, Route, route};
use crate::http::access::{KeyRecord, NewKey, Role};
use crate::http::listen::check_host_of;
use crate::http::problem::{Code, Problem};
use crate::http::request::Call;
use crate::http::wire::{Reply, json};

/// The name of the key of the first admin.
const NAME: &str = "first admin";

pub(super) fn table() -> Vec<Route> {
    vec![
        route(Method::GET, "/v1/sign-in", Access::Open, "Uses the one-time link of `onward serve` up.", sign_in)
            .query::<SignInQuery>()
            .uses_up()
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
    if !call.server.link.take(&token) {
        return Err(Problem::new(
            Code::CredentialInvalid,
            "the link was used, or its time is over",
            "start the server again for another link, or use `onward key create NAME --role admin`",
        ));
    }
    let new = NewKey { name: NAME.to_owned(), role: Role::Admin, expires_after: None };
    let (key, record) = call.server.keys.create(new).await?;
    json(&NewKeyBody { key, record })
}
