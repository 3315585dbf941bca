//! Templates, runs and orchestrations.

use onward::Engine;
use onward_server::http::Role;
use serde_json::{Value, json};

use crate::api::{Api, run};
use crate::client::Request;

on_every_store! {
    a_template_is_checked_stored_compared_and_drawn,
    a_run_is_started_and_awaited,
    a_run_waits_for_a_signal,
    a_question_is_answered_by_those_whom_it_names,
    a_run_is_drawn,
    a_run_is_forked_and_compared_with_its_fork,
    the_critical_path_of_a_run_names_its_steps_in_order,
    a_published_event_is_read_by_its_position_in_the_stream,
    unused_templates_are_pruned,
    a_question_is_in_the_inbox_until_its_reply,
    an_action_on_a_run_is_checked,
    an_orchestration_is_started_signalled_and_terminated,
}

const GREETING: &str = "name: greeting\nversion: '1'\nsteps: {hello: {task: hello}}\n";

async fn put(api: &Api, name: &str, text: &str) -> crate::client::Response {
    let request = api.request("PUT", &format!("/v1/templates/{name}")).header("content-type", "application/yaml");
    api.send(request.body(text)).await
}

/// Shows: W8
async fn a_template_is_checked_stored_compared_and_drawn(api: Api) {
    let stored = put(&api, "greeting", GREETING).await.expect(200);
    assert_eq!((&stored["template"]["label"], &stored["template"]["is_newest"]), (&json!("1"), &json!(true)));
    let hash = put(&api, "greeting", GREETING).await.expect(200)["template"]["hash"].clone();
    assert_eq!(hash, stored["template"]["hash"]);
    let second = GREETING.replace("'1'", "'2'").replace("task: hello", "task: hi");
    put(&api, "greeting", &second).await.expect(200);
    put(&api, "other", GREETING).await.expect_problem(422, "invalid");
    let wrong = put(&api, "greeting", "steps: {a: {tusk: x}}\n").await.expect_problem(422, "invalid");
    assert!(wrong["detail"].as_str().unwrap().contains("tusk"), "{wrong}");
    let check = api.request("POST", "/v1/templates:check").body("steps: {a: {tusk: x}}\n");
    assert_eq!(api.send(check).await.expect(200)["errors"][0]["line"], 1);
    let first = api.get("/v1/templates/greeting@1").await.expect(200);
    assert_eq!(first["template"]["is_newest"], false);
    let page = api.get("/v1/templates?limit=1").await.expect(200);
    let next = page["next"].as_str().unwrap();
    assert_eq!(api.get(&format!("/v1/templates?cursor={next}")).await.expect(200)["next"], Value::Null);
    let diff = api.get("/v1/templates/greeting@2/diff?with=1").await.text();
    assert!(diff.contains("+") && diff.contains("hi"), "{diff}");
    assert!(api.get("/v1/templates/greeting/graph").await.text().contains("hello"));
    api.get("/v1/templates/none").await.expect_problem(404, "not_found");
}

async fn workflows(api: &Api) -> Engine {
    let engine = Engine::builder().store(api.store.clone()).runs_workflows().open().await.unwrap();
    engine.handle_json("hello", |_, _| async { Ok(json!("hello")) });
    engine
}

const TWO: &str = "name: two\nsteps: {a: {value: '${{ input }}', publishes: [{name: began}]}, b: {task: hello, \
                   depends_on: [a]}}\n";

/// Runs the template [`TWO`], and returns the id of the run.
async fn run_two(api: &Api) -> String {
    put(api, "two", TWO).await.expect(200);
    let id =
        api.post("/v1/templates/two/runs", json!({"input": 1})).await.expect(201)["id"].as_str().unwrap().to_owned();
    workflows(api).await.run_until_idle().await.unwrap();
    id
}

