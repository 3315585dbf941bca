//! Orchestrations whose code runs in another engine: histories, trees, updates, queries and forks.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use onward::orchestration::{OrchestrationContext, OrchestrationOptions};
use onward::{Engine, Failure};
use onward_server::http::{Role, ServerOptions, bounds};
use onward_store::{NewTask, StoreReads as _, TaskId, Write};
use serde_json::{Value, json};

use crate::api::{Api, run};
use crate::client::{Request, Response};

on_every_store! {
    an_update_returns_the_reply_of_the_code,
    a_repeated_update_is_carried_out_once,
    an_update_without_a_worker_is_stored_and_answered_later,
    an_update_to_an_ended_orchestration_is_refused,
    a_repeated_signal_is_sent_once,
    a_query_needs_a_server_with_the_code,
    a_history_is_read_in_pages,
    a_history_hides_payloads_from_viewers,
    a_page_of_another_generation_is_refused,
    a_page_of_a_history_ends_after_its_bytes,
    a_tree_has_children_of_children,
    a_large_tree_is_cut,
    a_fork_begins_with_a_part_of_the_history,
    a_reset_replaces_the_original,
}

/// A counter: updates change it, and a query reads it.
async fn counter(payload: Value, context: OrchestrationContext) -> Result<Value, Failure> {
    let count = Arc::new(AtomicI64::new(0));
    let shown = Arc::clone(&count);
    context.on_query("count", move |(): ()| Ok(shown.load(Ordering::Relaxed)));
    if let Some(activity) = payload.as_str().filter(|kind| *kind != "again") {
        drop(context.activity_by_name(activity, &Value::Null).await?);
    }
    let updates = context.updates::<i64>("add")?;
    loop {
        let update = updates.next().await;
        match *update.payload() {
            0 => update.refuse("nothing to add"),
            END => {
                update.accept(&"the end")?;
                return Ok(json!(count.load(Ordering::Relaxed)));
            }
            AGAIN => {
                update.accept(&"again")?;
                return Err(context.continue_as_new(&"again"));
            }
            added => update.accept(&(count.fetch_add(added, Ordering::Relaxed) + added))?,
        }
    }
}

/// The update with which the counter ends.
const END: i64 = -1;

/// The update with which the counter continues as new.
const AGAIN: i64 = -2;

/// Opens an engine with the code, and with the activities.
async fn with_code(api: &Api) -> Engine {
    let engine = api.engine().await;
    engine.orchestrate_json("counter", OrchestrationOptions::default(), counter);
    engine.handle_json("leaf", |_, _| async { Ok(json!("leaf")) });
    engine
}

async fn start(api: &Api, payload: Value) -> String {
    let started = api.post("/v1/orchestrations", json!({"kind": "counter", "payload": payload})).await.expect(201);
    started["id"].as_str().unwrap().to_owned()
}

async fn add(api: &Api, id: &str, number: i64) -> Response {
    api.post(&format!("/v1/orchestrations/{id}/updates/add"), json!(number)).await
}

/// Shows: W8
async fn an_update_returns_the_reply_of_the_code(api: Api) {
    let engine = with_code(&api).await;
    let running = run(&engine);
    let id = start(&api, Value::Null).await;
    let first = add(&api, &id, 3).await.expect(200);
    assert_eq!((&first["reply"], &first["is_answered"]), (&json!(3), &json!(true)));
    assert_eq!(add(&api, &id, 4).await.expect(200)["reply"], 7);
    let refused = add(&api, &id, 0).await.expect_problem(409, "update_refused");
    assert!(refused["detail"].as_str().unwrap().contains("nothing to add"), "{refused}");
    let again = api.get(&format!("/v1/orchestrations/{id}/updates/add/{}", first["update"].as_str().unwrap())).await;
    assert_eq!(again.expect(200)["reply"], 3);
    // Replies are no values that the code published.
    assert_eq!(api.get(&format!("/v1/orchestrations/{id}")).await.expect(200)["values"], json!({}));
    engine.stop();
    running.await.unwrap();
}

/// Shows: W8
async fn a_repeated_update_is_carried_out_once(api: Api) {
    let engine = with_code(&api).await;
    let running = run(&engine);
    let id = start(&api, Value::Null).await;
    let update = || {
        let request = api.request("POST", &format!("/v1/orchestrations/{id}/updates/add"));
        request.header("idempotency-key", "one").json(&json!(3))
    };
    let first = api.send(update()).await.expect(200);
    assert_eq!(api.send(update()).await.expect(200), first);
    assert_eq!(add(&api, &id, 1).await.expect(200)["reply"], 4);
    engine.stop();
    running.await.unwrap();
}

