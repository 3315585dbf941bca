//! Groups.

use serde_json::json;

use crate::api::Api;

on_every_store! {
    a_group_is_changed_in_parts,
    a_group_is_paused_and_counted,
}

/// Shows: W8
async fn a_group_is_changed_in_parts(api: Api) {
    let patch = |body| api.request("PATCH", "/v1/groups/tenant").json(&body);
    api.send(patch(json!({"concurrency": 2, "rate": {"tasks": 10, "per": "1m"}}))).await.expect(200);
    let changed = api.send(patch(json!({"rate": null, "weight": 3}))).await.expect(200);
    let limit = &changed["limit"];
    assert_eq!((&limit["concurrency"], &limit["rate"], &limit["weight"]), (&json!(2), &json!(null), &json!(3)));
    assert_eq!(api.get("/v1/groups").await.expect(200)["items"][0]["name"], "tenant");
    api.send(patch(json!({}))).await.expect_problem(422, "invalid");
    api.send(patch(json!({"colour": 1}))).await.expect_problem(400, "malformed");
}

async fn a_group_is_paused_and_counted(api: Api) {
    api.post("/v1/tasks", json!({"kind": "k", "group": "tenant"})).await.expect(201);
    assert_eq!(api.post("/v1/groups/tenant/pause", json!({})).await.expect(200)["paused"], true);
    let shown = api.get("/v1/groups/tenant").await.expect(200);
    assert_eq!((&shown["group"]["paused"], &shown["waiting"]), (&json!(true), &json!(1)));
    assert_eq!(api.post("/v1/groups/tenant/resume", json!({})).await.expect(200)["paused"], false);
    assert_eq!(api.get("/v1/groups/other").await.expect(200)["waiting"], 0);
}
