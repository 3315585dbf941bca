//! Hooks: signed requests that submit tasks and send signals.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, Mac as _};
use onward_server::http::bounds;
use onward_store::StoreReads as _;
use serde_json::{Value, json};
use sha2::Sha256;

use crate::api::Api;
use crate::client::{Request, Response};

on_every_store! {
    a_standard_delivery_submits_its_task_once,
    a_delivery_of_github_is_taken,
    a_delivery_of_stripe_is_taken_within_its_window,
    a_code_in_any_header_is_taken,
    a_wrong_signature_and_an_unknown_hook_look_alike,
    a_delivery_signals_the_orchestration_that_its_body_names,
    a_secret_is_shown_once,
    a_wrong_hook_is_refused_with_its_field,
    a_delivery_of_another_event_has_no_effect,
}

const SECRET: &str = "a secret of a test";

fn code(key: &[u8], parts: &[&str]) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).unwrap();
    parts.iter().for_each(|part| mac.update(part.as_bytes()));
    mac.finalize().into_bytes().to_vec()
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn seconds(api: &Api) -> String {
    api.store.clock().now().as_microseconds().div_euclid(1_000_000).to_string()
}

async fn hook(api: &Api, name: &str, scheme: Value, secret: Option<&str>) -> Value {
    let mut body = json!({"scheme": scheme, "target": {"task": {"kind": "hooked", "queue": "q"}}});
    if let Some(secret) = secret {
        body["secret"] = json!(secret);
    }
    api.put(&format!("/v1/hooks/{name}"), body).await.expect(200)
}

fn standard(api: &Api, secret: &str, id: &str, body: &str) -> Request {
    let time = seconds(api);
    let key = STANDARD.decode(secret.strip_prefix("whsec_").unwrap()).unwrap();
    let signature = format!("v1,{}", STANDARD.encode(code(&key, &[id, ".", &time, ".", body])));
    let request = Request::new("POST", "/v1/hooks/one").header("webhook-id", id).header("webhook-timestamp", &time);
    request.header("webhook-signature", &signature).header("content-type", "application/json").body(body)
}

