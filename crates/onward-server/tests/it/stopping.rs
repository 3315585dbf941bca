//! A graceful stop.

use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::api::Api;

on_every_store! {
    a_stop_ends_streams_with_bye_and_waits_for_no_one,
    a_stopping_server_is_not_ready_and_refuses_requests,
}

/// Shows: W8
async fn a_stop_ends_streams_with_bye_and_waits_for_no_one(api: Api) {
    api.submit("k").await;
    let mut stream = TcpStream::connect(api.address).await.unwrap();
    let request = api.request("GET", "/v1/events").header("accept", "text/event-stream");
    stream.write_all(&request.bytes()).await.unwrap();
    let wait = api.request("POST", "/v1/tasks").header("prefer", "wait=60s").json(&json!({"kind": "k"}));
    let (waited, ended) = tokio::join!(api.send(wait), async {
        // The stream has both tasks, so the wait of the second is under way.
        let mut text = String::new();
        while !text.contains("\"task\":\"2\"") {
            let mut bytes = [0; 4096];
            let read = stream.read(&mut bytes).await.unwrap();
            assert_ne!(read, 0, "{text}");
            text += &String::from_utf8_lossy(&bytes[..read]);
        }
        api.stop.cancel();
        stream.read_to_string(&mut text).await.unwrap();
        text
    });
    assert!(ended.contains("event: bye"), "{ended}");
    waited.expect(202);
    assert!(api.served.await.unwrap(), "all requests ended in time");
    assert!(TcpStream::connect(api.address).await.is_err(), "nothing listens any more");
}

async fn a_stopping_server_is_not_ready_and_refuses_requests(api: Api) {
    assert_eq!(api.get("/v1/health/ready").await.expect(200)["status"], "ready");
    api.server.begin_stop();
    api.get("/v1/health/ready").await.expect_problem(503, "stopping");
    let refused = api.get("/v1/tasks").await;
    assert_eq!(refused.header("retry-after"), Some("1"));
    refused.expect_problem(503, "stopping");
    assert_eq!(api.get("/v1/health/live").await.expect(200)["status"], "live");
}
