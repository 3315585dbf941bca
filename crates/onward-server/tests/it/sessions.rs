//! Sessions of browsers.

use std::time::Duration;

use onward_server::http::{Role, ServerOptions, bounds};
use serde_json::json;

use crate::api::Api;
use crate::client::Request;

on_every_store! {
    the_link_signs_a_browser_in_once,
    a_cookie_is_bound_to_its_host_and_hidden_from_scripts,
    a_session_in_use_ends_with_its_time,
    an_idle_session_ends,
    the_use_of_a_session_is_noted_once_an_hour,
    a_sign_in_ends_the_session_before_it,
    a_session_ends_with_a_sign_out,
    a_session_is_revoked_at_every_server,
    a_session_cannot_create_another,
    a_change_by_cookie_is_recorded_with_its_session,
    the_oldest_session_makes_room,
}

/// Signs in with the key of a role. Returns the cookie and the id of the session.
async fn sign_in(api: &Api, role: Role) -> (String, String) {
    let response = api.send(Request::new("POST", "/v1/sessions").key(api.key(role))).await;
    let cookie = response.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
    (cookie, response.expect(201)["id"].as_str().unwrap().to_owned())
}

fn with(cookie: &str, method: &str, path: &str) -> Request {
    Request::new(method, path).header("cookie", cookie).header("x-onward-page", "1")
}

async fn me(api: &Api, cookie: &str) -> crate::client::Response {
    api.send(with(cookie, "GET", "/v1/me")).await
}

/// Shows: B10
async fn the_link_signs_a_browser_in_once(api: Api) {
    for key in api.keys.list().await.unwrap().iter().filter(|key| key.role == Role::Admin) {
        api.keys.revoke(&key.id).await.unwrap();
    }
    let token = api.server.first_admin_token().await.unwrap().unwrap();
    let open = || Request::new("GET", &format!("/v1/sign-in?token={token}")).header("accept", "text/html,*/*");
    let opened = api.send(open()).await;
    assert_eq!((opened.status, opened.header("location")), (303, Some("../")));
    let cookie = opened.header("set-cookie").unwrap().split(';').next().unwrap();
    let shown = me(&api, cookie).await.expect(200);
    assert_eq!((&shown["name"], &shown["role"]), (&json!("first admin"), &json!("admin")));
    let again = api.send(open()).await;
    assert_eq!((again.status, again.header("set-cookie")), (303, None));
    // The session is no admin key, so the next start of the server offers another link.
    assert!(api.server.first_admin_token().await.unwrap().is_some());
}

async fn a_cookie_is_bound_to_its_host_and_hidden_from_scripts(api: Api) {
    let mut options = ServerOptions::default();
    options.hosts = vec!["work.example".to_owned()];
    let other = api.another(options).await;
    let set = async |host: &str| {
        let request = Request::new("POST", "/v1/sessions").key(other.key(Role::Viewer)).header("host", host);
        other.send(request).await.header("set-cookie").unwrap().to_owned()
    };
    let local = set("127.0.0.1:7070").await;
    assert!(local.starts_with("onward-session-7070=") && !local.contains("Secure"), "{local}");
    let public = set("work.example").await;
    assert!(public.starts_with("__Host-onward-session=") && public.contains("; Secure"), "{public}");
    for cookie in [local, public] {
        for part in ["; Path=/;", "; HttpOnly", "; SameSite=Strict", "; Max-Age=604800"] {
            assert!(cookie.contains(part), "{cookie}");
        }
        assert!(!cookie.contains("Domain"), "{cookie}");
    }
}

async fn a_session_in_use_ends_with_its_time(api: Api) {
    let (cookie, _) = sign_in(&api, Role::Viewer).await;
    let step = Duration::from_secs(12 * 3600);
    for _ in 0..13 {
        api.clock.advance(step);
        me(&api, &cookie).await.expect(200);
    }
    api.clock.advance(step - Duration::from_secs(1));
    me(&api, &cookie).await.expect(200);
    api.clock.advance(Duration::from_secs(1));
    me(&api, &cookie).await.expect_problem(401, "credential_invalid");
    assert_eq!(api.get("/v1/sessions").await.expect(200)["items"], json!([]));
}

