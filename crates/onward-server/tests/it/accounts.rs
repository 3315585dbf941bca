//! Accounts: people who sign in with a name and a password.

use std::time::Duration;

use onward_server::http::{NewAccount, Role, ServerOptions, bounds, has_sign_in};
use onward_store::{Clock as _, SystemClock};
use serde_json::{Value, json};

use crate::api::Api;
use crate::client::{Request, Response};

on_every_store! {
    an_account_signs_in_with_its_password,
    failed_sign_ins_look_alike,
    failures_lock_out_one_account_at_one_address,
    many_sign_ins_at_once_are_no_way_around_the_limit,
    a_sign_in_comes_from_a_page_of_this_server,
    a_new_password_ends_the_sessions_at_every_server,
    a_disabled_account_is_out_until_it_is_enabled,
    a_new_role_holds_from_the_next_request_on,
    a_deleted_account_is_out,
    a_person_changes_the_own_password,
    wrong_present_passwords_lock_out_too,
    a_key_has_no_password_to_change,
    a_change_of_what_was_changed_since_is_refused,
    wrong_accounts_are_refused_with_the_limit,
    accounts_are_listed_in_pages_without_a_password,
    a_store_with_an_admin_account_has_no_link,
    a_sign_in_is_recorded_with_its_account,
}

const PASSWORD: &str = "correct horse battery";

async fn create(api: &Api, name: &str, role: Role) {
    let (name, password) = (name.to_owned(), PASSWORD.to_owned());
    api.accounts.create(NewAccount { name, role, password }).await.unwrap();
}

fn request(name: &str, password: &str) -> Request {
    let body = json!({"name": name, "password": password});
    Request::new("POST", "/v1/sessions").header("x-onward-page", "1").json(&body)
}

async fn sign_in(api: &Api, name: &str, password: &str) -> Response {
    api.send(request(name, password)).await
}

/// Returns the cookie of a response.
#[track_caller]
fn cookie(response: &Response) -> String {
    assert_eq!(response.status, 201, "{}", response.text());
    response.header("set-cookie").unwrap().split(';').next().unwrap().to_owned()
}

fn with(cookie: &str, method: &str, path: &str) -> Request {
    Request::new(method, path).header("cookie", cookie).header("x-onward-page", "1")
}

async fn me(api: &Api, cookie: &str) -> Response {
    api.send(with(cookie, "GET", "/v1/me")).await
}

async fn patch(api: &Api, name: &str, change: Value) -> Response {
    api.send(api.request("PATCH", &format!("/v1/accounts/{name}")).json(&change)).await
}

/// Shows: W8
async fn an_account_signs_in_with_its_password(api: Api) {
    let new = json!({"name": "Ada@Example.org", "role": "operator", "password": PASSWORD});
    let created = api.post("/v1/accounts", new).await.expect(201);
    assert_eq!((&created["name"], &created["is_disabled"]), (&json!("ada@example.org"), &json!(false)));
    let cookie = cookie(&sign_in(&api, "ADA@example.org", PASSWORD).await);
    let shown = me(&api, &cookie).await.expect(200);
    assert_eq!((&shown["account"], &shown["role"]), (&json!("ada@example.org"), &json!("operator")));
    api.send(with(&cookie, "POST", "/v1/tasks").json(&json!({"kind": "k"}))).await.expect(201);
    let sessions = api.get("/v1/sessions").await.expect(200);
    assert_eq!(sessions["items"][0]["account"], "ada@example.org");
}

async fn failed_sign_ins_look_alike(api: Api) {
    create(&api, "ada", Role::Admin).await;
    create(&api, "off", Role::Admin).await;
    patch(&api, "off", json!({"is_disabled": true})).await.expect(200);
    let long = "x".repeat(bounds::PASSWORD_BYTES + 1);
    let attempts = [("ada", "wrong"), ("nobody", PASSWORD), ("off", PASSWORD), ("no name", PASSWORD), ("ada", &long)];
    let mut bodies = Vec::new();
    for (name, password) in attempts {
        let mut body = sign_in(&api, name, password).await.expect_problem(401, "credential_invalid");
        body["request_id"] = Value::Null;
        bodies.push(body);
    }
    assert!(bodies.iter().all(|body| *body == bodies[0]), "{bodies:?}");
    // The hash takes by far the most of the time, so one that is left out is seen.
    let mut shortest = [Duration::MAX; 2];
    for _ in 0..3 {
        for (shortest, name) in shortest.iter_mut().zip(["ada", "nobody"]) {
            let began = SystemClock.steady();
            sign_in(&api, name, "wrong").await.expect(401);
            *shortest = (*shortest).min(SystemClock.steady().saturating_sub(began));
        }
    }
    assert!(shortest[1] * 4 > shortest[0], "an unknown account is refused sooner: {shortest:?}");
}

