//! Webhooks: events that are sent to a receiver.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, Mac as _};
use onward_server::http::ServerOptions;
use serde_json::{Value, json};
use sha2::Sha256;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::api::Api;

on_every_store! {
    an_event_is_sent_with_a_signature,
    only_selected_events_are_sent,
    two_servers_send_each_event_once,
    a_failed_delivery_is_retried_with_the_same_id,
    a_redirect_is_not_followed,
    a_deleted_webhook_receives_nothing_more,
    a_private_address_is_refused,
    a_wrong_webhook_is_refused_with_its_field,
    a_delivery_cannot_be_submitted,
}

/// A request that a receiver got.
#[derive(Debug)]
struct Received {
    head: String,
    body: String,
}

impl Received {
    fn header(&self, name: &str) -> &str {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.filter(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value).next().unwrap_or_default()
    }

    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }
}

/// A receiver that returns a response to each request, the last one again and again.
struct Receiver {
    url: String,
    received: mpsc::UnboundedReceiver<Received>,
}

impl Receiver {
    async fn start(responses: &'static [&'static str]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/hook?a=b", listener.local_addr().unwrap());
        let (sender, received) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            for number in 0.. {
                let Ok((mut stream, _)) = listener.accept().await else { return };
                let (mut bytes, mut buffer) = (Vec::new(), [0; 4096]);
                let request = loop {
                    let read = stream.read(&mut buffer).await.unwrap_or(0);
                    bytes.extend_from_slice(&buffer[..read]);
                    let text = String::from_utf8_lossy(&bytes).into_owned();
                    let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
                    let received = Received { head: head.to_owned(), body: body.to_owned() };
                    if received.header("content-length").parse::<usize>().unwrap() <= body.len() {
                        break received;
                    }
                };
                let response = responses[number.min(responses.len() - 1)];
                let _ = stream.write_all(format!("HTTP/1.1 {response}\r\ncontent-length: 0\r\n\r\n").as_bytes()).await;
                let _ = sender.send(request);
            }
        });
        Self { url, received }
    }

    async fn next(&mut self) -> Received {
        self.received.recv().await.unwrap()
    }
}

/// A server that sends webhooks to this machine.
struct Sending {
    api: Api,
    stop: CancellationToken,
    sending: tokio::task::JoinHandle<()>,
}

impl Sending {
    async fn start(api: &Api) -> Self {
        let mut options = ServerOptions::default();
        options.private_webhooks = true;
        let (api, stop) = (api.another(options).await, CancellationToken::new());
        let sending = tokio::spawn({
            let (server, stop) = (Arc::clone(&api.server), stop.clone());
            async move { server.send_webhooks(stop).await.unwrap() }
        });
        Self { api, stop, sending }
    }

    async fn create(&self, webhook: Value) -> Value {
        self.api.post("/v1/webhooks", webhook).await.expect(201)
    }

    async fn stop(self) {
        self.stop.cancel();
        self.sending.await.unwrap();
    }
}

/// Waits until a delivery is in one of some states, and returns the list.
async fn until_listed(api: &Api, states: &str) -> Value {
    let path = format!("/v1/tasks?kind=onward.webhook&state={states}");
    loop {
        let listed = api.get(&path).await.expect(200);
        if listed["items"] != json!([]) {
            return listed;
        }
        tokio::task::yield_now().await;
    }
}

/// Shows: W8
async fn an_event_is_sent_with_a_signature(api: Api) {
    let sending = Sending::start(&api).await;
    let mut receiver = Receiver::start(&["204 No Content"]).await;
    let made = sending.create(json!({"url": receiver.url})).await;
    let id = api.submit("resize").await;
    let received = receiver.next().await;
    assert!(received.head.starts_with("POST /hook?a=b HTTP/1.1"), "{}", received.head);
    let body = received.json();
    assert_eq!((&body["type"], &body["data"]["task"]), (&json!("task.submitted"), &json!(id)));
    let key = STANDARD.decode(made["secret"].as_str().unwrap().strip_prefix("whsec_").unwrap()).unwrap();
    let mut mac = Hmac::<Sha256>::new_from_slice(&key).unwrap();
    let (message, time) = (received.header("webhook-id"), received.header("webhook-timestamp"));
    mac.update(format!("{message}.{time}.{}", received.body).as_bytes());
    let signature = format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()));
    assert_eq!(received.header("webhook-signature"), signature);
    let listed = api.get("/v1/webhooks").await.text();
    assert!(listed.contains("hook?a=b") && !listed.contains(made["secret"].as_str().unwrap()), "{listed}");
    sending.stop().await;
}

async fn only_selected_events_are_sent(api: Api) {
    api.submit("a").await;
    let sending = Sending::start(&api).await;
    let mut receiver = Receiver::start(&["200 OK"]).await;
    api.clock.advance(Duration::from_secs(1));
    sending.create(json!({"url": receiver.url, "events": ["cancelled"], "kinds": ["a"], "queue": "q"})).await;
    for (kind, queue) in [("a", "other"), ("b", "q"), ("a", "q")] {
        let id = api.post("/v1/tasks", json!({"kind": kind, "queue": queue})).await.expect(201)["id"].clone();
        api.post(&format!("/v1/tasks/{}/cancel", id.as_str().unwrap()), json!({})).await.expect(200);
    }
    let body = receiver.next().await.json();
    assert_eq!((&body["type"], &body["data"]["task"]), (&json!("task.cancelled"), &json!("4")));
    sending.stop().await;
    assert!(receiver.received.is_empty());
}

