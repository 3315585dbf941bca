//! Slow, half-open, oversize and malicious requests.

use std::time::Duration;

use onward_server::http::ServerOptions;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::api::Api;
use crate::client::{Request, Response};

on_every_store! {
    hostile_texts_are_stored_as_they_are_and_break_nothing,
    a_head_that_never_ends_is_cut_off,
    a_large_head_is_refused,
    a_thousand_silent_connections_leave_others_served,
    wrong_requests_are_refused_with_their_field,
    hostile_texts_in_updates_hooks_and_webhooks_break_nothing,
}

/// Texts that end a string, a statement, a tag or a line somewhere.
const TEXTS: &[&str] = &[
    "'; DROP TABLE task; --",
    "\" OR 1=1 --",
    "<script>alert(1)</script>",
    "$(touch /tmp/x)`id`",
    "../../etc/passwd",
    "%s%n{0}{{x}}",
    "é漢🦀",
];

/// Shows: W8
async fn hostile_texts_are_stored_as_they_are_and_break_nothing(api: Api) {
    for (index, text) in TEXTS.iter().enumerate() {
        let task =
            json!({"kind": text, "queue": text, "group": text, "key": text, "tags": {"t": text}, "payload": text});
        let id = api.post("/v1/tasks", task).await.expect(201)["id"].as_str().unwrap().to_owned();
        assert_eq!(id, (index + 1).to_string());
        let shown = api.get(&format!("/v1/tasks/{id}?payloads=true")).await.expect(200);
        for field in ["kind", "queue", "group", "key"] {
            assert_eq!(shown[field], *text);
        }
        assert_eq!((&shown["tags"]["t"], &shown["payload"]["json"]), (&json!(text), &json!(text)));
        let encoded: String = text.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let found = api.get(&format!("/v1/tasks?kind={encoded}&tag=t%3D{encoded}&key={encoded}")).await.expect(200);
        assert_eq!(found["items"].as_array().unwrap().len(), 1, "{text}");
        assert_eq!(api.get(&format!("/v1/queues/{encoded}")).await.expect(200)["name"], *text);
        api.get(&format!("/v1/schedules/{encoded}")).await.expect_problem(404, "not_found");
    }
    for path in ["/v1/tasks/1'", "/v1/tasks/-1", "/v1/tasks/99999999999999999999", "/v1/keys/%27"] {
        let response = api.send(api.request(if path.contains("keys") { "DELETE" } else { "GET" }, path)).await;
        response.expect_problem(404, "not_found");
    }
    for path in ["/v1/tasks/%00", "/v1/tasks?key=%00", "/v1/templates/a%00", "/v1/limits/groups:%00"] {
        api.get(path).await.expect_problem(400, "malformed");
    }
    for task in [json!({"kind": "k", "key": "\0"}), json!({"kind": "k", "tags": {"t": "\0"}}), json!({"kind": "\0"})] {
        api.post("/v1/tasks", task).await.expect_problem(422, "invalid");
    }
    let payload = json!({"kind": "k", "payload": "\0"});
    api.post("/v1/tasks", payload).await.expect(201);
}

async fn quick(api: &Api) -> Api {
    let mut options = ServerOptions::default();
    options.limits.request_time = Duration::from_millis(300);
    api.another(options).await
}

async fn a_head_that_never_ends_is_cut_off(api: Api) {
    let api = quick(&api).await;
    let mut stream = TcpStream::connect(api.address).await.unwrap();
    stream.write_all(b"GET /v1/tasks HTTP/1.1\r\nhost: localhost\r\nx-").await.unwrap();
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).await.unwrap();
    assert!(rest.is_empty() || rest.starts_with(b"HTTP/1.1 408"), "{}", String::from_utf8_lossy(&rest));
}

async fn a_large_head_is_refused(api: Api) {
    let long = api.request("GET", "/v1/tasks").header("x-long", &"x".repeat(20 * 1024));
    assert_eq!(api.send(long).await.status, 431);
    let mut many = api.request("GET", "/v1/tasks");
    for number in 0..100 {
        many = many.header(&format!("x-{number}"), "x");
    }
    assert_eq!(api.send(many).await.status, 431);
}