/// Shows: W8
async fn failures_lock_out_one_account_at_one_address(api: Api) {
    let mut options = ServerOptions::default();
    options.proxies = vec!["127.0.0.1".parse().unwrap()];
    let other = api.another(options).await;
    create(&api, "ada", Role::Viewer).await;
    create(&api, "bob", Role::Viewer).await;
    let from = async |name: &str, password: &str, address: &str| {
        other.send(request(name, password).header("x-forwarded-for", address)).await
    };
    for _ in 0..bounds::ATTEMPTS {
        from("ada", "wrong", "203.0.113.1").await.expect_problem(401, "credential_invalid");
    }
    let locked = from("ada", PASSWORD, "203.0.113.1").await;
    assert_eq!(locked.header("retry-after"), Some("60"));
    locked.expect_problem(429, "too_many_attempts");
    from("ada", PASSWORD, "203.0.113.2").await.expect(201);
    from("bob", PASSWORD, "203.0.113.1").await.expect(201);
    api.clock.advance(Duration::from_secs(59));
    from("ada", PASSWORD, "203.0.113.1").await.expect_problem(429, "too_many_attempts");
    api.clock.advance(Duration::from_secs(1));
    from("ada", PASSWORD, "203.0.113.1").await.expect(201);
}

async fn many_sign_ins_at_once_are_no_way_around_the_limit(api: Api) {
    create(&api, "ada", Role::Viewer).await;
    let attempts = (0..3 * bounds::ATTEMPTS).map(|_| sign_in(&api, "ada", "wrong"));
    let refused = futures_util::future::join_all(attempts).await;
    let checked = refused.iter().filter(|response| response.status == 401).count();
    assert!(checked <= bounds::ATTEMPTS as usize, "{checked} passwords were compared");
    assert!(refused.iter().all(|response| matches!(response.status, 401 | 429)));
}

async fn a_sign_in_comes_from_a_page_of_this_server(api: Api) {
    create(&api, "ada", Role::Viewer).await;
    let body = json!({"name": "ada", "password": PASSWORD});
    let plain = Request::new("POST", "/v1/sessions").json(&body);
    api.send(plain).await.expect_problem(403, "origin_refused");
    let foreign = request("ada", PASSWORD).header("origin", "https://evil.example");
    api.send(foreign).await.expect_problem(403, "origin_refused");
    let beside = request("ada", PASSWORD).header("sec-fetch-site", "same-site");
    api.send(beside).await.expect_problem(403, "origin_refused");
    let host = request("ada", PASSWORD).header("host", "evil.example");
    api.send(host).await.expect_problem(421, "host_unknown");
}

async fn a_new_password_ends_the_sessions_at_every_server(api: Api) {
    create(&api, "ada", Role::Viewer).await;
    let session = cookie(&sign_in(&api, "ada", PASSWORD).await);
    let other = api.another(ServerOptions::default()).await;
    me(&other, &session).await.expect(200);
    patch(&api, "ada", json!({"password": "another long password"})).await.expect(200);
    me(&other, &session).await.expect_problem(401, "credential_invalid");
    sign_in(&other, "ada", PASSWORD).await.expect_problem(401, "credential_invalid");
    me(&other, &cookie(&sign_in(&other, "ada", "another long password").await)).await.expect(200);
}

async fn a_disabled_account_is_out_until_it_is_enabled(api: Api) {
    create(&api, "ada", Role::Viewer).await;
    let session = cookie(&sign_in(&api, "ada", PASSWORD).await);
    patch(&api, "ada", json!({"is_disabled": true})).await.expect(200);
    me(&api, &session).await.expect_problem(401, "credential_invalid");
    sign_in(&api, "ada", PASSWORD).await.expect_problem(401, "credential_invalid");
    patch(&api, "ada", json!({"is_disabled": false})).await.expect(200);
    me(&api, &session).await.expect_problem(401, "credential_invalid");
    me(&api, &cookie(&sign_in(&api, "ada", PASSWORD).await)).await.expect(200);
}

async fn a_new_role_holds_from_the_next_request_on(api: Api) {
    create(&api, "ada", Role::Admin).await;
    let session = cookie(&sign_in(&api, "ada", PASSWORD).await);
    api.send(with(&session, "GET", "/v1/keys")).await.expect(200);
    patch(&api, "ada", json!({"role": "viewer"})).await.expect(200);
    api.send(with(&session, "GET", "/v1/keys")).await.expect_problem(403, "forbidden");
    me(&api, &session).await.expect(200);
}

async fn a_deleted_account_is_out(api: Api) {
    create(&api, "ada", Role::Viewer).await;
    let session = cookie(&sign_in(&api, "ada", PASSWORD).await);
    api.delete("/v1/accounts/ada").await.expect(200);
    me(&api, &session).await.expect_problem(401, "credential_invalid");
    sign_in(&api, "ada", PASSWORD).await.expect_problem(401, "credential_invalid");
    api.delete("/v1/accounts/ada").await.expect_problem(404, "not_found");
    // An account of the same name is another account.
    create(&api, "ada", Role::Viewer).await;
    me(&api, &session).await.expect_problem(401, "credential_invalid");
}

fn own_password(cookie: &str, password: &str, new: &str) -> Request {
    with(cookie, "PUT", "/v1/me/password").json(&json!({"password": password, "new_password": new}))
}

