//! Idempotency keys.

use std::time::Duration;

use onward_server::http::Role;
use onward_store::{DocumentQuery, Name, Page, StoreReads as _, TaskFilter};
use serde_json::{Value, json};

use crate::api::Api;
use crate::client::{Request, Response};

on_every_store! {
    a_repeated_submit_returns_the_first_task,
    a_repeated_submit_with_another_body_is_refused,
    concurrent_repeats_submit_one_task,
    a_repeated_batch_returns_the_first_tasks,
    a_repeated_duplicate_returns_the_existing_task,
    a_repeated_start_returns_the_first_orchestration,
    keys_of_different_owners_are_different,
    a_repeat_after_the_removal_of_the_task_is_refused,
    a_path_that_creates_nothing_takes_no_key,
    old_records_are_pruned_in_passing,
    a_repeat_returns_the_first_outcome_word,
    a_task_with_all_its_tags_takes_a_key,
}

fn submit(api: &Api, path: &str, key: &str, body: &Value) -> Request {
    api.request("POST", path).header("idempotency-key", key).json(body)
}

async fn send(api: &Api, body: &Value) -> Response {
    api.send(submit(api, "/v1/tasks", "one", body)).await
}

async fn tasks(api: &Api) -> usize {
    api.store.tasks(TaskFilter::default(), Page::default()).await.unwrap().tasks.len()
}

/// Shows: W8
async fn a_repeated_submit_returns_the_first_task(api: Api) {
    let body = json!({"kind": "k", "tags": {"a": "b"}});
    let first = send(&api, &body).await.expect(201);
    api.submit("between").await;
    assert_eq!(send(&api, &body).await.expect(201), first);
    assert_eq!(tasks(&api).await, 2);
}

async fn a_repeated_submit_with_another_body_is_refused(api: Api) {
    send(&api, &json!({"kind": "k"})).await.expect(201);
    send(&api, &json!({"kind": "other"})).await.expect_problem(422, "idempotency_mismatch");
    assert_eq!(tasks(&api).await, 1);
}

async fn concurrent_repeats_submit_one_task(api: Api) {
    let body = json!({"kind": "k"});
    let sent = futures_util::future::join_all((0..16).map(|_| send(&api, &body))).await;
    let ids: Vec<_> = sent.into_iter().map(|response| response.expect(201)["id"].clone()).collect();
    assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
    assert_eq!(tasks(&api).await, 1);
}

async fn a_repeated_batch_returns_the_first_tasks(api: Api) {
    api.post("/v1/tasks", json!({"kind": "k", "key": "taken"})).await.expect(201);
    let body = json!({"tasks": [{"kind": "a"}, {"kind": "k", "key": "taken"}, {"kind": "k", "key": "new"}]});
    let batch = || api.send(submit(&api, "/v1/tasks:batch", "one", &body));
    let first = batch().await.expect(201);
    assert_eq!(first["tasks"][1]["outcome"], "duplicate");
    assert_eq!(batch().await.expect(201), first);
    assert_eq!(tasks(&api).await, 3);
}

async fn a_repeated_duplicate_returns_the_existing_task(api: Api) {
    let body = json!({"kind": "k", "key": "taken"});
    api.post("/v1/tasks", body.clone()).await.expect(201);
    let first = send(&api, &body).await.expect(200);
    assert_eq!(send(&api, &body).await.expect(200), first);
}

async fn a_repeated_start_returns_the_first_orchestration(api: Api) {
    let body = json!({"kind": "order", "payload": 1});
    let start = || api.send(submit(&api, "/v1/orchestrations", "one", &body));
    let first = start().await.expect(201);
    assert_eq!(start().await.expect(201), first);
    assert_eq!(tasks(&api).await, 1);
}

async fn keys_of_different_owners_are_different(api: Api) {
    let body = json!({"kind": "k"});
    send(&api, &body).await.expect(201);
    let other = Request::new("POST", "/v1/tasks").key(api.key(Role::Operator)).header("idempotency-key", "one");
    assert_eq!(api.send(other.json(&body)).await.expect(201)["id"], "2");
}

async fn a_repeat_after_the_removal_of_the_task_is_refused(api: Api) {
    send(&api, &json!({"kind": "k"})).await.expect(201);
    api.post("/v1/tasks:delete", json!({"filter": {"kind": "k"}})).await.expect(200);
    send(&api, &json!({"kind": "k"})).await.expect_problem(409, "idempotency_result_gone");
}

async fn a_path_that_creates_nothing_takes_no_key(api: Api) {
    api.submit("k").await;
    let request = submit(&api, "/v1/tasks/1/cancel", "one", &json!({}));
    assert_eq!(api.send(request).await.expect_problem(422, "invalid")["field"], "Idempotency-Key");
    let long = "x".repeat(256);
    api.send(submit(&api, "/v1/tasks", &long, &json!({"kind": "k"}))).await.expect_problem(422, "invalid");
}

/// Returns the number of idempotency and audit records.
async fn records(api: &Api) -> usize {
    let shards = (0..16).map(|shard| format!("onward.request-{shard:x}"));
    let mut count = 0;
    for collection in shards.chain(["onward.audit".to_owned()]) {
        let query = DocumentQuery::new(Name::new(collection).unwrap());
        count += api.store.documents(query).await.unwrap().documents.len();
    }
    count
}

async fn old_records_are_pruned_in_passing(api: Api) {
    for key in 0..10 {
        api.send(submit(&api, "/v1/tasks", &key.to_string(), &json!({"kind": "k"}))).await.expect(201);
    }
    api.post("/v1/tasks/1/cancel", json!({})).await.expect(200);
    assert_eq!(records(&api).await, 11);
    api.clock.advance(Duration::from_secs(91 * 24 * 3600));
    // Each look is at one of seventeen collections, and happens beside a request.
    for _ in 0..1000 {
        api.clock.advance(Duration::from_secs(10));
        api.submit("k").await;
        if records(&api).await == 0 {
            return;
        }
    }
    panic!("{} records are left", records(&api).await);
}

/// Shows: W8
async fn a_repeat_returns_the_first_outcome_word(api: Api) {
    api.post("/v1/tasks", json!({"kind": "k", "key": "a", "priority": 10})).await.expect(201);
    api.post("/v1/tasks", json!({"kind": "k", "key": "b"})).await.expect(201);
    let raised = json!({"kind": "k", "key": "a", "priority": 200});
    let superseded = json!({"kind": "k", "key": "b", "on_duplicate": "supersede"});
    let rejected = json!({"kind": "k", "key": "a", "on_duplicate": "reject"});
    for (key, body) in [("1", raised), ("2", superseded), ("3", rejected)] {
        let first = api.send(submit(&api, "/v1/tasks", key, &body)).await;
        let (status, first) = (first.status, first.json());
        assert!(!matches!(first["outcome"].as_str(), None | Some("inserted" | "duplicate")), "{first}");
        let again = api.send(submit(&api, "/v1/tasks", key, &body)).await;
        assert_eq!((again.status, again.json()), (status, first));
    }
}

/// Shows: W8
async fn a_task_with_all_its_tags_takes_a_key(api: Api) {
    let tags: serde_json::Map<String, Value> = (0..32).map(|tag| (format!("t{tag}"), json!("v"))).collect();
    let body = json!({"kind": "k", "tags": tags});
    let first = send(&api, &body).await.expect(201);
    api.submit("between").await;
    assert_eq!(send(&api, &body).await.expect(201), first);
    assert_eq!(tasks(&api).await, 2);
}
