//! Queues, limits, schedules and statistics.

use std::time::Duration;

use onward_store::{OpenSession, Write};
use serde_json::json;

use crate::api::Api;

on_every_store! {
    a_queue_is_changed_paused_and_resumed,
    a_limit_is_changed_only_as_it_was_read,
    a_schedule_is_changed_only_as_it_was_read,
    one_of_several_conditional_changes_succeeds,
    a_schedule_is_paused_fired_and_backfilled,
    the_overview_has_queues_limits_and_kinds,
    the_overview_says_what_holds_a_queue_back,
    a_queue_is_purged_by_its_name,
    workers_are_listed_in_pages,
}

/// Shows: W8
async fn a_queue_is_changed_paused_and_resumed(api: Api) {
    let change = api.request("PATCH", "/v1/queues/q").json(&json!({"weight": 3, "concurrency": 2}));
    let queue = api.send(change).await.expect(200);
    assert_eq!((&queue["weight"], &queue["concurrency"]), (&json!(3), &json!(2)));
    let change = api.request("PATCH", "/v1/queues/q").json(&json!({"concurrency": null}));
    assert_eq!(api.send(change).await.expect(200)["concurrency"], json!(null));
    assert_eq!(api.post("/v1/queues/q/pause", json!({})).await.expect(200)["paused"], true);
    assert_eq!(api.post("/v1/queues/q/resume", json!({})).await.expect(200)["paused"], false);
    assert_eq!(api.get("/v1/queues").await.expect(200)["items"][0]["name"], "q");
    api.get("/v1/queues/none").await.expect_problem(404, "not_found");
    api.post("/v1/queues/onward.x/pause", json!({})).await.expect_problem(422, "invalid");
}

/// Shows: W8
async fn a_limit_is_changed_only_as_it_was_read(api: Api) {
    let path = "/v1/limits/group:tenant%2Fa";
    let limit = json!({"concurrency": 2, "rate": {"tasks": 10, "per": "1m"}, "weight": 3});
    let set = api.put(path, limit).await;
    let tag = set.header("etag").unwrap().to_owned();
    let body = set.expect(200);
    assert_eq!((&body["scope"], &body["rate"]["burst"]), (&json!("group:tenant/a"), &json!(1)));
    assert_eq!(api.get(path).await.header("etag"), Some(tag.as_str()));
    let change = |tag: &str| api.request("PUT", path).header("if-match", tag).json(&json!({"concurrency": 5}));
    api.send(change(&tag)).await.expect(200);
    api.send(change(&tag)).await.expect_problem(412, "changed");
    assert_eq!(api.get(path).await.expect(200)["rate"], json!(null));
    api.send(api.request("DELETE", path).header("if-match", &tag)).await.expect_problem(412, "changed");
    api.delete(path).await.expect(204);
    api.get(path).await.expect_problem(404, "not_found");
    api.put("/v1/limits/all", json!({"weight": 1})).await.expect_problem(422, "invalid");
    api.put("/v1/limits/some", json!({})).await.expect_problem(422, "invalid");
}

async fn a_schedule_is_changed_only_as_it_was_read(api: Api) {
    let path = "/v1/schedules/night";
    let schedule = |every: &str| json!({"every": every, "task": {"kind": "k", "payload": 1}});
    let set = api.put(path, schedule("1h")).await;
    let tag = set.header("etag").unwrap().to_owned();
    assert_eq!(set.expect(201)["every"], "1h");
    let change = |tag: &str, every| api.request("PUT", path).header("if-match", tag).json(&schedule(every));
    api.send(change(&tag, "2h")).await.expect(200);
    api.send(change(&tag, "3h")).await.expect_problem(412, "changed");
    assert_eq!(api.get(path).await.expect(200)["every"], "2h");
    api.send(api.request("DELETE", path).header("if-match", &tag)).await.expect_problem(412, "changed");
    api.delete(path).await.expect(204);
    api.send(change("*", "1h")).await.expect_problem(412, "changed");
    api.put(path, json!({"cron": "soon", "task": {"kind": "k"}})).await.expect_problem(422, "invalid");
}

/// Shows: W8
async fn a_schedule_is_paused_fired_and_backfilled(api: Api) {
    let schedule = json!({"cron": "0 3 * * *", "zone": "Europe/Berlin", "task": {"kind": "k"}, "overlap": "allow"});
    api.put("/v1/schedules/night", schedule).await.expect(201);
    let coming = api.get("/v1/schedules/night/next?n=3").await.expect(200);
    assert_eq!(coming["items"].as_array().unwrap().len(), 3);
    assert_eq!(api.post("/v1/schedules/night/pause", json!({})).await.expect(200)["paused"], true);
    assert_eq!(api.post("/v1/schedules/night/resume", json!({})).await.expect(200)["paused"], false);
    let fired = api.post("/v1/schedules/night/fire", json!({})).await.expect(200);
    assert_eq!((&fired["effect"], &fired["task"]), (&json!("submitted"), &json!("1")));
    let days = json!({"from": "2026-01-01T00:00:00Z", "until": "2026-01-03T00:00:00Z"});
    let filled = api.post("/v1/schedules/night/backfill", days).await.expect(200);
    assert_eq!(filled["items"].as_array().unwrap().len(), 2, "{filled}");
    assert_eq!(api.get("/v1/schedules").await.expect(200)["items"][0]["fired"], 3);
}