async fn a_person_changes_the_own_password(api: Api) {
    create(&api, "ada", Role::Viewer).await;
    let session = cookie(&sign_in(&api, "ada", PASSWORD).await);
    let wrong = api.send(own_password(&session, "wrong", "another long password")).await;
    assert_eq!(wrong.expect_problem(422, "invalid")["field"], "password");
    let short = api.send(own_password(&session, PASSWORD, "short")).await;
    assert_eq!(short.expect_problem(422, "invalid")["field"], "new_password");
    assert_eq!(api.send(own_password(&session, PASSWORD, "another long password")).await.status, 204);
    me(&api, &session).await.expect_problem(401, "credential_invalid");
    sign_in(&api, "ada", "another long password").await.expect(201);
}

async fn wrong_present_passwords_lock_out_too(api: Api) {
    create(&api, "ada", Role::Viewer).await;
    let session = cookie(&sign_in(&api, "ada", PASSWORD).await);
    for _ in 0..bounds::ATTEMPTS {
        api.send(own_password(&session, "wrong", "another long password")).await.expect(422);
    }
    let right = api.send(own_password(&session, PASSWORD, "another long password")).await;
    right.expect_problem(429, "too_many_attempts");
}

async fn a_key_has_no_password_to_change(api: Api) {
    let body = json!({"password": PASSWORD, "new_password": "another long password"});
    api.put("/v1/me/password", body).await.expect_problem(409, "conflict");
}

async fn a_change_of_what_was_changed_since_is_refused(api: Api) {
    create(&api, "ada", Role::Viewer).await;
    let read = api.get("/v1/accounts/ada").await;
    let tag = read.header("etag").unwrap().to_owned();
    let change = |role: &str| {
        let request = api.request("PATCH", "/v1/accounts/ada").header("if-match", &tag);
        api.send(request.json(&json!({ "role": role })))
    };
    let changed = change("operator").await;
    assert_ne!(changed.header("etag"), Some(tag.as_str()));
    assert_eq!(changed.expect(200)["role"], "operator");
    change("admin").await.expect_problem(412, "changed");
    assert_eq!(api.get("/v1/accounts/ada").await.expect(200)["role"], "operator");
}

async fn wrong_accounts_are_refused_with_the_limit(api: Api) {
    create(&api, "ada", Role::Viewer).await;
    let refused = async |name: &str, password: &str| {
        let body = json!({"name": name, "role": "viewer", "password": password});
        let problem = api.post("/v1/accounts", body).await.expect_problem(422, "invalid");
        problem["detail"].as_str().unwrap().to_owned() + problem["remedy"].as_str().unwrap()
    };
    assert!(refused("ADA", PASSWORD).await.contains("there is an account ada"));
    assert!(refused("a b", PASSWORD).await.contains("128"));
    assert!(refused("bob", "short").await.contains("at least 12"));
    assert!(refused("bob", &"x".repeat(1025)).await.contains("1024 bytes"));
    assert!(refused("bob.the.builder", "Bob.The.Builder").await.contains("is the name"));
    let short = patch(&api, "ada", json!({"password": "short"})).await.expect_problem(422, "invalid");
    assert!(short["detail"].as_str().unwrap().contains("5 characters"), "{short}");
    patch(&api, "nobody", json!({})).await.expect_problem(404, "not_found");
}

async fn accounts_are_listed_in_pages_without_a_password(api: Api) {
    for name in ["cleo", "ada", "bob"] {
        create(&api, name, Role::Viewer).await;
    }
    let first = api.get("/v1/accounts?limit=2").await.expect(200);
    let next = first["next"].as_str().unwrap();
    let second = api.get(&format!("/v1/accounts?limit=2&cursor={next}")).await.expect(200);
    let name = |item: &Value| item["name"].as_str().unwrap().to_owned();
    let names: Vec<_> = [&first, &second].iter().flat_map(|page| page["items"].as_array().unwrap()).map(name).collect();
    assert_eq!(names, ["ada", "bob", "cleo"]);
    assert_eq!(second["next"], Value::Null);
    assert!(!first.to_string().contains("argon2"), "{first}");
}

async fn a_store_with_an_admin_account_has_no_link(api: Api) {
    for key in api.keys.list().await.unwrap() {
        api.keys.revoke(&key.id).await.unwrap();
    }
    assert!(!has_sign_in(&api.store).await.unwrap());
    create(&api, "ada", Role::Viewer).await;
    assert!(has_sign_in(&api.store).await.unwrap());
    assert!(api.server.first_admin_token().await.unwrap().is_some());
    create(&api, "root", Role::Admin).await;
    assert_eq!(api.server.first_admin_token().await.unwrap(), None);
}

async fn a_sign_in_is_recorded_with_its_account(api: Api) {
    create(&api, "ada", Role::Viewer).await;
    sign_in(&api, "ada", PASSWORD).await.expect(201);
    let audit = api.get("/v1/audit").await.expect(200);
    let record = audit["items"].as_array().unwrap().iter().find(|it| it["object"] == "/v1/sessions").unwrap();
    assert_eq!((&record["name"], &record["key"]), (&json!("ada"), &json!("account:ada")));
    assert!(!audit.to_string().contains(PASSWORD), "{audit}");
}
