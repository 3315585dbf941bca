//! `/v1/audit`.

use axum::http::Method;
use onward_store::Timestamp;
use serde::Deserialize;
use utoipa::IntoParams;

use super::route::{Access, Route, route};
use crate::http::access::Role;
use crate::http::change::{AuditRecord, audit_page};
use crate::http::request::{Call, decode_cursor, encode_cursor};
use crate::http::wire::{Page, Reply, check_limit, json};

pub(super) fn table() -> Vec<Route> {
    vec![
        route(Method::GET, "/v1/audit", Access::Needs(Role::Admin), "Lists who changed what.", list)
            .query::<AuditQuery>()
            .returns_page::<AuditRecord>("A page of records, the oldest first."),
    ]
}

/// The part of the records that is returned.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
struct AuditQuery {
    /// The earliest time. Default: the oldest record.
    #[param(value_type = Option<String>, format = DateTime)]
    since: Option<Timestamp>,
    /// `next` of the page before. Default: the first page.
    cursor: Option<String>,
    /// The largest number of records, 1 to 1000. Default: 50.
    limit: Option<usize>,
}

async fn list(call: Call) -> Reply {
    let AuditQuery { since, cursor, limit } = call.query()?;
    let after = cursor.as_deref().map(decode_cursor::<String>).transpose()?;
    let (items, next) = audit_page(&*call.server.store, since, after, check_limit(limit)?).await?;
    json(&Page { items, next: next.as_ref().map(encode_cursor) })
}
