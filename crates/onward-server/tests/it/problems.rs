//! Every code of a problem, produced by a request.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use onward::orchestration::OrchestrationOptions;
use onward_server::http::{Code, IssuerOptions, Role, ServerOptions};
use onward_store::{
    Error, ManualClock, MemoryStore, Name, Read, ReadReply, Recipient, Signal, Store, StoreDecorator, StoreFuture,
    TaskId, Write, bounds,
};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use crate::api::{Api, run};
use crate::client::{Request, Response, read_response};

/// A token with a header that is right. The keys for its signature cannot be read.
const TOKEN: &str = "eyJhbGciOiJFUzI1NiJ9.e30.eA";

/// A store whose reads of queues fail or panic on request.
#[derive(Debug)]
struct Failing {
    inner: MemoryStore,
    fault: AtomicU8,
}

impl StoreDecorator for Failing {
    fn inner(&self) -> &dyn Store {
        &self.inner
    }

    fn read(&self, read: Read) -> StoreFuture<'_, ReadReply> {
        match (self.fault.load(Ordering::Relaxed), &read) {
            (1, Read::Queues {}) => Box::pin(async { Err(Error::io("the disk of /var/secret failed")) }),
            (2, Read::Queues {}) => panic!("a fault"),
            _ => Store::read(&self.inner, read),
        }
    }
}

/// Shows: W8
#[test]
fn each_code_is_produced() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let clock = Arc::new(ManualClock::default());
        let store = Arc::new(Failing { inner: MemoryStore::with_clock(clock.clone()), fault: AtomicU8::new(0) });
        let mut options = ServerOptions::default();
        options.limits.request_time = Duration::from_millis(300);
        options.limits.streams = 0;
        let mut issuer = IssuerOptions::new("http://127.0.0.1:1");
        issuer.audiences = vec!["onward".to_owned()];
        issuer.roles = vec!["ops=viewer".parse().unwrap()];
        options.issuer = Some(issuer);
        let api = Api::start_with(store.clone(), clock, options).await;
        let mut seen = BTreeSet::new();
        let mut saw = |response: Response, code: Code| {
            let body = response.expect_problem(code.status().as_u16(), code.as_str());
            assert_eq!(body["title"], code.title());
            seen.insert(code.as_str());
        };
        for (request, code) in of_requests(&api) {
            saw(api.send(request).await, code);
        }
        for (response, code) in of_states(&api).await {
            saw(response, code);
        }
        saw(half_a_body(&api).await, Code::RequestTimeout);
        store.fault.store(1, Ordering::Relaxed);
        let failed = api.get("/v1/queues").await;
        assert!(!failed.text().contains("secret"), "{}", failed.text());
        saw(failed, Code::StoreUnavailable);
        store.fault.store(2, Ordering::Relaxed);
        saw(api.get("/v1/queues").await, Code::Internal);
        api.server.begin_stop();
        saw(api.get("/v1/queues").await, Code::Stopping);
        let all: BTreeSet<_> = Code::ALL.iter().map(|code| code.as_str()).collect();
        assert_eq!(seen, all);
    });
}

/// Returns requests that are wrong by themselves.
fn of_requests(api: &Api) -> Vec<(Request, Code)> {
    let get = |path| api.request("GET", path);
    let post = |path| api.request("POST", path);
    let host = Request::new("GET", "/v1/tasks").key(api.key(Role::Admin)).header("host", "example.org");
    vec![
        (Request::new("GET", "/v1/tasks"), Code::CredentialMissing),
        (Request::new("GET", "/v1/tasks").key("nonsense"), Code::CredentialInvalid),
        (Request::new("GET", "/v1/keys").key(api.key(Role::Viewer)), Code::Forbidden),
        (host, Code::HostUnknown),
        (post("/v1/tasks/1/cancel").header("origin", "http://example.org"), Code::OriginRefused),
        (get("/v1/nothing"), Code::RouteUnknown),
        (api.request("PUT", "/v1/tasks"), Code::MethodNotAllowed),
        (get("/v1/tasks/99"), Code::NotFound),
        (get("/v1/tasks?unknown=1"), Code::Malformed),
        (post("/v1/tasks").json(&json!({"kind": "k", "unknown": 1})), Code::Malformed),
        (post("/v1/tasks").json(&json!({"kind": " k"})), Code::Invalid),
        (post("/v1/tasks").header("content-type", "text/plain").body("{}"), Code::MediaTypeUnknown),
        (post("/v1/tasks?kind=k").body(vec![b'x'; 4 * 1024 * 1024 + 1]), Code::BodyTooLarge),
        (Request::new("GET", "/v1/tasks").key(TOKEN), Code::IssuerUnavailable),
        (get("/v1/events").header("accept", "text/event-stream"), Code::TooManyStreams),
    ]
}