async fn a_thousand_silent_connections_leave_others_served(api: Api) {
    let mut open = Vec::new();
    for _ in 0..1024 {
        open.push(TcpStream::connect(api.address).await.unwrap());
    }
    // The connections of one address are bounded, and the next one is refused.
    let mut refused = TcpStream::connect(api.address).await.unwrap();
    let mut bytes = Vec::new();
    refused.read_to_end(&mut bytes).await.unwrap();
    let refused = Response::parse(&bytes);
    assert_eq!((refused.status, refused.header("retry-after")), (429, Some("1")));
    let other = tokio::net::TcpSocket::new_v4().unwrap();
    other.bind("127.0.0.2:0".parse().unwrap()).unwrap();
    let mut other = other.connect(api.address).await.unwrap();
    other.write_all(&api.request("GET", "/v1/tasks").bytes()).await.unwrap();
    crate::client::read_response(&mut other).await.expect(200);
}

async fn wrong_requests_are_refused_with_their_field(api: Api) {
    for (body, code, field) in [
        (json!({}), "malformed", "kind"),
        (json!({"kind": "k", "colour": 1}), "malformed", "colour"),
        (json!({"kind": "onward.k"}), "invalid", "kind"),
        (json!({"kind": "k", "queue": ""}), "invalid", "queue"),
        (json!({"kind": "k", "payload": 1, "payload_base64": "AA=="}), "invalid", "payload_base64"),
        (json!({"kind": "k", "payload_base64": "!"}), "invalid", "payload_base64"),
        (json!({"kind": "k", "after": "1h", "at": "2100-01-01T00:00:00Z"}), "invalid", "at"),
        (json!({"kind": "k", "on_duplicate": "skip"}), "invalid", "key"),
        (json!({"kind": "k", "depends_on": ["x"]}), "invalid", "depends_on"),
        (json!({"kind": "k", "depends_on": ["7"]}), "invalid", ""),
        (json!({"kind": "k", "parent": "0"}), "invalid", "parent"),
    ] {
        let response = api.post("/v1/tasks", body.clone()).await;
        let status = if code == "malformed" { 400 } else { 422 };
        let problem = response.expect_problem(status, code);
        assert_eq!(problem["field"].as_str().unwrap_or_default(), field, "{body}: {problem}");
    }
    let get = |path: &str| api.request("GET", path);
    api.send(get("/v1/queues?x=1")).await.expect_problem(400, "malformed");
    api.send(get("/v1/queues").body("x")).await.expect_problem(400, "malformed");
    let query = api.request("POST", "/v1/tasks?queue=q").json(&json!({"kind": "k"}));
    api.send(query).await.expect_problem(422, "invalid");
    let text = Request::new("POST", "/v1/keys").key(api.key(onward_server::http::Role::Admin)).body("name=x");
    api.send(text).await.expect_problem(415, "media_type_unknown");
    assert_eq!(api.get("/v1/tasks").await.expect(200)["items"], json!([]));
}

async fn hostile_texts_in_updates_hooks_and_webhooks_break_nothing(api: Api) {
    for text in TEXTS {
        let encoded: String = text.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let order = api.post("/v1/orchestrations", json!({"kind": text, "key": text})).await.expect(201)["id"].clone();
        let order = format!("/v1/orchestrations/{}", order.as_str().unwrap());
        let update = api.request("POST", &format!("{order}/updates/{encoded}")).header("prefer", "wait=0");
        let stored = api.send(update.json(&json!(text))).await;
        let location = stored.header("location").unwrap().to_owned();
        stored.expect(202);
        api.get(&location).await.expect(202);
        api.get(&format!("{order}/updates/{encoded}/{encoded}")).await.expect(202);
        api.post(&format!("{order}/queries/{encoded}"), json!(text)).await.expect_problem(409, "code_elsewhere");
        api.get(&format!("{order}/history?cursor={encoded}")).await.expect_problem(422, "invalid");
        let target = json!({"task": {"kind": text, "queue": text, "group": text}});
        let hook = json!({"scheme": "github", "secret": "a secret of a test", "events": [text], "target": target});
        api.put(&format!("/v1/hooks/{encoded}"), hook.clone()).await.expect_problem(422, "invalid");
        api.put("/v1/hooks/plain", hook).await.expect(200);
        api.send(Request::new("POST", &format!("/v1/hooks/{encoded}"))).await.expect_problem(401, "credential_invalid");
        api.post("/v1/webhooks", json!({"url": text})).await.expect_problem(422, "invalid");
        let webhook = json!({"url": "https://example.org/", "kinds": [text], "queue": text});
        let created = api.post("/v1/webhooks", webhook).await.expect(201);
        assert_eq!((&created["kinds"][0], &created["queue"]), (&json!(text), &json!(text)));
        api.delete(&format!("/v1/webhooks/{encoded}")).await.expect_problem(404, "not_found");
    }
}