async fn an_idle_session_ends(api: Api) {
    let (cookie, _) = sign_in(&api, Role::Viewer).await;
    api.clock.advance(bounds::SESSION_IDLE - Duration::from_secs(1));
    me(&api, &cookie).await.expect(200);
    api.clock.advance(bounds::SESSION_IDLE);
    me(&api, &cookie).await.expect_problem(401, "credential_invalid");
    assert_eq!(api.get("/v1/sessions").await.expect(200)["items"], json!([]));
}

async fn the_use_of_a_session_is_noted_once_an_hour(api: Api) {
    let (cookie, _) = sign_in(&api, Role::Viewer).await;
    let used = async || api.get("/v1/sessions").await.expect(200)["items"][0]["used_at"].clone();
    let signed_in = used().await;
    api.clock.advance(bounds::SESSION_NOTED - Duration::from_secs(1));
    me(&api, &cookie).await.expect(200);
    assert_eq!(used().await, signed_in, "a request of the same hour writes nothing");
    api.clock.advance(Duration::from_secs(1));
    me(&api, &cookie).await.expect(200);
    assert_ne!(used().await, signed_in);
}

async fn a_sign_in_ends_the_session_before_it(api: Api) {
    let (before, _) = sign_in(&api, Role::Viewer).await;
    let again = Request::new("POST", "/v1/sessions").key(api.key(Role::Admin)).header("cookie", &before);
    let again = api.send(again).await;
    let after = again.header("set-cookie").unwrap().split(';').next().unwrap();
    me(&api, &before).await.expect_problem(401, "credential_invalid");
    assert_eq!(me(&api, after).await.expect(200)["role"], "admin");
}

async fn a_session_ends_with_a_sign_out(api: Api) {
    let (cookie, _) = sign_in(&api, Role::Viewer).await;
    let out = api.send(with(&cookie, "POST", "/v1/sign-out")).await;
    assert!(out.header("set-cookie").unwrap().contains("=; Path=/; Max-Age=0;"), "{out:?}");
    assert_eq!(out.status, 204);
    me(&api, &cookie).await.expect_problem(401, "credential_invalid");
    api.post("/v1/sign-out", json!({})).await.expect_problem(409, "conflict");
}

async fn a_session_is_revoked_at_every_server(api: Api) {
    let (cookie, id) = sign_in(&api, Role::Operator).await;
    let other = api.another(ServerOptions::default()).await;
    assert_eq!(me(&other, &cookie).await.expect(200)["session"], id);
    let listed = api.get("/v1/sessions").await.expect(200);
    assert_eq!((&listed["items"][0]["id"], &listed["items"][0]["name"]), (&json!(id), &json!("operator")));
    let (_, secret) = cookie.split_once('_').unwrap();
    assert!(!listed.to_string().contains(secret), "{listed}");
    api.delete(&format!("/v1/sessions/{id}")).await.expect(200);
    me(&other, &cookie).await.expect_problem(401, "credential_invalid");
    api.delete(&format!("/v1/sessions/{id}")).await.expect_problem(404, "not_found");
}

async fn a_session_cannot_create_another(api: Api) {
    let (cookie, _) = sign_in(&api, Role::Admin).await;
    api.send(with(&cookie, "POST", "/v1/sessions")).await.expect_problem(400, "malformed");
}

async fn a_change_by_cookie_is_recorded_with_its_session(api: Api) {
    api.submit("k").await;
    let (cookie, id) = sign_in(&api, Role::Operator).await;
    api.send(with(&cookie, "POST", "/v1/tasks/1/cancel")).await.expect(200);
    let audit = api.get("/v1/audit").await.expect(200);
    let record = audit["items"].as_array().unwrap().iter().find(|it| it["object"] == "/v1/tasks/1/cancel").unwrap();
    assert_eq!((&record["session"], &record["name"]), (&json!(id), &json!("operator")));
}

async fn the_oldest_session_makes_room(api: Api) {
    let (first, _) = sign_in(&api, Role::Viewer).await;
    for _ in 0..bounds::SESSIONS {
        api.clock.advance(Duration::from_millis(1));
        sign_in(&api, Role::Viewer).await;
    }
    assert_eq!(api.get("/v1/sessions").await.expect(200)["items"].as_array().unwrap().len(), bounds::SESSIONS);
    me(&api, &first).await.expect_problem(401, "credential_invalid");
}