async fn an_update_without_a_worker_is_stored_and_answered_later(api: Api) {
    let id = start(&api, Value::Null).await;
    let request = api.request("POST", &format!("/v1/orchestrations/{id}/updates/add"));
    let stored = api.send(request.header("prefer", "wait=0").json(&json!(5))).await;
    let location = stored.header("location").unwrap().to_owned();
    assert_eq!(stored.expect(202)["is_answered"], false);
    assert_eq!(api.get(&location).await.expect(202)["reply"], Value::Null);
    let engine = with_code(&api).await;
    let running = run(&engine);
    let waits = api.request("GET", &location).header("prefer", "wait=60");
    assert_eq!(api.send(waits).await.expect(200)["reply"], 5);
    engine.stop();
    running.await.unwrap();
}

async fn an_update_to_an_ended_orchestration_is_refused(api: Api) {
    let id = start(&api, Value::Null).await;
    api.post(&format!("/v1/orchestrations/{id}/terminate"), json!({"reason": "a test"})).await.expect(200);
    add(&api, &id, 1).await.expect_problem(409, "already_ended");
    let task = api.submit("k").await;
    add(&api, &task, 1).await.expect_problem(409, "conflict");
    add(&api, "99", 1).await.expect_problem(404, "not_found");
}

async fn a_repeated_signal_is_sent_once(api: Api) {
    let id = start(&api, Value::Null).await;
    for _ in 0..3 {
        let request = api.request("POST", &format!("/v1/orchestrations/{id}/signals/go"));
        api.send(request.header("idempotency-key", "one").json(&json!(1))).await.expect(204);
    }
    assert_eq!(api.store.instance(id.parse().unwrap()).await.unwrap().unwrap().waiting, 1);
}

/// Shows: W8
async fn a_query_needs_a_server_with_the_code(api: Api) {
    let engine = with_code(&api).await;
    let running = run(&engine);
    let id = start(&api, Value::Null).await;
    add(&api, &id, 3).await.expect(200);
    let path = format!("/v1/orchestrations/{id}/queries/count");
    let problem = api.post(&path, Value::Null).await.expect_problem(409, "code_elsewhere");
    assert!(problem["remedy"].as_str().unwrap().contains("published"), "{problem}");
    let mut options = ServerOptions::default();
    options.code = Some(engine.clone());
    let other = api.another(options).await;
    assert_eq!(other.post(&path, Value::Null).await.expect(200), 3);
    other.post(&format!("/v1/orchestrations/{id}/queries/none"), Value::Null).await.expect_problem(422, "invalid");
    engine.stop();
    running.await.unwrap();
}

/// Shows: W8
async fn a_history_is_read_in_pages(api: Api) {
    let engine = with_code(&api).await;
    let running = run(&engine);
    let id = start(&api, json!("leaf")).await;
    for number in 1..4 {
        add(&api, &id, number).await.expect(200);
    }
    let path = format!("/v1/orchestrations/{id}/history");
    let whole = api.get(&format!("{path}?limit=1000")).await.expect(200);
    let mut read = Vec::new();
    let mut cursor = String::new();
    loop {
        let page = api.get(&format!("{path}?limit=3{cursor}")).await.expect(200);
        read.extend(page["items"].as_array().unwrap().clone());
        let Some(next) = page["next"].as_str() else { break };
        cursor = format!("&cursor={next}");
    }
    assert_eq!((&json!(read), &whole["next"]), (&whole["items"], &Value::Null));
    let sorts: Vec<&str> = read.iter().map(|event| event["event"].as_str().unwrap()).collect();
    // An update that comes before the first turn is carried to it, and stands before the start.
    let place = |sort| sorts.iter().position(|other| *other == sort);
    assert!(place("started").is_some() && place("started") < place("task_submitted"), "{sorts:?}");
    assert!((0..).zip(&read).all(|(number, event)| event["number"] == json!(number)), "{read:?}");
    let ended = read.iter().find(|event| event["event"] == "task_ended").unwrap();
    assert_eq!((&ended["state"], &ended["content"]["json"]), (&json!("completed"), &json!("leaf")));
    engine.stop();
    running.await.unwrap();
}

/// Shows: W8
async fn a_history_hides_payloads_from_viewers(api: Api) {
    let engine = with_code(&api).await;
    let running = run(&engine);
    let id = start(&api, Value::Null).await;
    add(&api, &id, 424_242).await.expect(200);
    let read = async |role: Role| {
        let request = Request::new("GET", &format!("/v1/orchestrations/{id}/history")).key(api.key(role));
        api.send(request).await.expect(200).to_string()
    };
    assert!(read(Role::Operator).await.contains("424242"));
    assert!(!read(Role::Viewer).await.contains("424242"));
    engine.stop();
    running.await.unwrap();
}

async fn a_page_of_another_generation_is_refused(api: Api) {
    let engine = with_code(&api).await;
    let running = run(&engine);
    let id = start(&api, Value::Null).await;
    add(&api, &id, 3).await.expect(200);
    let path = format!("/v1/orchestrations/{id}/history?limit=1");
    let next = api.get(&path).await.expect(200)["next"].as_str().unwrap().to_owned();
    add(&api, &id, AGAIN).await.expect(200);
    let problem = api.get(&format!("{path}&cursor={next}")).await.expect_problem(409, "conflict");
    assert_eq!(problem["field"], "cursor");
    engine.stop();
    running.await.unwrap();
}

