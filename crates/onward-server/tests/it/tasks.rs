//! Reading and changing tasks.

use onward::Failure;
use onward_server::http::bounds;
use serde_json::{Value, json};

use crate::api::{Api, run};

on_every_store! {
    a_list_is_read_in_pages_that_new_tasks_do_not_disturb,
    a_list_is_filtered,
    the_reasons_of_a_waiting_task_are_named,
    a_task_is_cancelled_retried_moved_and_killed,
    an_attempt_is_completed_externally,
    failed_attempts_are_listed,
    many_tasks_are_changed_at_once,
    a_page_of_tasks_ends_after_its_bytes,
}

fn ids(page: &Value) -> Vec<&str> {
    page["items"].as_array().unwrap().iter().map(|task| task["id"].as_str().unwrap()).collect()
}

/// Shows: W8, Q10
async fn a_list_is_read_in_pages_that_new_tasks_do_not_disturb(api: Api) {
    for _ in 0..5 {
        api.submit("k").await;
    }
    let first = api.get("/v1/tasks?limit=2").await.expect(200);
    assert_eq!(ids(&first), ["5", "4"]);
    api.submit("k").await;
    let second = api.get(&format!("/v1/tasks?limit=2&cursor={}", first["next"].as_str().unwrap())).await.expect(200);
    assert_eq!(ids(&second), ["3", "2"]);
    let third = api.get(&format!("/v1/tasks?limit=2&cursor={}", second["next"].as_str().unwrap())).await.expect(200);
    assert_eq!((ids(&third), &third["next"]), (vec!["1"], &Value::Null));
    for wrong in ["/v1/tasks?limit=0", "/v1/tasks?limit=1001", "/v1/tasks?cursor=%21"] {
        api.get(wrong).await.expect_problem(422, "invalid");
    }
}

async fn a_list_is_filtered(api: Api) {
    api.post("/v1/tasks", json!({"kind": "a", "queue": "q", "tags": {"x": "1"}, "key": "one"})).await.expect(201);
    api.post("/v1/tasks", json!({"kind": "b", "group": "g", "after": "1h"})).await.expect(201);
    for (query, expected) in [
        ("kind=a", &["1"][..]),
        ("queue=q", &["1"]),
        ("group=g", &["2"]),
        ("tag=x%3D1", &["1"]),
        ("key=one", &["1"]),
        ("state=scheduled", &["2"]),
        ("state=scheduled,waiting", &["2", "1"]),
        ("orchestration=true", &[]),
        ("until=1970-01-01T00:00:00Z", &[]),
    ] {
        assert_eq!(ids(&api.get(&format!("/v1/tasks?{query}")).await.expect(200)), expected, "{query}");
    }
    assert_eq!(api.get("/v1/tasks?state=done").await.expect_problem(422, "invalid")["field"], "state");
}

/// Shows: B6
async fn the_reasons_of_a_waiting_task_are_named(api: Api) {
    api.post("/v1/tasks", json!({"kind": "k", "after": "1h"})).await.expect(201);
    let why = api.get("/v1/tasks/1/why").await.expect(200);
    assert_eq!(why["state"], "scheduled");
    assert_eq!(why["reasons"][0]["reason"], "not_due");
    api.get("/v1/tasks/7/why").await.expect_problem(404, "not_found");
}

async fn a_task_is_cancelled_retried_moved_and_killed(api: Api) {
    api.submit("k").await;
    let act = async |verb: &str, body: Value| api.post(&format!("/v1/tasks/1/{verb}"), body).await.expect(200);
    assert_eq!(act("cancel", json!({})).await["effect"], "ended");
    assert_eq!(act("retry", json!({})).await["state"], "waiting");
    assert_eq!(act("move", json!({"queue": "other"})).await["effect"], "moved");
    assert_eq!(api.get("/v1/tasks/1").await.expect(200)["queue"], "other");
    assert_eq!(act("kill", json!({})).await["state"], "dead");
    api.post("/v1/tasks", json!({"kind": "k", "after": "1h"})).await.expect(201);
    assert_eq!(api.post("/v1/tasks/2/run", json!({})).await.expect(200)["state"], "waiting");
}