/// Shows: W8
async fn a_standard_delivery_submits_its_task_once(api: Api) {
    let secret = hook(&api, "one", json!("standard"), None).await["secret"].as_str().unwrap().to_owned();
    let delivery = |id: &str| standard(&api, &secret, id, r#"{"type": "paid", "cents": 5}"#);
    let first = api.send(delivery("a")).await.expect(200);
    // To another server, and long after its window would have let a copy through.
    let other = api.another(Default::default()).await;
    assert_eq!(other.send(delivery("a")).await.status, 204);
    api.clock.advance(bounds::IDEMPOTENCY_KEPT);
    assert_eq!(api.send(delivery("a")).await.status, 204);
    api.send(delivery("b")).await.expect(200);
    let tasks = api.get("/v1/tasks?kind=hooked&payloads=true").await.expect(200);
    assert_eq!(tasks["items"].as_array().unwrap().len(), 2);
    let task = api.get(&format!("/v1/tasks/{}?payloads=true", first["id"].as_str().unwrap())).await.expect(200);
    assert_eq!((&task["payload"]["json"]["cents"], &task["queue"]), (&json!(5), &json!("q")));
    assert_eq!(task["tags"], json!({"hook": "one", "hook.event": "paid"}));
}

fn github(secret: &str, id: &str, body: &str) -> Request {
    let signature = format!("sha256={}", hexadecimal(&code(secret.as_bytes(), &[body])));
    let request = Request::new("POST", "/v1/hooks/github").header("x-hub-signature-256", &signature);
    request.header("x-github-delivery", id).header("x-github-event", "push").body(body)
}

/// Shows: W8
async fn a_delivery_of_github_is_taken(api: Api) {
    hook(&api, "github", json!("github"), Some(SECRET)).await;
    let id = api.send(github(SECRET, "1", "{}")).await.expect(200)["id"].clone();
    assert_eq!(api.send(github(SECRET, "1", "{}")).await.status, 204);
    api.send(github("another secret of a test", "2", "{}")).await.expect_problem(401, "credential_invalid");
    let task = api.get(&format!("/v1/tasks/{}", id.as_str().unwrap())).await.expect(200);
    assert_eq!(task["tags"]["hook.event"], "push");
}

/// Shows: W8
async fn a_delivery_of_stripe_is_taken_within_its_window(api: Api) {
    hook(&api, "stripe", json!("stripe"), Some(SECRET)).await;
    let body = r#"{"id": "evt_1", "type": "charge.succeeded"}"#;
    let time = seconds(&api);
    let right = hexadecimal(&code(SECRET.as_bytes(), &[&time, ".", body]));
    let send = async |signature: String| {
        let request = Request::new("POST", "/v1/hooks/stripe").header("stripe-signature", &signature).body(body);
        api.send(request).await
    };
    send(format!("t={time},v1={}", "0".repeat(64))).await.expect_problem(401, "credential_invalid");
    send(format!("t=1,v1={right}")).await.expect_problem(401, "credential_invalid");
    send(format!("t={time},v1={},v1={right}", "0".repeat(64))).await.expect(200);
    assert_eq!(send(format!("t={time},v1={right}")).await.status, 204);
    api.clock.advance(bounds::HOOK_WINDOW + std::time::Duration::from_secs(1));
    send(format!("t={time},v1={right}")).await.expect_problem(401, "credential_invalid");
}

async fn a_code_in_any_header_is_taken(api: Api) {
    let scheme = json!({"hmac": {"signature_header": "X-Code", "id_header": "X-Id"}});
    hook(&api, "any", scheme, Some(SECRET)).await;
    let (body, right) = ("not JSON", code(SECRET.as_bytes(), &["not JSON"]));
    for (id, text) in [("1", hexadecimal(&right)), ("2", STANDARD.encode(&right))] {
        let request = Request::new("POST", "/v1/hooks/any").header("x-code", &text).header("x-id", id).body(body);
        api.send(request).await.expect(200);
    }
    let without_id = Request::new("POST", "/v1/hooks/any").header("x-code", &hexadecimal(&right)).body(body);
    api.send(without_id).await.expect_problem(401, "credential_invalid");
}

async fn a_wrong_signature_and_an_unknown_hook_look_alike(api: Api) {
    let secret = hook(&api, "one", json!("standard"), None).await["secret"].as_str().unwrap().to_owned();
    let problem = |response: Response| {
        let mut problem = response.expect_problem(401, "credential_invalid");
        problem["request_id"] = Value::Null;
        problem
    };
    let other = format!("whsec_{}", STANDARD.encode([7; 32]));
    let wrong = problem(api.send(standard(&api, &other, "a", "{}")).await);
    api.delete("/v1/hooks/one").await.expect(204);
    assert_eq!(problem(api.send(standard(&api, &secret, "a", "{}")).await), wrong);
    assert_eq!(problem(api.send(Request::new("POST", "/v1/hooks/one")).await), wrong);
    assert_eq!(api.get("/v1/tasks").await.expect(200)["items"], json!([]));
}

/// Shows: W8
async fn a_delivery_signals_the_orchestration_that_its_body_names(api: Api) {
    let order = api.post("/v1/orchestrations", json!({"kind": "order", "key": "A-17"})).await.expect(201);
    let order = order["id"].as_str().unwrap().parse().unwrap();
    let target = json!({"signal": {"name": "paid", "kind": "order", "key": "/data/order"}});
    let body = json!({"scheme": "github", "secret": SECRET, "target": target});
    api.put("/v1/hooks/github", body).await.expect(200);
    let paid = |order: &str| format!(r#"{{"data": {{"order": "{order}"}}}}"#);
    for _ in 0..2 {
        assert_eq!(api.send(github(SECRET, "1", &paid("A-17"))).await.status, 204);
    }
    assert_eq!(api.store.instance(order).await.unwrap().unwrap().waiting, 1);
    api.send(github(SECRET, "2", &paid("B"))).await.expect_problem(404, "not_found");
    api.send(github(SECRET, "3", "{}")).await.expect_problem(422, "invalid");
    // A delivery without an effect may be delivered again.
    api.post("/v1/orchestrations", json!({"kind": "order", "key": "B"})).await.expect(201);
    assert_eq!(api.send(github(SECRET, "2", &paid("B"))).await.status, 204);
}

async fn a_secret_is_shown_once(api: Api) {
    let made = hook(&api, "one", json!("standard"), None).await;
    let secret = made["secret"].as_str().unwrap();
    assert!(secret.starts_with("whsec_"), "{made}");
    let listed = api.get("/v1/hooks").await.text();
    assert!(listed.contains("/v1/hooks/one") && !listed.contains(secret), "{listed}");
    let given = hook(&api, "two", json!("github"), Some(SECRET)).await;
    assert_eq!(given["secret"], Value::Null);
}

async fn a_wrong_hook_is_refused_with_its_field(api: Api) {
    let task = json!({"task": {"kind": "k"}});
    for (name, body, field) in [
        ("a%20b", json!({"scheme": "github", "target": task}), "hook"),
        ("a", json!({"scheme": "github", "secret": "short", "target": task}), "secret"),
        ("a", json!({"scheme": "standard", "secret": SECRET, "target": task}), "secret"),
        ("a", json!({"scheme": "github", "target": {"task": {"kind": ""}}}), "kind"),
        ("a", json!({"scheme": "github", "target": {"signal": {"name": "s", "kind": "k", "key": "x"}}}), "key"),
        (
            "a",
            json!({"scheme": {"hmac": {"signature_header": "a b", "id_header": "c"}}, "secret": SECRET,
            "target": task}),
            "signature_header",
        ),
        ("a", json!({"scheme": "github", "events": vec!["e"; 101], "target": task}), "events"),
    ] {
        let problem = api.put(&format!("/v1/hooks/{name}"), body.clone()).await.expect_problem(422, "invalid");
        assert_eq!(problem["field"], field, "{body}: {problem}");
    }
    api.put("/v1/hooks/a", json!({"scheme": "rot13", "target": task})).await.expect_problem(400, "malformed");
    api.delete("/v1/hooks/a").await.expect_problem(404, "not_found");
}

async fn a_delivery_of_another_event_has_no_effect(api: Api) {
    let body = json!({"scheme": "github", "secret": SECRET, "events": ["release"], "target": {"task": {"kind": "k"}}});
    api.put("/v1/hooks/github", body).await.expect(200);
    assert_eq!(api.send(github(SECRET, "1", "{}")).await.status, 204);
    assert_eq!(api.get("/v1/tasks").await.expect(200)["items"], json!([]));
}