/// Shows: W8, Q10
async fn the_overview_has_queues_limits_and_kinds(api: Api) {
    api.submit("k").await;
    api.put("/v1/limits/kind:k", json!({"concurrency": 2})).await.expect(200);
    api.post("/v1/tasks/1/cancel", json!({})).await.expect(200);
    let overview = api.get("/v1/overview").await.expect(200);
    assert_eq!(overview["queues"][0]["ended"]["cancelled"], 1);
    assert_eq!(overview["limits"][0]["scope"], "kind:k");
    assert_eq!(overview["kinds"][0]["kind"], "k");
    assert_eq!(api.get("/v1/statistics").await.expect(200)["items"][0]["ended"]["cancelled"], 1);
    assert_eq!(api.get("/v1/workers").await.expect(200)["items"], json!([]));
}

/// Shows: W8
async fn the_overview_says_what_holds_a_queue_back(api: Api) {
    api.submit("k").await;
    api.post("/v1/queues/default/pause", json!({})).await.expect(200);
    assert_eq!(api.get("/v1/overview").await.expect(200)["held_back"], json!([]));
    api.clock.advance(Duration::from_secs(11));
    let overview = api.get("/v1/overview").await.expect(200);
    let held = &overview["held_back"][0];
    assert_eq!((&held["queue"], &held["task"]), (&json!("default"), &json!("1")), "{overview}");
    assert!(held["reasons"].to_string().contains("paused"), "{held}");
    assert_eq!(overview["pauses"][0]["scope"], "queue:default");
}

/// Shows: W8
async fn a_queue_is_purged_by_its_name(api: Api) {
    api.submit("k").await;
    api.submit("k").await;
    let purge = |body| api.post("/v1/queues/default/purge", body);
    let looked = purge(json!({"state": "waiting", "dry_run": true})).await.expect(200);
    assert_eq!(looked, json!({"selected": 2, "removed": 0}));
    let unnamed = purge(json!({"state": "waiting", "confirm": "defualt"})).await.expect_problem(409, "conflict");
    assert_eq!(unnamed["field"], "confirm");
    purge(json!({"state": "running", "confirm": "default"})).await.expect_problem(422, "invalid");
    let purged = purge(json!({"state": "waiting,scheduled", "confirm": "default"})).await.expect(200);
    assert_eq!(purged["removed"], 2);
    api.get("/v1/tasks/1").await.expect_problem(404, "not_found");
    let none = json!({"state": "waiting", "confirm": "none"});
    api.post("/v1/queues/none/purge", none).await.expect_problem(404, "not_found");
}

/// Shows: W8
async fn one_of_several_conditional_changes_succeeds(api: Api) {
    let other = api.another(onward_server::http::ServerOptions::default()).await;
    let schedule = json!({"every": "1h", "task": {"kind": "k"}});
    for (path, first, next) in [
        ("/v1/limits/kind:k", json!({"concurrency": 1}), |number| json!({"concurrency": number + 2})),
        (
            "/v1/schedules/night",
            schedule,
            |number: u32| json!({"every": format!("{}h", number + 2), "task": {"kind": "k"}}),
        ),
    ] as [(&str, serde_json::Value, fn(u32) -> serde_json::Value); 2]
    {
        let tag = api.put(path, first).await.header("etag").unwrap().to_owned();
        let changes = (0..8).map(|number| {
            let server = if number % 2 == 0 { &api } else { &other };
            server.send(server.request("PUT", path).header("if-match", &tag).json(&next(number)))
        });
        let changed = futures_util::future::join_all(changes).await;
        let done = changed.iter().filter(|response| response.status == 200).count();
        let refused = changed.iter().filter(|response| response.status == 412).count();
        assert_eq!((done, refused), (1, 7), "{path}: {changed:?}");
    }
}

async fn workers_are_listed_in_pages(api: Api) {
    for name in ["a", "b", "c"] {
        let session = OpenSession::new(name, Duration::from_secs(60));
        api.store.apply(vec![Write::OpenSession(session)]).await.unwrap();
        api.clock.advance(Duration::from_secs(1));
    }
    let first = api.get("/v1/workers?limit=2").await.expect(200);
    assert_eq!((&first["items"][0]["name"], &first["items"][1]["name"]), (&json!("a"), &json!("b")), "{first}");
    let second = api.get(&format!("/v1/workers?limit=2&cursor={}", first["next"].as_str().unwrap())).await.expect(200);
    assert_eq!((&second["items"][0]["name"], &second["next"]), (&json!("c"), &json!(null)), "{second}");
    api.get("/v1/workers?limit=1001").await.expect_problem(422, "invalid");
}
