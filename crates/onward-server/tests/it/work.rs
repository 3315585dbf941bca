//! The worker protocol over HTTP.

use bytes::BytesMut;
use onward_protocol::frame::{Decoder, Limits, encode};
use onward_server::http::Role;
use onward_store::StoreReads as _;
use serde_json::{Value, json};

use crate::api::Api;
use crate::client::{Request, Response};

on_every_store! {
    a_task_runs_in_a_worker_over_http,
    a_lost_response_loses_no_message,
    a_worker_that_closes_its_connection_gives_its_task_up_at_once,
    a_connection_that_is_not_there_is_not_found,
    a_viewer_runs_no_tasks,
    a_stop_ends_the_sessions_of_workers,
}

/// A worker, with the bytes that it has sent and received.
struct Worker<'a> {
    api: &'a Api,
    path: String,
    sent: usize,
    received: usize,
    decoder: Decoder,
}

impl<'a> Worker<'a> {
    async fn open(api: &'a Api) -> Self {
        let opened = api.send(Request::new("POST", "/v1/work").key(api.key(Role::Operator))).await.expect(201);
        let path = format!("/v1/work/{}", opened["connection"].as_str().unwrap());
        Self { api, path, sent: 0, received: 0, decoder: Decoder::new(Limits { payload: 1 << 20 }) }
    }

    async fn send(&mut self, header: Value, payloads: &[&[u8]]) {
        let mut frames = vec![header.to_string().into_bytes().into()];
        frames.extend(payloads.iter().map(|payload| payload.to_vec().into()));
        let mut bytes = BytesMut::new();
        encode(&frames, &mut bytes);
        let path = format!("{}/send?from={}", self.path, self.sent);
        self.sent += bytes.len();
        // A repeated request has no second effect.
        for _ in 0..2 {
            let request = self.api.request("POST", &path).header("content-type", "application/octet-stream");
            self.api.send(request.body(bytes.to_vec())).await.expect(204);
        }
    }

    async fn poll(&self) -> Response {
        let path = format!("{}/receive?from={}", self.path, self.received);
        self.api.send(self.api.request("POST", &path)).await
    }

    /// Returns the header and the first payload of the next message of a type.
    async fn expect(&mut self, name: &str) -> (Value, Vec<u8>) {
        loop {
            while let Some(frames) = self.decoder.next_message().unwrap() {
                let header: Value = serde_json::from_slice(&frames[0]).unwrap();
                if header["t"] == name {
                    return (header, frames.get(1).map(|payload| payload.to_vec()).unwrap_or_default());
                }
            }
            let response = self.poll().await;
            assert_eq!(response.status, 200, "{response:?}");
            self.received += response.body.len();
            self.decoder.buffer().extend_from_slice(&response.body);
        }
    }

    /// Says hello and gives credit for one task.
    async fn begin(&mut self) {
        self.send(json!({"t": "hello", "protocol": [1], "kinds": {"upper": {}}}), &[]).await;
        self.expect("welcome").await;
        self.send(json!({"t": "grant", "credit": 1}), &[]).await;
    }
}

/// Shows: W9
async fn a_task_runs_in_a_worker_over_http(api: Api) {
    let id = api.submit("upper").await;
    let mut worker = Worker::open(&api).await;
    worker.begin().await;
    let (tasks, _) = worker.expect("tasks").await;
    let task = &tasks["tasks"][0];
    assert_eq!(task["task"], id);
    let end = json!({"task": task["task"], "fence": task["fence"], "outcome": "ok", "payload": 0});
    worker.send(json!({"t": "end", "payloads": 1, "ends": [end]}), &[b"\"done\""]).await;
    let (ack, _) = worker.expect("ack").await;
    assert_eq!(ack["ends"][0]["result"], "ok");
    assert_eq!(api.get(&format!("/v1/tasks/{id}")).await.expect(200)["state"], "completed");
}

/// Shows: W9
async fn a_lost_response_loses_no_message(api: Api) {
    let mut worker = Worker::open(&api).await;
    worker.send(json!({"t": "hello", "protocol": [1], "kinds": {"upper": {}}}), &[]).await;
    let lost = worker.poll().await;
    assert!(lost.status == 200 && !lost.body.is_empty(), "{lost:?}");
    worker.expect("welcome").await;
}

/// Shows: W9
async fn a_worker_that_closes_its_connection_gives_its_task_up_at_once(api: Api) {
    let id = api.submit("upper").await;
    let mut first = Worker::open(&api).await;
    first.begin().await;
    first.expect("tasks").await;
    api.delete(&first.path).await.expect(204);
    let mut second = Worker::open(&api).await;
    second.begin().await;
    let (tasks, _) = second.expect("tasks").await;
    assert_eq!((&tasks["tasks"][0]["task"], &tasks["tasks"][0]["attempt"]), (&json!(id), &json!(2)));
}

/// Shows: W9
async fn a_connection_that_is_not_there_is_not_found(api: Api) {
    for (method, path) in
        [("POST", "/v1/work/x/send?from=0"), ("POST", "/v1/work/x/receive?from=0"), ("DELETE", "/v1/work/x")]
    {
        api.send(api.request(method, path)).await.expect_problem(404, "not_found");
    }
    let worker = Worker::open(&api).await;
    let gap = api.request("POST", &format!("{}/send?from=9", worker.path)).body(*b"x");
    api.send(gap).await.expect_problem(422, "invalid");
}

/// Shows: W9
async fn a_viewer_runs_no_tasks(api: Api) {
    let request = Request::new("POST", "/v1/work").key(api.key(Role::Viewer));
    api.send(request).await.expect_problem(403, "forbidden");
}

/// Shows: W9
async fn a_stop_ends_the_sessions_of_workers(api: Api) {
    let id = api.submit("upper").await;
    let mut worker = Worker::open(&api).await;
    worker.begin().await;
    worker.expect("tasks").await;
    api.stop.cancel();
    assert!(api.served.await.unwrap(), "all requests ended in time");
    api.server.close().await.unwrap();
    let task = api.store.task(id.parse().unwrap()).await.unwrap().unwrap();
    assert_eq!((task.state.as_str(), task.attempts), ("waiting", 0));
}
