//! Keys, the one-time link and the key file.

use std::time::Duration;

use onward_server::http::{Role, ServerOptions};
use serde_json::json;

use crate::api::Api;
use crate::client::Request;

on_every_store! {
    a_key_is_shown_once_and_listed_without_its_secret,
    a_revoked_key_is_refused_by_another_server,
    the_link_works_once,
    the_link_expires,
    there_is_no_link_for_a_store_with_an_admin,
    a_key_file_holds_a_key_until_the_server_closes,
    a_second_server_leaves_the_key_file_of_the_first_alone,
    the_key_file_of_a_killed_server_is_replaced,
    a_name_is_that_of_one_active_key,
    keys_are_listed_in_pages,
    a_key_with_the_name_of_the_key_file_is_another_owner,
    payloads_are_for_operators,
}

/// Shows: W8
async fn a_key_is_shown_once_and_listed_without_its_secret(api: Api) {
    api.clock.advance(Duration::from_secs(60));
    let new = json!({"name": "ci", "role": "viewer", "expires_after": "90d"});
    let created = api.post("/v1/keys", new).await.expect(201);
    let key = created["key"].as_str().unwrap();
    api.send(Request::new("GET", "/v1/tasks").key(key)).await.expect(200);
    let listed = api.get("/v1/keys").await.expect(200);
    let (_, secret) = key.rsplit_once(created["record"]["id"].as_str().unwrap()).unwrap();
    assert!(!listed.to_string().contains(secret.trim_start_matches('_')), "{listed}");
    assert_eq!(listed["items"][4]["name"], "ci");
    assert_eq!(listed["items"][4]["state"], "active");
}

async fn a_revoked_key_is_refused_by_another_server(api: Api) {
    let created = api.post("/v1/keys", json!({"name": "ci", "role": "viewer"})).await.expect(201);
    let (key, id) = (created["key"].as_str().unwrap(), created["record"]["id"].as_str().unwrap());
    let other = api.another(ServerOptions::default()).await;
    other.send(Request::new("GET", "/v1/tasks").key(key)).await.expect(200);
    assert_eq!(api.delete(&format!("/v1/keys/{id}")).await.expect(200)["state"], "revoked");
    other.send(Request::new("GET", "/v1/tasks").key(key)).await.expect_problem(401, "credential_invalid");
}

/// Revokes the admin key of the tests, so that the store has no admin.
async fn without_admin(api: &Api) {
    for key in api.keys.list().await.unwrap().iter().filter(|key| key.role == Role::Admin) {
        api.keys.revoke(&key.id).await.unwrap();
    }
}

fn sign_in(token: &str) -> Request {
    Request::new("GET", &format!("/v1/sign-in?token={token}"))
}

async fn the_link_works_once(api: Api) {
    without_admin(&api).await;
    let token = api.server.first_admin_token().await.unwrap().unwrap();
    api.send(sign_in("wrong")).await.expect_problem(401, "credential_invalid");
    // A proxy or a preview may look at the link with HEAD, which must not use it up.
    api.send(Request::new("HEAD", &format!("/v1/sign-in?token={token}"))).await.expect(405);
    let signed_in = api.send(sign_in(&token)).await.expect(200);
    assert_eq!(signed_in["record"]["role"], "admin");
    let key = signed_in["key"].as_str().unwrap();
    api.send(Request::new("GET", "/v1/keys").key(key)).await.expect(200);
    api.send(sign_in(&token)).await.expect_problem(401, "credential_invalid");
}

async fn the_link_expires(api: Api) {
    without_admin(&api).await;
    let token = api.server.first_admin_token().await.unwrap().unwrap();
    api.clock.advance(Duration::from_secs(600));
    api.send(sign_in(&token)).await.expect_problem(401, "credential_invalid");
}

async fn there_is_no_link_for_a_store_with_an_admin(api: Api) {
    assert_eq!(api.server.first_admin_token().await.unwrap(), None);
}

async fn a_key_file_holds_a_key_until_the_server_closes(api: Api) {
    use std::os::unix::fs::PermissionsExt as _;

    let directory = tempfile::tempdir().unwrap();
    let mut options = ServerOptions::default();
    options.key_file_beside = Some(directory.path().join("onward.db"));
    let other = api.another(options).await;
    let path = other.server.key_file().await.unwrap();
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let header = std::fs::read_to_string(&path).unwrap();
    let (name, value) = header.trim().split_once(": ").unwrap();
    let request = Request::new("GET", "/v1/keys").header(&name.to_lowercase(), value);
    other.send(request.clone()).await.expect(200);
    other.server.close().await.unwrap();
    assert!(!path.exists());
    other.send(request).await.expect_problem(401, "credential_invalid");
}

