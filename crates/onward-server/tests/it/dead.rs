//! Dead letters by their cause.

use onward::Failure;
use onward_server::http::Role;
use serde_json::{Value, json};

use crate::api::{Api, run};
use crate::client::Request;

on_every_store! {
    dead_letters_are_grouped_by_kind_and_error,
    a_canary_retries_the_newest_task_alone,
    all_tasks_of_a_cause_are_retried,
    a_rate_holds_back_the_retries,
    a_task_whose_key_is_taken_is_skipped,
    a_cause_is_discarded_after_a_look,
    an_unknown_cause_is_not_found,
}

/// Makes a dead letter for each kind and error. Returns the ids.
async fn die(api: &Api, errors: &[(&str, &str)]) -> Vec<String> {
    let engine = api.engine().await;
    for (kind, _) in errors {
        engine.handle_json(kind, |error: Value, _| async move {
            Err::<Value, _>(Failure::retryable(error.as_str().unwrap_or_default()))
        });
    }
    let running = run(&engine);
    let mut ids = Vec::new();
    for (kind, error) in errors {
        let retry = json!({"attempts": 1, "backoff": {"constant": {"delay": "1s"}}});
        let task = json!({"kind": kind, "payload": error, "retry": retry, "queue": kind, "key": error});
        let id = api.post("/v1/tasks", task).await.expect(201)["id"].as_str().unwrap().to_owned();
        let ended = engine.wait(id.parse().unwrap()).await.unwrap();
        assert_eq!(ended.state.as_str(), "dead");
        api.clock.advance(std::time::Duration::from_secs(1));
        ids.push(id);
    }
    engine.stop();
    running.await.unwrap();
    ids
}

const ERRORS: [(&str, &str); 4] = [
    ("deliver", "HTTP 410 for order 1"),
    ("deliver", "HTTP 410 for order 22"),
    ("deliver", "HTTP 500 for order 3"),
    ("resize", "HTTP 410 for order 4"),
];

/// Returns the cause with most tasks.
async fn first_cause(api: &Api) -> String {
    api.get("/v1/dead").await.expect(200)["items"][0]["cause"].as_str().unwrap().to_owned()
}

async fn states(api: &Api, ids: &[String]) -> Vec<String> {
    let mut states = Vec::new();
    for id in ids {
        let task = api.get(&format!("/v1/tasks/{id}")).await.expect(200);
        states.push(task["state"].as_str().unwrap().to_owned());
    }
    states
}

/// Shows: W8
async fn dead_letters_are_grouped_by_kind_and_error(api: Api) {
    assert_eq!(api.get("/v1/dead").await.expect(200), json!({"items": [], "tasks": 0, "has_more": false}));
    let ids = die(&api, &ERRORS).await;
    let dead = api.get("/v1/dead").await.expect(200);
    assert_eq!((&dead["tasks"], dead["items"].as_array().unwrap().len()), (&json!(4), 3), "{dead}");
    let first = &dead["items"][0];
    assert_eq!((&first["kind"], &first["tasks"]), (&json!("deliver"), &json!(2)));
    assert_eq!((&first["error"], &first["sample"]), (&json!("HTTP 410 for order #"), &json!(ids[1])));
    assert_eq!(first["sample_error"], "HTTP 410 for order 22");
    assert_eq!(first["queues"], json!(["deliver"]));
    assert!(first["first_at"].as_str() < first["newest_at"].as_str(), "{first}");
    let one = api.get(&format!("/v1/dead/{}", first["cause"].as_str().unwrap())).await.expect(200);
    assert_eq!((&one["cause"], &one["ids"]), (first, &json!([ids[1], ids[0]])));
}

async fn a_canary_retries_the_newest_task_alone(api: Api) {
    let ids = die(&api, &ERRORS).await;
    let path = format!("/v1/dead/{}/canary", first_cause(&api).await);
    assert_eq!(api.post(&path, json!({})).await.expect(200)["id"], *ids[1]);
    assert_eq!(states(&api, &ids).await, ["dead", "waiting", "dead", "dead"]);
}

async fn all_tasks_of_a_cause_are_retried(api: Api) {
    let ids = die(&api, &ERRORS).await;
    let path = format!("/v1/dead/{}/retry", first_cause(&api).await);
    let wrong = api.post(&path, json!({"limit": 0})).await.expect_problem(422, "invalid");
    assert_eq!(wrong["field"], "limit");
    let fast = json!({"rate": {"tasks": 0, "per": "1s"}});
    assert_eq!(api.post(&path, fast).await.expect_problem(422, "invalid")["field"], "rate");
    let retried = api.post(&path, json!({"rate": {"tasks": 1000, "per": "1s"}})).await.expect(200);
    assert_eq!(retried, json!({"changed": 2, "skipped": 0, "left": 0}));
    assert_eq!(states(&api, &ids).await, ["waiting", "waiting", "dead", "dead"]);
}

async fn a_rate_holds_back_the_retries(api: Api) {
    let ids = die(&api, &ERRORS).await;
    let path = format!("/v1/dead/{}/retry", first_cause(&api).await);
    let slow = json!({"rate": {"tasks": 1, "per": "1h"}});
    assert_eq!(api.post(&path, slow).await.expect(200), json!({"changed": 1, "skipped": 0, "left": 1}));
    assert_eq!(states(&api, &ids[..2]).await, ["dead", "waiting"]);
}

async fn a_task_whose_key_is_taken_is_skipped(api: Api) {
    let ids = die(&api, &ERRORS).await;
    api.post("/v1/tasks", json!({"kind": "deliver", "key": ERRORS[1].1})).await.expect(201);
    let cause = first_cause(&api).await;
    api.post(&format!("/v1/dead/{cause}/canary"), json!({})).await.expect_problem(409, "conflict");
    let retried = api.post(&format!("/v1/dead/{cause}/retry"), json!({})).await.expect(200);
    assert_eq!(retried, json!({"changed": 1, "skipped": 1, "left": 0}));
    assert_eq!(states(&api, &ids[..2]).await, ["waiting", "dead"]);
}

async fn a_cause_is_discarded_after_a_look(api: Api) {
    let ids = die(&api, &ERRORS).await;
    let path = format!("/v1/dead/{}/discard", first_cause(&api).await);
    let looked = api.post(&path, json!({"dry_run": true})).await.expect(200);
    assert_eq!(looked, json!({"changed": 0, "skipped": 0, "left": 2}));
    let viewer = Request::new("POST", &path).key(api.key(Role::Viewer)).json(&json!({}));
    api.send(viewer).await.expect_problem(403, "forbidden");
    assert_eq!(api.post(&path, json!({})).await.expect(200)["changed"], 2);
    api.get(&format!("/v1/tasks/{}", ids[0])).await.expect_problem(404, "not_found");
    assert_eq!(states(&api, &ids[2..]).await, ["dead", "dead"]);
}

async fn an_unknown_cause_is_not_found(api: Api) {
    api.get("/v1/dead/0123456789abcdef").await.expect_problem(404, "not_found");
    for action in ["canary", "retry", "discard"] {
        let path = format!("/v1/dead/0123456789abcdef/{action}");
        api.post(&path, json!({})).await.expect_problem(404, "not_found");
    }
}
