//! `/v1/keys`.

use axum::http::{Method, StatusCode};
use onward_store::Timestamp;
use serde::Deserialize;
use utoipa::ToSchema;

use super::route::{Access, Route, route};
use super::sign_in::NewKeyBody;
use crate::http::access::{KeyRecord, NewKey, Role};
use crate::http::problem::Problem;
use crate::http::request::{Call, decode_cursor, encode_cursor};
use crate::http::wire::{DurationText, Page, PageQuery, Reply, check_limit, created, json};

pub(super) fn table() -> Vec<Route> {
    let admin = Access::Needs(Role::Admin);
    vec![
        route(Method::GET, "/v1/keys", admin, "Lists the keys.", list)
            .query::<PageQuery>()
            .returns_page::<KeyRecord>("A page of keys without their secrets, the oldest first."),
        route(Method::POST, "/v1/keys", admin, "Creates a key.", create)
            .takes::<CreateKeyBody>()
            .returns::<NewKeyBody>(201, "The key, which is shown once."),
        route(Method::DELETE, "/v1/keys/{key}", admin, "Revokes a key.", revoke)
            .returns::<KeyRecord>(200, "The key, which no server accepts any more."),
    ]
}

/// A key to create.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct CreateKeyBody {
    /// The name, for people: 1 to 128 bytes. No other active key may have it.
    name: String,
    /// The role.
    role: Role,
    /// The time after which the key is refused. Default: it does not expire.
    expires_after: Option<DurationText>,
}

/// The position of a key in the list.
type KeyCursor = (Timestamp, String);

async fn list(call: Call) -> Reply {
    let query: PageQuery = call.query()?;
    let (after, limit) =
        (query.cursor.as_deref().map(decode_cursor::<KeyCursor>).transpose()?, check_limit(query.limit)?);
    let place = |key: &KeyRecord| (key.created_at, key.id.clone());
    let keys = call.server.keys.list().await?.into_iter();
    let mut items: Vec<_> = keys.filter(|key| after.as_ref().is_none_or(|after| place(key) > *after)).collect();
    let has_more = items.len() > limit;
    items.truncate(limit);
    let next = items.last().filter(|_| has_more).map(|last| encode_cursor(&place(last)));
    json(&Page { items, next })
}

async fn create(call: Call) -> Reply {
    let CreateKeyBody { name, role, expires_after } = call.json()?;
    let new = NewKey { name, role, expires_after: expires_after.map(|time| time.0) };
    let (key, record) = call.server.keys.create(new).await?;
    let location = format!("/v1/keys/{}", record.id);
    created(StatusCode::CREATED, &location, &NewKeyBody { key, record })
}

async fn revoke(call: Call) -> Reply {
    let id = call.parameter("key");
    match call.server.keys.revoke(id).await? {
        Some(record) => {
            call.server.key_checks.note_revoked();
            json(&record)
        }
        None => Err(Problem::not_found("key", id, "GET /v1/keys lists the ids")),
    }
}
