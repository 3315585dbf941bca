//! Audit records.

use onward_server::http::Role;
use serde_json::json;

use crate::api::Api;
use crate::client::Request;

on_every_store! {
    a_change_is_recorded_with_its_actor,
    a_refused_change_leaves_no_record,
    a_read_and_a_submit_leave_no_record,
    records_are_read_in_pages,
    a_sign_in_is_recorded,
    a_burst_of_refused_credentials_leaves_one_record,
}

/// Shows: W8
async fn a_change_is_recorded_with_its_actor(api: Api) {
    api.submit("k").await;
    let request = Request::new("POST", "/v1/tasks/1/cancel").key(api.key(Role::Operator));
    let changed = api.send(request).await;
    let id = changed.header("x-request-id").unwrap().to_owned();
    changed.expect(200);
    let audit = api.get("/v1/audit").await.expect(200);
    let record = &audit["items"][0];
    for (field, value) in [
        ("name", "operator"),
        ("address", "127.0.0.1"),
        ("request_id", &id),
        ("action", "POST /v1/tasks/{id}/cancel"),
        ("object", "/v1/tasks/1/cancel"),
    ] {
        assert_eq!(record[field], value, "{record}");
    }
    assert!(record["at"].is_string(), "{record}");
}

async fn a_refused_change_leaves_no_record(api: Api) {
    api.submit("k").await;
    api.post("/v1/tasks/1/retry", json!({})).await.expect_problem(409, "not_ended");
    assert_eq!(api.get("/v1/audit").await.expect(200)["items"], json!([]));
}

async fn a_read_and_a_submit_leave_no_record(api: Api) {
    api.submit("k").await;
    api.get("/v1/tasks/1").await.expect(200);
    assert_eq!(api.get("/v1/audit").await.expect(200)["items"], json!([]));
}

async fn records_are_read_in_pages(api: Api) {
    for queue in ["a", "b", "c"] {
        let change = api.request("PATCH", &format!("/v1/queues/{queue}")).json(&json!({"weight": 2}));
        api.send(change).await.expect(200);
        api.clock.advance(std::time::Duration::from_secs(60));
    }
    let first = api.get("/v1/audit?limit=2").await.expect(200);
    assert_eq!(first["items"][1]["object"], "/v1/queues/b");
    let next = first["next"].as_str().unwrap();
    let second = api.get(&format!("/v1/audit?limit=2&cursor={next}")).await.expect(200);
    assert_eq!((&second["items"][0]["object"], &second["next"]), (&json!("/v1/queues/c"), &json!(null)));
    let since = second["items"][0]["at"].as_str().unwrap();
    let last = api.get(&format!("/v1/audit?since={since}")).await.expect(200);
    assert_eq!(last["items"].as_array().unwrap().len(), 1, "{last}");
}

/// Shows: W8
async fn a_sign_in_is_recorded(api: Api) {
    for key in api.keys.list().await.unwrap().iter().filter(|key| key.role == Role::Admin) {
        api.keys.revoke(&key.id).await.unwrap();
    }
    let token = api.server.first_admin_token().await.unwrap().unwrap();
    let signed_in = api.send(Request::new("GET", &format!("/v1/sign-in?token={token}"))).await.expect(200);
    let key = signed_in["key"].as_str().unwrap();
    let audit = api.send(Request::new("GET", "/v1/audit").key(key)).await.expect(200);
    let record = &audit["items"][0];
    assert_eq!((&record["name"], &record["action"]), (&json!("one-time link"), &json!("GET /v1/sign-in")), "{audit}");
    assert!(!audit.to_string().contains(&token), "{audit}");
}

/// Shows: W8
async fn a_burst_of_refused_credentials_leaves_one_record(api: Api) {
    let wrong = || api.send(Request::new("GET", "/v1/queues").key("onward_0123456789abcdef_x"));
    for _ in 0..5 {
        wrong().await.expect_problem(401, "credential_invalid");
    }
    // The record is written beside the request.
    let records = async || loop {
        let audit = api.get("/v1/audit").await.expect(200)["items"].as_array().unwrap().clone();
        if !audit.is_empty() {
            return audit;
        }
        tokio::task::yield_now().await;
    };
    let records = records().await;
    assert_eq!(records.len(), 1, "{records:?}");
    assert_eq!((&records[0]["object"], &records[0]["address"]), (&json!("/v1/queues"), &json!("127.0.0.1")));
    assert!(records[0]["action"].as_str().unwrap().starts_with("refused credential"), "{records:?}");
}
