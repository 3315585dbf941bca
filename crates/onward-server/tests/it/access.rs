//! Every route with every sort of credential.

use std::collections::BTreeSet;
use std::time::Duration;

use axum::http::Method;
use onward_server::http::{AccountChange, NewAccount, NewKey, Role, RouteInfo, bounds, routes};
use serde_json::json;

use crate::api::Api;
use crate::client::Request;

on_every_store! {
    every_route_refuses_each_credential_that_is_not_enough,
    every_route_refuses_each_cookie_that_is_not_enough,
    a_sign_in_takes_a_valid_credential_only,
}

/// Every route, with the least role that may use it. `-` needs no credential.
const TABLE: &str = "
viewer POST /mcp
- GET /v1/health/live
- GET /v1/health/ready
- GET /v1/openapi.json
- GET /v1/sign-in
- GET /v1/sign-in/methods
- GET /v1/sign-in/oidc
- GET /v1/sign-in/oidc/callback
viewer GET /metrics
viewer GET /v1/tasks
operator POST /v1/tasks
operator POST /v1/tasks:batch
operator POST /v1/tasks:cancel
operator POST /v1/tasks:retry
operator POST /v1/tasks:delete
viewer GET /v1/tasks/{id}
operator GET /v1/tasks/{id}/payload
operator GET /v1/tasks/{id}/result
viewer GET /v1/tasks/{id}/attempts
viewer GET /v1/tasks/{id}/why
viewer GET /v1/tasks/{id}/events
operator POST /v1/tasks/{id}/cancel
operator POST /v1/tasks/{id}/retry
operator POST /v1/tasks/{id}/run
operator POST /v1/tasks/{id}/kill
operator POST /v1/tasks/{id}/move
operator POST /v1/tasks/{id}/complete
operator POST /v1/tasks/{id}/fail
operator POST /v1/tasks/{id}/extend
viewer GET /v1/queues
viewer GET /v1/queues/{queue}
operator PATCH /v1/queues/{queue}
operator POST /v1/queues/{queue}/pause
operator POST /v1/queues/{queue}/resume
operator POST /v1/queues/{queue}/purge
viewer GET /v1/dead
viewer GET /v1/dead/{cause}
operator POST /v1/dead/{cause}/canary
operator POST /v1/dead/{cause}/retry
operator POST /v1/dead/{cause}/discard
viewer GET /v1/groups
viewer GET /v1/groups/{group}
operator PATCH /v1/groups/{group}
operator POST /v1/groups/{group}/pause
operator POST /v1/groups/{group}/resume
viewer GET /v1/inbox
viewer GET /v1/limits
viewer GET /v1/limits/{scope}
operator PUT /v1/limits/{scope}
operator DELETE /v1/limits/{scope}
viewer GET /v1/schedules
viewer GET /v1/schedules/{schedule}
viewer GET /v1/schedules/{schedule}/next
developer PUT /v1/schedules/{schedule}
developer DELETE /v1/schedules/{schedule}
operator POST /v1/schedules/{schedule}/pause
operator POST /v1/schedules/{schedule}/resume
operator POST /v1/schedules/{schedule}/fire
operator POST /v1/schedules/{schedule}/backfill
viewer GET /v1/templates
viewer POST /v1/templates:check
developer POST /v1/templates:prune
viewer GET /v1/templates/{name}
viewer GET /v1/templates/{name}/graph
viewer GET /v1/templates/{name}/diff
developer PUT /v1/templates/{name}
operator POST /v1/templates/{name}/runs
viewer GET /v1/runs
viewer GET /v1/runs/{id}
viewer GET /v1/runs/{id}/graph
operator POST /v1/runs/{id}/fork
operator GET /v1/runs/{id}/compare
viewer GET /v1/runs/{id}/critical-path
operator GET /v1/runs/{id}/published/{position}
operator POST /v1/runs/{id}/actions
operator POST /v1/runs/{id}/signals/{name}
operator POST /v1/runs/{id}/pause
operator POST /v1/runs/{id}/resume
operator POST /v1/orchestrations
viewer GET /v1/orchestrations/{id}
viewer GET /v1/orchestrations/{id}/history
viewer GET /v1/orchestrations/{id}/tree
operator POST /v1/orchestrations/{id}/updates/{name}
operator GET /v1/orchestrations/{id}/updates/{name}/{update}
operator POST /v1/orchestrations/{id}/queries/{name}
operator POST /v1/orchestrations/{id}/fork
operator POST /v1/orchestrations/{id}/reset
operator POST /v1/orchestrations/{id}/signals/{name}
operator POST /v1/orchestrations/{id}/pause
operator POST /v1/orchestrations/{id}/resume
operator POST /v1/orchestrations/{id}/terminate
viewer GET /v1/events
viewer GET /v1/overview
viewer GET /v1/store
viewer POST /v1/store:read
operator POST /v1/store:apply
viewer GET /v1/statistics
viewer GET /v1/workers
admin GET /v1/webhooks
admin POST /v1/webhooks
admin DELETE /v1/webhooks/{webhook}
admin GET /v1/hooks
admin PUT /v1/hooks/{hook}
admin DELETE /v1/hooks/{hook}
- POST /v1/hooks/{hook}
admin GET /v1/keys
admin POST /v1/keys
admin DELETE /v1/keys/{key}
admin GET /v1/audit
viewer GET /v1/changes
viewer GET /v1/me
viewer POST /v1/sign-out
admin GET /v1/sessions
- POST /v1/sessions
viewer PUT /v1/me/password
admin GET /v1/accounts
admin POST /v1/accounts
admin GET /v1/accounts/{account}
admin PATCH /v1/accounts/{account}
admin DELETE /v1/accounts/{account}
admin DELETE /v1/sessions/{session}
operator POST /v1/work
operator POST /v1/work/{connection}/send
operator POST /v1/work/{connection}/receive
operator DELETE /v1/work/{connection}
";