/// Shows: W8
async fn two_servers_send_each_event_once(api: Api) {
    let (one, other) = (Sending::start(&api).await, Sending::start(&api).await);
    let mut receiver = Receiver::start(&["200 OK"]).await;
    one.create(json!({"url": receiver.url, "events": ["submitted"]})).await;
    let mut tasks = Vec::new();
    for _ in 0..20 {
        tasks.push(api.submit("k").await);
    }
    let mut sent = Vec::new();
    for _ in 0..tasks.len() {
        sent.push(receiver.next().await.json()["data"]["task"].as_str().unwrap().to_owned());
    }
    sent.sort_by_key(|id| id.parse::<i64>().unwrap());
    assert_eq!(sent, tasks);
    one.stop().await;
    other.stop().await;
    assert!(receiver.received.is_empty());
}

/// Shows: W8
async fn a_failed_delivery_is_retried_with_the_same_id(api: Api) {
    let sending = Sending::start(&api).await;
    let mut receiver = Receiver::start(&["500 Internal Server Error", "200 OK"]).await;
    sending.create(json!({"url": receiver.url})).await;
    api.submit("k").await;
    let first = receiver.next().await;
    let failed = until_listed(&api, "scheduled").await;
    assert!(failed["items"][0]["error"].as_str().unwrap().contains("status 500"), "{failed}");
    api.clock.advance(Duration::from_secs(10));
    let second = receiver.next().await;
    assert_eq!((second.header("webhook-id"), &second.body), (first.header("webhook-id"), &first.body));
    assert_ne!(second.header("webhook-timestamp"), first.header("webhook-timestamp"));
    sending.stop().await;
}

async fn a_redirect_is_not_followed(api: Api) {
    let sending = Sending::start(&api).await;
    let mut receiver = Receiver::start(&["302 Found\r\nlocation: /elsewhere", "410 Gone"]).await;
    sending.create(json!({"url": receiver.url})).await;
    api.submit("k").await;
    receiver.next().await;
    until_listed(&api, "scheduled").await;
    api.clock.advance(Duration::from_secs(10));
    let second = receiver.next().await;
    assert!(second.head.starts_with("POST /hook"), "{}", second.head);
    // Status 410 ends the delivery for good.
    until_listed(&api, "failed,dead").await;
    sending.stop().await;
}

async fn a_deleted_webhook_receives_nothing_more(api: Api) {
    let sending = Sending::start(&api).await;
    let mut receiver = Receiver::start(&["500 Internal Server Error"]).await;
    let id = sending.create(json!({"url": receiver.url})).await["id"].as_str().unwrap().to_owned();
    api.submit("k").await;
    receiver.next().await;
    api.delete(&format!("/v1/webhooks/{id}")).await.expect(204);
    api.delete(&format!("/v1/webhooks/{id}")).await.expect_problem(404, "not_found");
    let failed = "/v1/tasks?kind=onward.webhook&state=failed,dead";
    while api.get(failed).await.expect(200)["items"] == json!([]) {
        api.clock.advance(Duration::from_secs(10));
        tokio::task::yield_now().await;
    }
    let ended = api.get(failed).await.expect(200);
    assert!(ended["items"][0]["error"].as_str().unwrap().contains("no webhook"), "{ended}");
    sending.stop().await;
}

/// Shows: W8
async fn a_private_address_is_refused(api: Api) {
    for url in ["https://127.0.0.1/", "https://[::1]/", "https://169.254.169.254/latest", "http://example.org/"] {
        let problem = api.post("/v1/webhooks", json!({"url": url})).await.expect_problem(422, "invalid");
        assert_eq!(problem["field"], "url", "{problem}");
    }
    api.post("/v1/webhooks", json!({"url": "https://example.org/hook"})).await.expect(201);
}

async fn a_wrong_webhook_is_refused_with_its_field(api: Api) {
    let url = "https://example.org/";
    for (body, field) in [
        (json!({"url": "example.org"}), "url"),
        (json!({"url": format!("https://example.org/{}", "x".repeat(3000))}), "url"),
        (json!({"url": url, "events": ["ended"]}), "events"),
        (json!({"url": url, "kinds": vec!["k"; 101]}), "kinds"),
        (json!({"url": url, "queue": ""}), "queue"),
    ] {
        let problem = api.post("/v1/webhooks", body.clone()).await.expect_problem(422, "invalid");
        assert_eq!(problem["field"], field, "{body}: {problem}");
    }
    for _ in 0..onward_server::http::bounds::WEBHOOKS {
        api.post("/v1/webhooks", json!({"url": url})).await.expect(201);
    }
    api.post("/v1/webhooks", json!({"url": url})).await.expect_problem(409, "conflict");
}

async fn a_delivery_cannot_be_submitted(api: Api) {
    let problem = api.post("/v1/tasks", json!({"kind": "onward.webhook"})).await.expect_problem(422, "invalid");
    assert_eq!(problem["field"], "kind");
}
