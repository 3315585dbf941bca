//! `/v1/limits`.

use axum::http::Method;
use onward_store::{Limit, LimitScope, SetLimit, StoreReads as _};

use super::route::{Access, Route, route};
use crate::http::access::Role;
use crate::http::problem::Problem;
use crate::http::request::{Call, etag, with_etag};
use crate::http::wire::{LimitBody, LimitChange, Page, Reply, json, no_content, read_scope, scope_text};

const IF_MATCH: &str = "The entity tag of the limit that is changed; 412 if it is another one now.";

pub(super) fn table() -> Vec<Route> {
    let (viewer, operator) = (Access::Needs(Role::Viewer), Access::Needs(Role::Operator));
    vec![
        route(Method::GET, "/v1/limits", viewer, "Lists the limits and their usage.", list)
            .returns_page::<LimitBody>("All limits."),
        route(Method::GET, "/v1/limits/{scope}", viewer, "Returns a limit and its entity tag.", show)
            .returns::<LimitBody>(200, "The limit."),
        route(Method::PUT, "/v1/limits/{scope}", operator, "Sets a limit.", set)
            .takes::<LimitChange>()
            .header("If-Match", IF_MATCH)
            .returns::<LimitBody>(200, "The limit."),
        route(Method::DELETE, "/v1/limits/{scope}", operator, "Removes a limit.", remove)
            .header("If-Match", IF_MATCH)
            .returns_nothing("The scope has no limit."),
    ]
}

fn scope(call: &Call) -> Result<LimitScope, Problem> {
    read_scope(call.parameter("scope"))
}

async fn present(call: &Call, scope: &LimitScope) -> Result<Option<LimitBody>, Problem> {
    let limits = call.server.store.limits().await?;
    Ok(limits.into_iter().find(|limit| limit.scope == *scope).map(LimitBody::from))
}

async fn list(call: Call) -> Reply {
    let items = call.server.store.limits().await?.into_iter().map(LimitBody::from).collect();
    json(&Page { items, next: None })
}

async fn show(call: Call) -> Reply {
    let scope = scope(&call)?;
    match present(&call, &scope).await? {
        Some(limit) => Ok(with_etag(json(&limit)?, &etag(&limit.settings()))),
        None => Err(Problem::not_found("limit", call.parameter("scope"), "set one with PUT")),
    }
}

/// Returns the name of the guard of a limit.
pub(super) fn limit_guard(scope: &LimitScope) -> String {
    format!("limit {}", scope_text(scope))
}

async fn check_match(call: &Call, scope: &LimitScope) -> Result<(), Problem> {
    call.guard(limit_guard(scope)).await?;
    let tag = present(call, scope).await?.map(|limit| etag(&limit.settings()));
    call.check_match(tag.as_deref())
}

async fn set(call: Call) -> Reply {
    let scope = scope(&call)?;
    let change: LimitChange = call.json()?;
    let change = change.of(scope.clone())?;
    check_match(&call, &scope).await?;
    let limit: Limit = call.server.engine.set_limit(change).await?;
    let body = LimitBody::new(&scope, limit);
    Ok(with_etag(json(&body)?, &etag(&body.settings())))
}

async fn remove(call: Call) -> Reply {
    let scope = scope(&call)?;
    check_match(&call, &scope).await?;
    call.server.engine.set_limit(SetLimit::new(scope).unlimited()).await?;
    no_content()
}
