//! Submitting tasks.

use std::time::Duration;

use serde_json::json;

use crate::api::{Api, run};

on_every_store! {
    a_task_with_every_field_is_returned_as_it_was_submitted,
    a_payload_of_any_type_is_kept_byte_for_byte,
    a_batch_is_submitted_wholly_or_not_at_all,
    a_wait_returns_the_result,
    a_wait_ends_when_its_time_is_up,
    the_end_of_a_task_is_awaited_by_its_id,
    a_duplicate_is_reported,
}

/// Shows: W8
async fn a_task_with_every_field_is_returned_as_it_was_submitted(api: Api) {
    let first = api.submit("first").await;
    let task = json!({
        "kind": "mail", "payload": {"to": "ada"}, "queue": "slow", "priority": 200, "after": "1h", "key": "a",
        "on_duplicate": "reject", "keep_key_for": "1d", "ttl": "2h", "timeout": "1m30s", "heartbeat_timeout": "10s",
        "deadline": "2100-01-01T00:00:00Z", "retention": "7d", "group": "tenant", "tags": {"city": "Pisa"},
        "retry": {"attempts": 3, "backoff": {"constant": {"delay": "5s"}}}, "depends_on": [first],
        "on_dependency_failure": "ignore", "parent": first, "affinity": "file",
    });
    let response = api.post("/v1/tasks", task).await;
    assert_eq!(response.header("location"), Some("/v1/tasks/2"));
    assert_eq!(response.expect(201), json!({"id": "2", "outcome": "inserted"}));
    let shown = api.get("/v1/tasks/2?payloads=true").await.expect(200);
    for (field, value) in [
        ("id", json!("2")),
        ("kind", json!("mail")),
        ("queue", json!("slow")),
        ("priority", json!(200)),
        ("key", json!("a")),
        ("group", json!("tenant")),
        ("timeout", json!("1m30s")),
        ("deadline", json!("2100-01-01T00:00:00Z")),
        ("tags", json!({"city": "Pisa"})),
        ("blocked_by", json!(["1"])),
        ("parent", json!("1")),
        ("payload", json!({"json": {"to": "ada"}})),
        ("retry", json!({"attempts": 3, "backoff": {"constant": {"delay": "5s"}}})),
    ] {
        assert_eq!(shown[field], value, "{field} in {shown}");
    }
}

async fn a_payload_of_any_type_is_kept_byte_for_byte(api: Api) {
    let bytes = [0, 159, 146, 150, b'{'];
    let request = api.request("POST", "/v1/tasks?kind=raw&queue=q&priority=7").header("content-type", "image/png");
    api.send(request.body(bytes)).await.expect(201);
    let payload = api.get("/v1/tasks/1/payload").await;
    assert_eq!(payload.header("content-type"), Some("application/octet-stream"));
    assert_eq!(payload.body, bytes);
    assert_eq!(api.get("/v1/tasks/1").await.expect(200)["priority"], 7);
    let json = api.request("POST", "/v1/tasks?kind=raw").header("content-type", "application/json");
    api.send(json.body("{ \"a\":  1.0 }")).await.expect(201);
    assert_eq!(api.get("/v1/tasks/2/payload").await.text(), "{ \"a\":  1.0 }");
}

async fn a_batch_is_submitted_wholly_or_not_at_all(api: Api) {
    let batch = |kinds: &[&str]| json!({"tasks": kinds.iter().map(|kind| json!({"kind": kind})).collect::<Vec<_>>()});
    let submitted = api.post("/v1/tasks:batch", batch(&["a", "b"])).await.expect(201);
    assert_eq!(submitted["tasks"][1], json!({"id": "2", "outcome": "inserted"}));
    let problem = api.post("/v1/tasks:batch", batch(&["a", " b"])).await.expect_problem(422, "invalid");
    assert_eq!(problem["field"], "tasks[1].kind");
    api.post("/v1/tasks:batch", batch(&[])).await.expect_problem(422, "invalid");
    assert_eq!(api.get("/v1/tasks").await.expect(200)["items"].as_array().unwrap().len(), 2);
}

/// Shows: W8
async fn a_wait_returns_the_result(api: Api) {
    let engine = api.engine().await;
    engine.handle_json("double", |number, _| async move { Ok(json!(number.as_i64().unwrap_or(0) * 2)) });
    let running = run(&engine);
    let task = json!({"kind": "double", "payload": 21});
    let ended = api.send(api.request("POST", "/v1/tasks").header("prefer", "wait=30s").json(&task)).await.expect(200);
    assert_eq!((&ended["state"], &ended["result"]), (&json!("completed"), &json!({"json": 42})));
    assert_eq!(api.get("/v1/tasks/1/result").await.text(), "42");
    engine.stop();
    running.await.unwrap();
}

async fn a_wait_ends_when_its_time_is_up(api: Api) {
    let request = api.request("POST", "/v1/tasks").header("prefer", "respond-async, wait=50ms");
    let waited = api.send(request.json(&json!({"kind": "k"}))).await;
    assert_eq!(waited.header("location"), Some("/v1/tasks/1"));
    assert_eq!(waited.expect(202)["id"], "1");
    let request = api.request("POST", "/v1/tasks").header("prefer", "wait=soon").json(&json!({"kind": "k"}));
    assert_eq!(api.send(request).await.expect_problem(422, "invalid")["field"], "Prefer");
    assert_eq!(api.get("/v1/tasks").await.expect(200)["items"].as_array().unwrap().len(), 1);
}

/// Shows: W8
async fn the_end_of_a_task_is_awaited_by_its_id(api: Api) {
    let engine = api.engine().await;
    engine.handle_json("double", |number, _| async move { Ok(json!(number.as_i64().unwrap_or(0) * 2)) });
    api.post("/v1/tasks", json!({"kind": "double", "payload": 21})).await.expect(201);
    let wait = |time: &str| api.request("GET", "/v1/tasks/1?payloads=true").header("prefer", &format!("wait={time}"));
    assert_eq!(api.send(wait("50ms")).await.expect(200)["state"], "waiting");
    let running = run(&engine);
    let ended = api.send(wait("30s")).await.expect(200);
    assert_eq!((&ended["state"], &ended["result"]), (&json!("completed"), &json!({"json": 42})));
    engine.stop();
    running.await.unwrap();
}

async fn a_duplicate_is_reported(api: Api) {
    let task = json!({"kind": "k", "key": "a"});
    api.post("/v1/tasks", task.clone()).await.expect(201);
    assert_eq!(api.post("/v1/tasks", task).await.expect(200), json!({"id": "1", "outcome": "duplicate"}));
    api.clock.advance(Duration::from_secs(1));
    let rejected = json!({"kind": "k", "key": "a", "on_duplicate": "reject"});
    assert_eq!(api.post("/v1/tasks", rejected).await.expect(200)["outcome"], "rejected");
}