#[test]
fn every_route_has_a_row_and_every_row_a_route() {
    let row = |route: RouteInfo| {
        let role = route.role.map_or("-", Role::as_str);
        format!("{role} {} {}", route.method, route.path)
    };
    let written: BTreeSet<String> = TABLE.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect();
    let routed: BTreeSet<String> = routes().into_iter().map(row).collect();
    assert_eq!(written, routed);
}

/// Returns a request of a route, with something for each parameter of its path.
fn request(route: &RouteInfo) -> Request {
    let path = route.path.replace("{id}", "1").replace("{scope}", "all").replace(['{', '}'], "");
    Request::new(route.method.as_str(), &path)
}

async fn key(api: &Api, name: &str, role: Role, expires_after: Option<Duration>) -> (String, String) {
    let (key, record) = api.keys.create(NewKey { name: name.to_owned(), role, expires_after }).await.unwrap();
    (key, record.id)
}

/// Shows: W8
async fn every_route_refuses_each_credential_that_is_not_enough(api: Api) {
    let (expired, _) = key(&api, "expired", Role::Admin, Some(Duration::from_secs(60))).await;
    let (revoked, id) = key(&api, "revoked", Role::Admin, None).await;
    let (other, _) = key(&api, "other", Role::Admin, None).await;
    let wrong = format!("{}{}", &other[..other.len() - 1], if other.ends_with('A') { 'B' } else { 'A' });
    api.keys.revoke(&id).await.unwrap();
    api.clock.advance(Duration::from_secs(60));
    for route in routes().iter().filter(|route| route.role.is_some()) {
        api.send(request(route)).await.expect_problem(401, "credential_missing");
        for key in [&wrong, &expired, &revoked, "onward_0123456789abcdef_x", "nonsense", ""] {
            api.send(request(route).key(key)).await.expect_problem(401, "credential_invalid");
        }
        let needed = route.role.unwrap();
        for role in Role::ALL.into_iter().filter(|role| *role < needed) {
            api.send(request(route).key(api.key(role))).await.expect_problem(403, "forbidden");
        }
        for role in Role::ALL.into_iter().filter(|role| *role >= needed && !is_last(route)) {
            let response = api.send(request(route).key(api.key(role))).await;
            assert!(!matches!(response.status, 401 | 403 | 405 | 500..), "{route:?} {role}: {}", response.text());
        }
    }
}

/// Signs in with a key and returns the cookie.
async fn cookie(api: &Api, key: &str) -> String {
    let response = api.send(Request::new("POST", "/v1/sessions").key(key)).await;
    let cookie = response.header("set-cookie").unwrap().to_owned();
    cookie.split(';').next().unwrap().to_owned()
}

/// Returns true if a request opens a stream or ends the session, so that others cannot follow it.
fn is_last(route: &RouteInfo) -> bool {
    matches!(route.path, "/v1/changes" | "/v1/sign-out")
}

/// Signs in with a password and returns the cookie.
async fn cookie_of_account(api: &Api, name: &str, role: Role) -> String {
    let (name, password) = (name.to_owned(), format!("the password of {name}"));
    let body = json!({"name": name, "password": password});
    api.accounts.create(NewAccount { name, role, password }).await.unwrap();
    let request = Request::new("POST", "/v1/sessions").header("x-onward-page", "1").json(&body);
    let response = api.send(request).await;
    response.header("set-cookie").unwrap().split(';').next().unwrap().to_owned()
}