/// Shows: W8
async fn a_run_is_forked_and_compared_with_its_fork(api: Api) {
    let first = run_two(&api).await;
    let fork = format!("/v1/runs/{first}/fork");
    api.post(&fork, json!({"from": []})).await.expect_problem(422, "invalid");
    api.post(&fork, json!({"from": ["c"]})).await.expect_problem(422, "invalid");
    let request =
        || api.request("POST", &fork).header("idempotency-key", "f").json(&json!({"from": ["b"], "input": 2}));
    let second = api.send(request()).await.expect(201)["id"].as_str().unwrap().to_owned();
    assert_eq!(api.send(request()).await.expect(201)["id"], *second);
    workflows(&api).await.run_until_idle().await.unwrap();
    let compared = api.get(&format!("/v1/runs/{first}/compare?with={second}")).await.expect(200);
    assert_eq!((&compared["one"]["input"], &compared["other"]["input"]), (&json!(1), &json!(2)));
    let (a, b) = (&compared["steps"][0], &compared["steps"][1]);
    assert_eq!((&a["name"], &a["differs"], &a["other"]["result"]), (&json!("a"), &json!(false), &json!(1)));
    assert_eq!((&b["name"], &b["one"]["state"]), (&json!("b"), &json!("completed")));
    let input = |run: &str| b[run]["input"]["input"].clone();
    assert_eq!((input("one"), input("other")), (json!(1), json!(2)), "{b}");
    api.get(&format!("/v1/runs/{first}/compare?with=x")).await.expect_problem(422, "invalid");
    api.get(&format!("/v1/runs/{first}/compare?with=999")).await.expect_problem(404, "not_found");
}

/// Shows: W8
async fn the_critical_path_of_a_run_names_its_steps_in_order(api: Api) {
    let run = run_two(&api).await;
    let path = api.get(&format!("/v1/runs/{run}/critical-path")).await.expect(200);
    let steps: Vec<_> =
        path["steps"].as_array().unwrap().iter().map(|step| (step["name"].clone(), step["kind"].clone())).collect();
    assert_eq!(steps, [(json!("a"), json!("value")), (json!("b"), json!("task"))], "{path}");
    assert_eq!((&path["id"], &path["phase"], &path["others"]), (&json!(run), &json!("completed"), &json!([])));
    api.get("/v1/runs/999/critical-path").await.expect_problem(404, "not_found");
}

/// Shows: W8, W11
async fn a_published_event_is_read_by_its_position_in_the_stream(api: Api) {
    let run = run_two(&api).await;
    let page = api.get("/v1/events").await.expect(200);
    let event = page["events"].as_array().unwrap().iter().find(|event| event["change"] == "published").unwrap();
    let position = event["position"].as_u64().unwrap();
    let read = api.get(&format!("/v1/runs/{run}/published/{position}")).await.expect(200);
    assert_eq!(read, json!({"run": run, "name": "began", "payload": 1}));
    for other in ["0", "999", "x"] {
        api.get(&format!("/v1/runs/{run}/published/{other}")).await.expect_problem(404, "not_found");
    }
}

/// Shows: W8
async fn unused_templates_are_pruned(api: Api) {
    put(&api, "greeting", GREETING).await.expect(200);
    put(&api, "greeting", &GREETING.replace("'1'", "'2'")).await.expect(200);
    let prune = "/v1/templates:prune";
    assert_eq!(api.post(prune, json!({})).await.expect(200)["templates"], json!([]));
    let dry = api.post(prune, json!({"older_than": "0s", "dry_run": true})).await.expect(200);
    assert_eq!(dry["templates"][0]["label"], "1");
    api.get("/v1/templates/greeting@1").await.expect(200);
    assert_eq!(api.post(prune, json!({"older_than": "0s"})).await.expect(200), dry);
    api.get("/v1/templates/greeting@1").await.expect_problem(404, "not_found");
    api.post(prune, json!({"older_than": "soon"})).await.expect_problem(422, "invalid");
}

