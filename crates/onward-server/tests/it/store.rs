//! `/v1/store`: the storage interface, for programs of the same version.

use onward_server::http::Role;
use serde_json::{Value, json};

use crate::api::Api;
use crate::client::Request;

on_every_store! {
    a_viewer_reads_no_payloads,
    the_documents_of_the_server_cannot_be_read_or_written,
    the_writes_of_workers_are_not_served,
    a_role_may_write_what_it_may_elsewhere,
    a_repeated_submit_has_no_second_effect,
    a_write_is_recorded_with_what_it_is_about,
}

async fn read(api: &Api, role: Role, read: Value) -> crate::client::Response {
    let request = Request::new("POST", "/v1/store:read").key(api.key(role));
    api.send(request.json(&json!({ "read": read }))).await
}

fn apply(api: &Api, role: Role, writes: &Value) -> Request {
    Request::new("POST", "/v1/store:apply").key(api.key(role)).json(&json!({ "writes": writes }))
}

fn new_task(kind: &str) -> Value {
    let task = onward_store::NewTask::of(onward_store::Name::new(kind).unwrap());
    json!({ "submit": serde_json::to_value(task).unwrap() })
}

/// Shows: W8
async fn a_viewer_reads_no_payloads(api: Api) {
    api.post("/v1/tasks", json!({"kind": "k", "payload": "s"})).await.expect(201);
    let filter = json!({ "with_payload": true });
    for wanted in
        [json!({"task": {"task": 1}}), json!({"tasks": {"filter": filter, "page": {"before": null, "limit": 9}}})]
    {
        let seen = read(&api, Role::Viewer, wanted.clone()).await.expect(200).to_string();
        assert!(seen.contains("\"payload\":null") && !seen.contains("[34,115,34]"), "{seen}");
        let seen = read(&api, Role::Operator, wanted).await.expect(200).to_string();
        assert!(seen.contains("[34,115,34]"), "{seen}");
    }
    let output = json!({"task_output": {"task": 1, "stream": "stdout", "from": 0, "limit": 9}});
    assert!(read(&api, Role::Viewer, output).await.expect(200)["reply"]["task_output"].is_null());
    let history = json!({"instance_history": {"task": 1, "from": 0, "limit": 9}});
    read(&api, Role::Viewer, history).await.expect_problem(403, "forbidden");
}

/// Shows: W8
async fn the_documents_of_the_server_cannot_be_read_or_written(api: Api) {
    for collection in ["onward.keys", "onward.sessions", "onward.audit", "onward.guards", "onward.request-0", "mine"] {
        let document = json!({"document": {"collection": collection, "key": "k"}});
        read(&api, Role::Admin, document).await.expect_problem(422, "invalid");
        let put = json!([{"put_document": {
            "collection": collection, "key": "k", "expect": "any", "content_type": "text/plain", "content": [], "index": [],
        }}]);
        api.send(apply(&api, Role::Admin, &put)).await.expect_problem(422, "invalid");
    }
}

/// Shows: W8
async fn the_writes_of_workers_are_not_served(api: Api) {
    let lease = json!({"task": 1, "session": 1, "claim": 1});
    for write in [
        json!({"open_session": {"name": "w", "lease": {"secs": 60, "nanos": 0}, "serves": {}}}),
        json!({"complete": {"lease": lease, "result": null}}),
        json!({"all": [{"close_session": {"session": 1}}]}),
    ] {
        api.send(apply(&api, Role::Admin, &json!([write]))).await.expect_problem(400, "malformed");
    }
    for kind in ["onward.secret", "onward.script", "onward.webhook"] {
        api.send(apply(&api, Role::Admin, &json!([new_task(kind)]))).await.expect_problem(422, "invalid");
    }
}

/// Shows: W8
async fn a_role_may_write_what_it_may_elsewhere(api: Api) {
    api.send(apply(&api, Role::Viewer, &json!(["sweep"]))).await.expect_problem(403, "forbidden");
    api.send(apply(&api, Role::Operator, &json!(["sweep"]))).await.expect(200);
    let delete = json!([{"all": [{"delete_schedule": {"schedule": "s"}}]}]);
    api.send(apply(&api, Role::Operator, &delete)).await.expect_problem(403, "forbidden");
    let refused = api.send(apply(&api, Role::Developer, &delete)).await.expect(200);
    assert!(refused["outcomes"][0]["refused"]["in_all"].is_object(), "{refused}");
}

async fn a_repeated_submit_has_no_second_effect(api: Api) {
    for (key, writes) in [("one", json!([new_task("k")])), ("two", json!([{"all": [new_task("k"), new_task("k")]}]))] {
        let request = || apply(&api, Role::Operator, &writes).header("idempotency-key", key);
        let first = api.send(request()).await.expect(200);
        assert_eq!(api.send(request()).await.expect(200), first);
    }
    assert_eq!(api.get("/v1/tasks").await.expect(200)["items"].as_array().unwrap().len(), 3);
}

async fn a_write_is_recorded_with_what_it_is_about(api: Api) {
    api.submit("k").await;
    api.send(apply(&api, Role::Operator, &json!([{"cancel": {"task": 1}}]))).await.expect(200);
    let audit = api.get("/v1/audit").await.expect(200);
    assert_eq!(audit["items"][0]["object"], "cancel task 1", "{audit}");
    assert_eq!(audit["items"][0]["name"], "operator", "{audit}");
    api.send(apply(&api, Role::Operator, &json!([new_task("k")]))).await.expect(200);
    assert_eq!(api.get("/v1/audit").await.expect(200), audit, "a submit is its own record");
}
