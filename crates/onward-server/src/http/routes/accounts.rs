//! `/v1/accounts`.

use axum::http::{Method, StatusCode};
use serde::Deserialize;
use utoipa::ToSchema;

use super::route::{Access, Route, route};
use crate::http::access::{AccountChange, AccountRecord, NewAccount, Role};
use crate::http::problem::Problem;
use crate::http::request::{Call, decode_cursor, encode_cursor, etag, with_etag};
use crate::http::wire::{Page, PageQuery, Reply, check_limit, created, json};

pub(super) fn table() -> Vec<Route> {
    let admin = Access::Needs(Role::Admin);
    vec![
        route(Method::GET, "/v1/accounts", admin, "Lists the accounts.", list)
            .query::<PageQuery>()
            .returns_page::<AccountRecord>("A page of accounts without their passwords, by name."),
        route(Method::POST, "/v1/accounts", admin, "Creates an account.", create)
            .takes::<CreateAccountBody>()
            .returns::<AccountRecord>(201, "The account, which can sign in."),
        route(Method::GET, "/v1/accounts/{account}", admin, "Returns an account.", show)
            .returns::<AccountRecord>(200, "The account. `ETag` is for `If-Match` of a change."),
        route(Method::PATCH, "/v1/accounts/{account}", admin, "Changes an account.", change)
            .takes::<ChangeAccountBody>()
            .header("If-Match", "The entity tag of the account; 412 if it was changed since.")
            .returns::<AccountRecord>(200, "The account as it is now."),
        route(Method::DELETE, "/v1/accounts/{account}", admin, "Deletes an account. Its sessions end.", delete)
            .header("If-Match", "The entity tag of the account; 412 if it was changed since.")
            .returns::<AccountRecord>(200, "The account, which is deleted."),
    ]
}

/// An account to create.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct CreateAccountBody {
    /// The name: 1 to 128 letters, digits and `. _ - + @`. Capital letters count as small ones.
    name: String,
    /// The role.
    role: Role,
    /// The password: at least 12 characters.
    #[schema(format = Password)]
    password: String,
}

/// A change of an account. Fields that are left out stay as they are.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ChangeAccountBody {
    /// The role. Sessions have it from their next request on.
    role: Option<Role>,
    /// True to refuse sign-ins and end all sessions; false to allow sign-ins again.
    is_disabled: Option<bool>,
    /// The new password: at least 12 characters. All sessions end.
    #[schema(format = Password)]
    password: Option<String>,
}

async fn list(call: Call) -> Reply {
    let query: PageQuery = call.query()?;
    let after = query.cursor.as_deref().map(decode_cursor::<String>).transpose()?;
    let limit = check_limit(query.limit)?;
    let accounts = call.server.accounts.list().await?.into_iter();
    let mut items: Vec<_> = accounts.filter(|it| after.as_ref().is_none_or(|after| it.name > *after)).collect();
    let has_more = items.len() > limit;
    items.truncate(limit);
    let next = items.last().filter(|_| has_more).map(|last| encode_cursor(&last.name));
    json(&Page { items, next })
}

async fn create(call: Call) -> Reply {
    let CreateAccountBody { name, role, password } = call.json()?;
    let record = call.server.accounts.create(NewAccount { name, role, password }).await?;
    let reply = created(StatusCode::CREATED, &format!("/v1/accounts/{}", record.name), &record)?;
    Ok(with_etag(reply, &etag(&record)))
}

async fn show(call: Call) -> Reply {
    let record = found(&call).await?;
    Ok(with_etag(json(&record)?, &etag(&record)))
}

async fn change(call: Call) -> Reply {
    let ChangeAccountBody { role, is_disabled, password } = call.json()?;
    let name = checked(&call).await?;
    let change = AccountChange { role, disable: is_disabled, password };
    let record = call.server.accounts.change(&name, change).await?.ok_or_else(|| unknown(&name))?;
    call.server.key_checks.note_revoked();
    Ok(with_etag(json(&record)?, &etag(&record)))
}

async fn delete(call: Call) -> Reply {
    let name = checked(&call).await?;
    let record = call.server.accounts.delete(&name).await?.ok_or_else(|| unknown(&name))?;
    call.server.key_checks.note_revoked();
    json(&record)
}

/// Returns the name of the account in the path, if the account is what `If-Match` names.
async fn checked(call: &Call) -> Result<String, Problem> {
    let name = call.parameter("account").to_ascii_lowercase();
    call.guard(format!("account {name}")).await?;
    let record = found(call).await?;
    call.check_match(Some(&etag(&record)))?;
    Ok(name)
}

async fn found(call: &Call) -> Result<AccountRecord, Problem> {
    let name = call.parameter("account");
    call.server.accounts.get(name).await?.ok_or_else(|| unknown(name))
}

#[cold]
fn unknown(name: &str) -> Problem {
    Problem::not_found("account", name, "GET /v1/accounts lists the names")
}