/// Shows: W8
async fn a_run_is_started_and_awaited(api: Api) {
    put(&api, "greeting", GREETING).await.expect(200);
    let engine = workflows(&api).await;
    let running = run(&engine);
    let start = api.request("POST", "/v1/templates/greeting/runs").header("prefer", "wait=30s");
    let ended = api.send(start.header("idempotency-key", "one").json(&json!({}))).await.expect(200);
    assert_eq!(ended["state"], "completed", "{ended}");
    let id = ended["id"].as_str().unwrap();
    let shown = api.get(&format!("/v1/runs/{id}")).await.expect(200);
    assert_eq!((&shown["workflow"], &shown["steps"][0]["state"]), (&json!("greeting"), &json!("completed")));
    let again = api.request("POST", "/v1/templates/greeting/runs").header("idempotency-key", "one").json(&json!({}));
    assert_eq!(api.send(again).await.expect(201)["id"], *id);
    let runs = api.get("/v1/runs?workflow=greeting&state=completed").await.expect(200);
    assert_eq!(runs["items"].as_array().unwrap().len(), 1);
    api.post("/v1/templates/none/runs", json!({})).await.expect_problem(404, "not_found");
    engine.stop();
    running.await.unwrap();
}

async fn a_run_waits_for_a_signal(api: Api) {
    put(&api, "ask", "name: ask\nsteps: {approval: {signal: approved}}\n").await.expect(200);
    let engine = workflows(&api).await;
    let running = run(&engine);
    let id = api.post("/v1/templates/ask/runs", json!({})).await.expect(201)["id"].as_str().unwrap().to_owned();
    api.post(&format!("/v1/runs/{id}/signals/other"), json!(1)).await.expect_problem(422, "invalid");
    api.post(&format!("/v1/runs/{id}/signals/approved"), json!({"by": "ada"})).await.expect(204);
    let record = engine.wait(id.parse().unwrap()).await.unwrap();
    assert_eq!(record.state.as_str(), "completed");
    engine.stop();
    running.await.unwrap();
}

/// Shows: W5
async fn a_question_is_answered_by_those_whom_it_names(api: Api) {
    let text = "name: ask\nsteps: {approval: {signal: approved, ask: {title: Ship?, who: [developer]}}}\n";
    put(&api, "ask", text).await.expect(200);
    let id = api.post("/v1/templates/ask/runs", json!({})).await.expect(201)["id"].as_str().unwrap().to_owned();
    let send = async |role: Role, of: &str| {
        let request = Request::new("POST", &format!("/v1/{of}/{id}/signals/approved")).key(api.key(role));
        api.send(request.json(&json!(true))).await
    };
    for of in ["runs", "orchestrations"] {
        let problem = send(Role::Operator, of).await.expect_problem(403, "forbidden");
        assert!(problem["detail"].as_str().unwrap().contains("is for developer"), "{problem}");
        send(Role::Developer, of).await.expect(204);
    }
}

/// Shows: W8
async fn a_run_is_drawn(api: Api) {
    let text = concat!(
        "name: fork\nsteps:\n  a: {task: hello}\n  b: {task: hello, depends_on: [a]}\n",
        "  c: {task: hello, depends_on: [a]}\n  d: {task: hello, depends_on: [a, b, c]}\n",
    );
    put(&api, "fork", text).await.expect(200);
    let id = api.post("/v1/templates/fork/runs", json!({})).await.expect(201)["id"].as_str().unwrap().to_owned();
    let graph = api.get(&format!("/v1/runs/{id}/graph")).await.expect(200);
    let nodes = graph["nodes"].as_array().unwrap();
    let node = |name: &str| nodes.iter().find(|node| node["step"]["name"] == name).unwrap();
    let columns: Vec<f64> = ["a", "b", "c", "d"].map(|name| node(name)["x"].as_f64().unwrap()).into();
    assert_eq!(columns, [0.0, 1.0, 1.0, 2.0], "{graph}");
    assert_eq!((&graph["columns"], graph["edges"].as_array().unwrap().len()), (&json!(3), 5));
    let long = graph["edges"].as_array().unwrap().iter().find(|edge| edge["from"] == "a" && edge["to"] == "d").unwrap();
    assert_eq!(long["waypoints"].as_array().unwrap().len(), 1, "{graph}");
    assert_eq!(node("a")["step"]["state"], "pending");
}