/// Returns cookies of an admin whose session is over: idle, by its key, or by its account.
async fn lost_cookies(api: &Api) -> Vec<String> {
    let idle = cookie(api, api.key(Role::Admin)).await;
    api.clock.advance(bounds::SESSION_IDLE);
    let (revoked, id) = key(api, "lost", Role::Admin, None).await;
    let revoked = cookie(api, &revoked).await;
    api.keys.revoke(&id).await.unwrap();
    let mut lost = vec![idle, revoked];
    for name in ["disabled", "changed", "deleted"] {
        lost.push(cookie_of_account(api, name, Role::Admin).await);
    }
    let disable = AccountChange { disable: Some(true), ..AccountChange::default() };
    api.accounts.change("disabled", disable).await.unwrap();
    let change = AccountChange { password: Some("another password".to_owned()), ..AccountChange::default() };
    api.accounts.change("changed", change).await.unwrap();
    api.accounts.delete("deleted").await.unwrap();
    lost
}

/// Shows: W8
async fn every_route_refuses_each_cookie_that_is_not_enough(api: Api) {
    let lost = lost_cookies(&api).await;
    let mut cookies = Vec::new();
    for role in Role::ALL {
        cookies.push((role, cookie(&api, api.key(role)).await));
        cookies.push((role, cookie_of_account(&api, role.as_str(), role).await));
    }
    let admin = &cookies[6].1;
    let wrong = format!("{}{}", &admin[..admin.len() - 1], if admin.ends_with('A') { 'B' } else { 'A' });
    let with = |route: &RouteInfo, cookie: &str| request(route).header("cookie", cookie);
    for route in routes().iter().filter(|route| route.role.is_some() && !is_last(route)) {
        let nonsense = [wrong.as_str(), "onward-session-80=", "onward-session-80=0123456789abcdef_x"];
        for cookie in lost.iter().map(String::as_str).chain(nonsense) {
            let response = api.send(with(route, cookie).header("x-onward-page", "1")).await;
            response.expect_problem(401, "credential_invalid");
        }
        // The cookie of another host or port is no credential.
        let other = admin.replace("session-80", "session-81");
        api.send(with(route, &other).header("x-onward-page", "1")).await.expect_problem(401, "credential_missing");
        for site in ["same-site", "cross-site"] {
            let foreign = with(route, admin).header("x-onward-page", "1").header("sec-fetch-site", site);
            api.send(foreign).await.expect_problem(403, "origin_refused");
        }
        if route.method != Method::GET {
            api.send(with(route, admin)).await.expect_problem(403, "origin_refused");
        }
        let needed = route.role.unwrap();
        for (role, cookie) in &cookies {
            let response = api.send(with(route, cookie).header("x-onward-page", "1")).await;
            match *role < needed {
                true => drop(response.expect_problem(403, "forbidden")),
                false => assert!(!matches!(response.status, 401 | 403 | 405 | 500..), "{route:?}: {}", response.text()),
            }
        }
    }
}

/// Shows: W8
#[test]
fn routes_without_a_credential_are_few_and_change_nothing_but_by_a_sign_in_or_a_signature() {
    let open: Vec<_> = routes().into_iter().filter(|route| route.role.is_none()).collect();
    let changes: Vec<_> = open.iter().filter(|route| route.method != Method::GET).map(|route| route.path).collect();
    assert_eq!(changes, ["/v1/hooks/{hook}", "/v1/sessions"]);
    assert_eq!(open.len(), 9, "{open:?}");
}

/// Shows: W8
async fn a_sign_in_takes_a_valid_credential_only(api: Api) {
    let (expired, _) = key(&api, "expired", Role::Admin, Some(Duration::from_secs(60))).await;
    let (revoked, id) = key(&api, "revoked", Role::Admin, None).await;
    api.keys.revoke(&id).await.unwrap();
    api.clock.advance(Duration::from_secs(60));
    let request = || Request::new("POST", "/v1/sessions");
    for key in [expired.as_str(), &revoked, "onward_0123456789abcdef_x", "nonsense", ""] {
        api.send(request().key(key)).await.expect_problem(401, "credential_invalid");
    }
    api.send(request()).await.expect_problem(403, "origin_refused");
    api.send(request().header("x-onward-page", "1")).await.expect_problem(400, "malformed");
    for role in Role::ALL {
        api.send(request().key(api.key(role))).await.expect(201);
    }
    let both = request().key(api.key(Role::Admin)).json(&json!({"name": "ada", "password": "x"}));
    api.send(both).await.expect_problem(400, "malformed");
}