async fn a_page_of_a_history_ends_after_its_bytes(api: Api) {
    let engine = with_code(&api).await;
    let running = run(&engine);
    let id = start(&api, Value::Null).await;
    let large = json!("x".repeat(900 * 1024));
    for _ in 0..7 {
        api.post(&format!("/v1/orchestrations/{id}/signals/large"), large.clone()).await.expect(204);
    }
    add(&api, &id, 3).await.expect(200);
    let path = format!("/v1/orchestrations/{id}/history?limit=1000");
    let page = api.get(&path).await;
    assert!(page.body.len() < bounds::PAGE_BYTES + 1024 * 1024, "{} bytes", page.body.len());
    let next = page.expect(200)["next"].as_str().unwrap().to_owned();
    assert_eq!(api.get(&format!("{path}&cursor={next}")).await.expect(200)["next"], Value::Null);
    engine.stop();
    running.await.unwrap();
}

/// Returns the write of a task with a parent.
fn child(parent: i64) -> Write {
    let mut new = NewTask::new("leaf").unwrap();
    new.parent = Some(TaskId(parent));
    Write::Submit(Box::new(new))
}

/// Shows: W8
async fn a_tree_has_children_of_children(api: Api) {
    let root = start(&api, Value::Null).await;
    api.store.apply(vec![child(1), child(1), child(2)]).await.unwrap();
    let tree = api.get(&format!("/v1/orchestrations/{root}/tree")).await.expect(200);
    let parents: Vec<_> = tree["tasks"].as_array().unwrap().iter().map(|task| (&task["id"], &task["parent"])).collect();
    let expected = json!([["1", null], ["2", "1"], ["3", "1"], ["4", "2"]]);
    assert_eq!((json!(parents), &tree["cut"]), (expected, &json!([])));
}

async fn a_large_tree_is_cut(api: Api) {
    let root = start(&api, Value::Null).await;
    api.store.apply((0..bounds::TREE_READS + 5).map(|_| child(1)).collect()).await.unwrap();
    let tree = api.get(&format!("/v1/orchestrations/{root}/tree")).await.expect(200);
    assert_eq!(tree["tasks"].as_array().unwrap().len(), bounds::TREE_READS + 6);
    // The children of the root and of all but the last tasks were read.
    assert_eq!(tree["cut"].as_array().unwrap().len(), 6, "{}", tree["cut"]);
    api.store.apply((0..bounds::TREE_TASKS).map(|_| child(1)).collect()).await.unwrap();
    let tree = api.get(&format!("/v1/orchestrations/{root}/tree")).await.expect(200);
    assert_eq!(tree["tasks"].as_array().unwrap().len(), bounds::TREE_TASKS);
    assert!(tree["cut"].as_array().unwrap().contains(&json!(root)), "{}", tree["cut"]);
}

/// Returns the number of events of a history.
async fn length(api: &Api, id: &str) -> u64 {
    api.get(&format!("/v1/orchestrations/{id}")).await.expect(200)["history_events"].as_u64().unwrap()
}

/// Shows: W8
async fn a_fork_begins_with_a_part_of_the_history(api: Api) {
    let engine = with_code(&api).await;
    let running = run(&engine);
    let id = start(&api, Value::Null).await;
    add(&api, &id, 3).await.expect(200);
    let events = length(&api, &id).await;
    add(&api, &id, 4).await.expect(200);
    let path = format!("/v1/orchestrations/{id}/fork");
    let fork = || api.request("POST", &path).header("idempotency-key", "one").json(&json!({"events": events}));
    let forked = api.send(fork()).await.expect(201)["id"].as_str().unwrap().to_owned();
    assert_eq!(api.send(fork()).await.expect(201)["id"], *forked);
    assert_eq!(add(&api, &forked, 10).await.expect(200)["reply"], 13);
    assert_eq!(add(&api, &id, 10).await.expect(200)["reply"], 17);
    api.post(&path, json!({"events": 0})).await.expect_problem(422, "invalid");
    api.post(&path, json!({"events": 100_000})).await.expect_problem(422, "invalid");
    engine.stop();
    running.await.unwrap();
}

async fn a_reset_replaces_the_original(api: Api) {
    let engine = with_code(&api).await;
    let running = run(&engine);
    let body = json!({"kind": "counter", "key": "A"});
    let id = api.post("/v1/orchestrations", body.clone()).await.expect(201)["id"].as_str().unwrap().to_owned();
    add(&api, &id, 3).await.expect(200);
    let events = length(&api, &id).await;
    let reset = json!({"events": events, "reason": "a wrong turn"});
    let new = api.post(&format!("/v1/orchestrations/{id}/reset"), reset).await.expect(201)["id"].clone();
    assert_eq!(api.get(&format!("/v1/tasks/{id}")).await.expect(200)["error"], "a wrong turn");
    assert_eq!(api.post("/v1/orchestrations", body).await.expect(200)["id"], new);
    engine.stop();
    running.await.unwrap();
}