/// Shows: W8
async fn a_question_is_in_the_inbox_until_its_reply(api: Api) {
    let text =
        "name: ask\nsteps:\n  approval:\n    signal: approved\n    ask: {title: Ship it?, schema: {type: object}}\n";
    put(&api, "ask", text).await.expect(200);
    let engine = workflows(&api).await;
    let running = run(&engine);
    let id = api.post("/v1/templates/ask/runs", json!({})).await.expect(201)["id"].as_str().unwrap().to_owned();
    let task = id.parse().unwrap();
    engine.wait_for_status(task, |status| !status.awaits().is_empty()).await.unwrap();
    let question = api.get("/v1/inbox").await.expect(200)["items"][0].clone();
    assert_eq!((&question["run"], &question["step"]), (&json!(id), &json!("approval")), "{question}");
    assert_eq!((&question["question"], &question["signal"]), (&json!("Ship it?"), &json!("approved")));
    assert_eq!(question["reply_schema"], json!({"type": "object"}));
    api.post(&format!("/v1/runs/{id}/signals/approved"), json!({"yes": true})).await.expect(204);
    engine.wait(task).await.unwrap();
    assert_eq!(api.get("/v1/inbox").await.expect(200)["items"], json!([]));
    engine.stop();
    running.await.unwrap();
}

async fn an_action_on_a_run_is_checked(api: Api) {
    put(&api, "greeting", GREETING).await.expect(200);
    let id = api.post("/v1/templates/greeting/runs", json!({})).await.expect(201)["id"].as_str().unwrap().to_owned();
    let act = async |body: Value| api.post(&format!("/v1/runs/{id}/actions"), body).await;
    act(json!({"action": "skip"})).await.expect_problem(422, "invalid");
    assert_eq!(act(json!({"action": "retry", "step": "a"})).await.expect_problem(422, "invalid")["field"], "step");
    act(json!({"action": "dance"})).await.expect_problem(400, "malformed");
    act(json!({"action": "cancel", "reason": "a mistake"})).await.expect(204);
    api.post(&format!("/v1/runs/{id}/pause"), json!({})).await.expect(204);
    api.post(&format!("/v1/runs/{id}/resume"), json!({})).await.expect(204);
    let task = api.submit("k").await;
    api.get(&format!("/v1/runs/{task}")).await.expect_problem(404, "not_found");
}

/// Shows: W8
async fn an_orchestration_is_started_signalled_and_terminated(api: Api) {
    let start = json!({"kind": "order", "key": "A", "payload": {"item": 1}});
    assert_eq!(api.post("/v1/orchestrations", start.clone()).await.expect(201)["id"], "1");
    assert_eq!(api.post("/v1/orchestrations", start).await.expect(200)["outcome"], "duplicate");
    api.post("/v1/orchestrations/1/signals/paid", json!(5)).await.expect(204);
    // A client such as curl declares another content type.
    let signal = || api.request("POST", "/v1/orchestrations/1/signals/paid");
    api.send(signal().header("content-type", "application/x-www-form-urlencoded").body("5")).await.expect(204);
    api.send(signal().body("5")).await.expect(204);
    api.send(signal().body("paid")).await.expect_problem(400, "malformed");
    api.post("/v1/orchestrations/1/pause", json!({})).await.expect(204);
    assert_eq!(api.get("/v1/orchestrations/1").await.expect(200)["paused"], true);
    api.post("/v1/orchestrations/1/resume", json!({})).await.expect(204);
    let ended = api.post("/v1/orchestrations/1/terminate", json!({"reason": "a mistake"})).await.expect(200);
    assert_eq!((&ended["state"], &ended["error"]), (&json!("cancelled"), &json!("a mistake")));
    let task = api.submit("k").await;
    api.get(&format!("/v1/orchestrations/{task}")).await.expect_problem(409, "conflict");
}