/// Shows: W8
async fn payloads_are_for_operators(api: Api) {
    api.post("/v1/tasks", json!({"kind": "k", "payload": "secret"})).await.expect(201);
    let get = |path: &str, role| api.send(Request::new("GET", path).key(api.key(role)));
    for path in ["/v1/tasks", "/v1/tasks/1"] {
        assert!(!get(path, Role::Viewer).await.text().contains("secret"));
        let path = format!("{path}?payloads=true");
        get(&path, Role::Viewer).await.expect_problem(403, "forbidden");
        assert!(get(&path, Role::Operator).await.text().contains("secret"));
    }
    get("/v1/tasks/1/payload", Role::Viewer).await.expect_problem(403, "forbidden");
    assert_eq!(get("/v1/tasks/1/payload", Role::Operator).await.text(), "\"secret\"");
}

fn beside(directory: &tempfile::TempDir) -> ServerOptions {
    let mut options = ServerOptions::default();
    options.key_file_beside = Some(directory.path().join("onward.db"));
    options
}

/// Returns a request with the header of a key file.
fn with_file(header: &str, method: &str, path: &str) -> Request {
    let (name, value) = header.trim().split_once(": ").unwrap();
    Request::new(method, path).header(&name.to_lowercase(), value)
}

async fn a_second_server_leaves_the_key_file_of_the_first_alone(api: Api) {
    let directory = tempfile::tempdir().unwrap();
    let first = api.another(beside(&directory)).await;
    let path = first.server.key_file().await.unwrap();
    let header = std::fs::read_to_string(&path).unwrap();
    let second = api.another(beside(&directory)).await;
    assert_eq!(second.server.key_file().await, None);
    second.server.close().await.unwrap();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), header);
    first.send(with_file(&header, "GET", "/v1/keys")).await.expect(200);
    first.server.close().await.unwrap();
    let files: Vec<_> = std::fs::read_dir(directory.path()).unwrap().collect();
    assert!(files.is_empty(), "{files:?}");
}

async fn the_key_file_of_a_killed_server_is_replaced(api: Api) {
    let directory = tempfile::tempdir().unwrap();
    let first = api.another(beside(&directory)).await;
    let path = first.server.key_file().await.unwrap();
    let header = std::fs::read_to_string(&path).unwrap();
    first.server.close().await.unwrap();
    // A killed server leaves a file that no process has locked.
    std::fs::write(&path, &header).unwrap();
    let second = api.another(beside(&directory)).await;
    let replaced = std::fs::read_to_string(second.server.key_file().await.unwrap()).unwrap();
    assert_ne!(replaced, header);
    second.send(with_file(&replaced, "GET", "/v1/keys")).await.expect(200);
    second.server.close().await.unwrap();
}

async fn a_name_is_that_of_one_active_key(api: Api) {
    let create = || api.post("/v1/keys", json!({"name": "ci", "role": "viewer", "expires_after": "1h"}));
    let first = create().await.expect(201);
    let second = create().await.expect_problem(422, "invalid");
    assert!(second["detail"].as_str().unwrap().contains("ci"), "{second}");
    api.delete(&format!("/v1/keys/{}", first["record"]["id"].as_str().unwrap())).await.expect(200);
    create().await.expect(201);
    create().await.expect_problem(422, "invalid");
    api.clock.advance(Duration::from_secs(3600));
    create().await.expect(201);
    let other = || api.post("/v1/keys", json!({"name": "other", "role": "viewer"}));
    let both = futures_util::future::join_all([other(), other()]).await;
    assert_eq!(both.iter().filter(|response| response.status == 201).count(), 1);
}

async fn keys_are_listed_in_pages(api: Api) {
    let first = api.get("/v1/keys?limit=3").await.expect(200);
    assert_eq!(first["items"].as_array().unwrap().len(), 3);
    let next = first["next"].as_str().unwrap();
    let second = api.get(&format!("/v1/keys?limit=3&cursor={next}")).await.expect(200);
    assert_eq!((second["items"].as_array().unwrap().len(), &second["next"]), (1, &json!(null)));
    assert!(!first["items"].as_array().unwrap().contains(&second["items"][0]), "{second}");
}

async fn a_key_with_the_name_of_the_key_file_is_another_owner(api: Api) {
    let directory = tempfile::tempdir().unwrap();
    let other = api.another(beside(&directory)).await;
    let header = std::fs::read_to_string(other.server.key_file().await.unwrap()).unwrap();
    let submit = |request: Request| request.header("idempotency-key", "one").json(&json!({"kind": "k"}));
    let of_file = other.send(submit(with_file(&header, "POST", "/v1/tasks"))).await.expect(201);
    let forged = json!({"name": "key file", "role": "admin"});
    let forged = api.post("/v1/keys", forged).await.expect(201)["key"].as_str().unwrap().to_owned();
    let of_forged = other.send(submit(Request::new("POST", "/v1/tasks").key(&forged))).await.expect(201);
    assert_ne!(of_file["id"], of_forged["id"]);
    other.server.close().await.unwrap();
}