async fn an_attempt_is_completed_externally(api: Api) {
    let engine = api.engine().await;
    engine.handle("later", |_| async { Err::<(), _>(Failure::await_completion()) });
    for _ in 0..2 {
        api.submit("later").await;
    }
    let running = run(&engine);
    let after = api.get("/v1/events?ends=true").await.expect(200)["next"].as_str().unwrap().to_owned();
    for id in ["1", "2"] {
        blocked(&api, id).await;
    }
    api.post("/v1/tasks/1/extend", json!({"within": "1h"})).await.expect(200);
    api.post("/v1/tasks/1/complete", json!({"token": "2.1"})).await.expect_problem(422, "invalid");
    let completed = api.post("/v1/tasks/1/complete", json!({"token": "1.1", "result": {"ok": true}})).await.expect(200);
    assert_eq!(completed["state"], "completed");
    assert_eq!(api.get("/v1/tasks/1/result").await.json(), json!({"ok": true}));
    let failed = api.post("/v1/tasks/2/fail", json!({"error": "declined", "permanent": true})).await.expect(200);
    assert_eq!((&failed["state"], &failed["error"]), (&json!("failed"), &json!("declined")));
    let ends = api.get(&format!("/v1/events?ends=true&after={after}")).await.expect(200);
    assert_eq!(ends["events"].as_array().unwrap().len(), 2, "{ends}");
    engine.stop();
    running.await.unwrap();
}

/// Waits until a task is blocked.
async fn blocked(api: &Api, id: &str) {
    let mut after = String::new();
    loop {
        let page = api.get(&format!("/v1/tasks/{id}/events?wait=10s{after}")).await.expect(200);
        let events = page["events"].as_array().unwrap();
        if events.iter().any(|event| event["change"] == "blocked") {
            return;
        }
        after = format!("&after={}", page["next"].as_str().unwrap());
    }
}

async fn failed_attempts_are_listed(api: Api) {
    let engine = api.engine().await;
    engine.handle("bad", |_| async { Err::<(), _>(Failure::permanent("no such file")) });
    let running = run(&engine);
    let request = api.request("POST", "/v1/tasks").header("prefer", "wait=30").json(&json!({"kind": "bad"}));
    assert_eq!(api.send(request).await.expect(200)["error"], "no such file");
    let attempts = api.get("/v1/tasks/1/attempts").await.expect(200);
    assert_eq!(attempts["items"][0]["message"], "no such file");
    engine.stop();
    running.await.unwrap();
}

async fn many_tasks_are_changed_at_once(api: Api) {
    let tasks: Vec<_> = (0..1001).map(|_| json!({"kind": "k"})).collect();
    api.post("/v1/tasks:batch", json!({"tasks": tasks})).await.expect(201);
    api.submit("other").await;
    let filter = json!({"kind": "k"});
    let dry = api.post("/v1/tasks:cancel", json!({"filter": filter, "dry_run": true})).await.expect(200);
    assert_eq!((&dry["selected"], &dry["changed"]), (&json!(1001), &json!(0)));
    let problem = api.post("/v1/tasks:cancel", json!({"filter": filter})).await.expect_problem(409, "conflict");
    assert_eq!(problem["field"], "confirm");
    let done = api.post("/v1/tasks:cancel", json!({"filter": filter, "confirm": 1001})).await.expect(200);
    assert_eq!(done["changed"], 1001);
    assert_eq!(api.get("/v1/tasks?state=waiting").await.expect(200)["items"].as_array().unwrap().len(), 1);
    let gone = api.post("/v1/tasks:delete", json!({"filter": {"kind": "other"}})).await.expect(200);
    assert_eq!(gone["changed"], 1);
    api.post("/v1/tasks:retry", json!({"filter": {"limit": 1}})).await.expect_problem(422, "invalid");
}

/// Shows: W8
async fn a_page_of_tasks_ends_after_its_bytes(api: Api) {
    let payload = "x".repeat(900 * 1024);
    for _ in 0..7 {
        api.post("/v1/tasks", json!({"kind": "k", "payload": payload})).await.expect(201);
    }
    let (mut ids, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = api.get(&format!("/v1/tasks?payloads=true&limit=100{cursor}")).await;
        assert!(page.body.len() < bounds::PAGE_BYTES + 1024 * 1024, "{} bytes", page.body.len());
        let page = page.expect(200);
        ids.extend(page["items"].as_array().unwrap().iter().map(|task| task["id"].as_str().unwrap().to_owned()));
        let Some(next) = page["next"].as_str() else { break };
        cursor = format!("&cursor={next}");
    }
    assert_eq!(ids, ["7", "6", "5", "4", "3", "2", "1"]);
}