/// Returns the responses to requests that the state of the store does not allow.
async fn of_states(api: &Api) -> Vec<(Response, Code)> {
    let key = |key: &str, body| api.request("POST", "/v1/tasks").header("idempotency-key", key).json(&body);
    api.send(key("a", json!({"kind": "k", "key": "one"}))).await.expect(201);
    let mismatch = api.send(key("a", json!({"kind": "other"}))).await;
    let not_ended = api.post("/v1/tasks/1/retry", json!({})).await;
    let not_awaited = api.post("/v1/tasks/1/complete", json!({})).await;
    let conflict = api.post("/v1/orchestrations/1/pause", json!({})).await;
    api.post("/v1/tasks/1/cancel", json!({})).await.expect(200);
    let ended = api.post("/v1/tasks/1/cancel", json!({})).await;
    let cancelled = api.get("/v1/tasks/1/result").await;
    let failed = api.submit("k").await;
    api.post(&format!("/v1/tasks/{failed}/kill"), json!({})).await.expect(200);
    let failed = api.get(&format!("/v1/tasks/{failed}/result")).await;
    api.post("/v1/tasks", json!({"kind": "k", "key": "one"})).await.expect(201);
    let key_taken = api.post("/v1/tasks/1/retry", json!({})).await;
    api.send(key("b", json!({"kind": "gone"}))).await.expect(201);
    api.post("/v1/tasks:delete", json!({"filter": {"kind": "gone"}})).await.expect(200);
    let gone = api.send(key("b", json!({"kind": "gone"}))).await;
    let other = api.request("PUT", "/v1/limits/all").header("if-match", "\"other\"").json(&json!({"concurrency": 1}));
    let changed = api.send(other).await;
    let queried = api.post("/v1/orchestrations", json!({"kind": "order"})).await.expect(201)["id"].clone();
    let queried = queried.as_str().unwrap();
    vec![
        (mismatch, Code::IdempotencyMismatch),
        (not_ended, Code::NotEnded),
        (not_awaited, Code::NotAwaited),
        (conflict, Code::Conflict),
        (ended, Code::AlreadyEnded),
        (cancelled, Code::TaskCancelled),
        (failed, Code::TaskFailed),
        (key_taken, Code::KeyTaken),
        (gone, Code::IdempotencyResultGone),
        (changed, Code::Changed),
        (full_mailbox(api).await, Code::MailboxFull),
        (locked_out(api).await, Code::TooManyAttempts),
        (refused_update(api).await, Code::UpdateRefused),
        (api.post(&format!("/v1/orchestrations/{queried}/queries/q"), json!(1)).await, Code::CodeElsewhere),
    ]
}

async fn locked_out(api: &Api) -> Response {
    let body = json!({"name": "nobody", "password": "wrong"});
    let sign_in = || api.send(Request::new("POST", "/v1/sessions").header("x-onward-page", "1").json(&body));
    for _ in 0..onward_server::http::bounds::ATTEMPTS {
        sign_in().await.expect_problem(401, "credential_invalid");
    }
    sign_in().await
}

async fn full_mailbox(api: &Api) -> Response {
    let started = api.post("/v1/orchestrations", json!({"kind": "order"})).await.expect(201);
    let id = started["id"].as_str().unwrap();
    let task: TaskId = id.parse().unwrap();
    let signal = || {
        let (to, name) = (Recipient::Task(task), Name::new("s").unwrap());
        Write::Signal(Box::new(Signal { to, name, payload: "1".into() }))
    };
    api.store.apply((0..bounds::MAILBOX).map(|_| signal()).collect()).await.unwrap();
    api.post(&format!("/v1/orchestrations/{id}/signals/s"), json!(1)).await
}

async fn refused_update(api: &Api) -> Response {
    let engine = api.engine().await;
    engine.orchestrate_json("refusing", OrchestrationOptions::default(), |_, context| async move {
        let updates = context.updates::<Value>("u")?;
        loop {
            updates.next().await.refuse("not now");
        }
    });
    let running = run(&engine);
    let id = api.post("/v1/orchestrations", json!({"kind": "refusing"})).await.expect(201)["id"].clone();
    let response = api.post(&format!("/v1/orchestrations/{}/updates/u", id.as_str().unwrap()), json!(1)).await;
    engine.stop();
    running.await.unwrap();
    response
}

/// Sends the head of a request and half of its body.
async fn half_a_body(api: &Api) -> Response {
    let request = api.request("POST", "/v1/tasks").json(&json!({"kind": "a long kind"}));
    let bytes = request.bytes();
    let mut stream = TcpStream::connect(api.address).await.unwrap();
    stream.write_all(&bytes[..bytes.len() - 5]).await.unwrap();
    read_response(&mut stream).await
}
