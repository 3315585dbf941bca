//! Events: pages, long polls and streams.

use std::time::Duration;

use onward_server::http::{NewKey, Role, ServerOptions, bounds};
use onward_store::{NewTask, Outcome, Prune, Write};
use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;

use crate::api::Api;
use crate::client::Request;

on_every_store! {
    a_stream_resumes_behind_its_last_event_at_another_server,
    a_stream_is_filtered,
    a_long_poll_returns_with_the_first_event,
    a_pruned_position_is_reported_as_a_gap,
    streams_are_bounded,
    a_stream_ends_when_its_key_is_revoked_here,
    a_stream_sends_nothing_after_its_key_was_revoked_elsewhere,
    a_stream_ends_when_its_key_expires,
    a_page_that_selects_nothing_ends_early_with_its_cursor,
}

/// An open event stream.
struct Stream(BufReader<TcpStream>);

/// A message of a stream.
#[derive(Debug, Default, PartialEq, Eq)]
struct Message {
    event: String,
    id: String,
    data: String,
}

impl Stream {
    async fn open(api: &Api, request: Request) -> Self {
        let mut stream = TcpStream::connect(api.address).await.unwrap();
        stream.write_all(&request.header("accept", "text/event-stream").bytes()).await.unwrap();
        Self(BufReader::new(stream))
    }

    /// Returns what the stream has sent when it has ended.
    async fn rest(mut self) -> String {
        let mut rest = String::new();
        self.0.read_to_string(&mut rest).await.unwrap();
        rest
    }

    /// Returns the next message. The frames of chunked encoding and comments are skipped: they are
    /// no fields.
    async fn next(&mut self) -> Message {
        let mut message = Message::default();
        loop {
            let mut line = String::new();
            assert_ne!(self.0.read_line(&mut line).await.unwrap(), 0, "the stream has ended");
            match line.trim_end().split_once(": ") {
                Some(("event", event)) => event.clone_into(&mut message.event),
                Some(("id", id)) => id.clone_into(&mut message.id),
                Some(("data", data)) => data.clone_into(&mut message.data),
                _ if !message.data.is_empty() => return message,
                _ => {}
            }
        }
    }
}

/// Shows: W8
async fn a_stream_resumes_behind_its_last_event_at_another_server(api: Api) {
    api.submit("a").await;
    let mut stream = Stream::open(&api, api.request("GET", "/v1/events")).await;
    let first = stream.next().await;
    assert_eq!(first.event, "submitted");
    api.submit("b").await;
    let second = stream.next().await;
    assert!(second.data.contains("\"kind\":\"b\""), "{second:?}");
    drop(stream);
    api.submit("c").await;
    let other = api.another(ServerOptions::default()).await;
    let request = other.request("GET", "/v1/events").header("last-event-id", &second.id);
    let third = Stream::open(&other, request).await.next().await;
    assert!(third.data.contains("\"kind\":\"c\""), "{third:?}");
}

async fn a_stream_is_filtered(api: Api) {
    for (kind, queue) in [("a", "x"), ("b", "x"), ("a", "y")] {
        api.post("/v1/tasks", json!({"kind": kind, "queue": queue})).await.expect(201);
    }
    api.post("/v1/tasks/3/cancel", json!({})).await.expect(200);
    let first = async |path: &str| Stream::open(&api, api.request("GET", path)).await.next().await;
    assert!(first("/v1/events?kinds=b").await.data.contains("\"task\":\"2\""));
    assert!(first("/v1/events?queue=y").await.data.contains("\"task\":\"3\""));
    assert_eq!(first("/v1/events?ends=true").await.event, "cancelled");
    assert!(first("/v1/tasks/2/events").await.data.contains("\"task\":\"2\""));
    api.get("/v1/tasks/7/events").await.expect_problem(404, "not_found");
}

async fn a_long_poll_returns_with_the_first_event(api: Api) {
    api.submit("a").await;
    let start = api.get("/v1/events").await.expect(200)["next"].as_str().unwrap().to_owned();
    let empty = api.get(&format!("/v1/events?after={start}&wait=50ms")).await.expect(200);
    assert_eq!((&empty["events"], &empty["next"]), (&json!([]), &json!(start)));
    let path = format!("/v1/events?after={start}&wait=30s&kinds=b");
    let (page, ()) = tokio::join!(api.get(&path), async {
        api.submit("a").await;
        api.submit("b").await;
    });
    assert_eq!(page.expect(200)["events"][0]["kind"], "b");
    assert_eq!(api.get("/v1/events?after=x").await.expect_problem(422, "invalid")["field"], "after");
}

async fn a_pruned_position_is_reported_as_a_gap(api: Api) {
    for _ in 0..3 {
        api.submit("k").await;
    }
    api.post("/v1/tasks/1/cancel", json!({})).await.expect(200);
    let page = api.get("/v1/events?ends=true").await.expect(200);
    let after = page["next"].as_str().unwrap();
    api.post("/v1/tasks/2/cancel", json!({})).await.expect(200);
    api.post("/v1/tasks/3/cancel", json!({})).await.expect(200);
    let prune = Write::Prune(Prune { older_than: None, keep: Some(0), limit: 100 });
    assert!(matches!(api.store.apply(vec![prune]).await.unwrap()[..], [Outcome::Removed { .. }]));
    api.submit("last").await;
    let page = api.get(&format!("/v1/events?after={after}")).await.expect(200);
    assert!(page["gap"].is_string(), "{page}");
    let request = api.request("GET", "/v1/events").header("last-event-id", after);
    let mut stream = Stream::open(&api, request).await;
    assert_eq!(stream.next().await.event, "gap");
    while !stream.next().await.data.contains("\"kind\":\"last\"") {}
}

async fn streams_are_bounded(api: Api) {
    let mut options = ServerOptions::default();
    options.limits.streams = 1;
    let other = api.another(options).await;
    other.submit("k").await;
    let mut stream = Stream::open(&other, other.request("GET", "/v1/events")).await;
    stream.next().await;
    let refused = other.send(other.request("GET", "/v1/events").header("accept", "text/event-stream")).await;
    assert_eq!(refused.header("retry-after"), Some("5"));
    refused.expect_problem(429, "too_many_streams");
    // The place of a stream whose client has gone is free as soon as the server notices it.
    drop(stream);
    let mut tries = 0;
    while other.get("/v1/events?after=999.0.999&wait=1ms").await.status != 200 {
        tries += 1;
        assert!(tries < 10_000, "the place is not free");
        other.submit("k").await;
    }
}

/// Shows: W8
#[test]
fn streams_that_are_up_to_date_share_one_read() {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    use onward_store::{ManualClock, MemoryStore, Read, ReadReply, Store, StoreFuture};

    #[derive(Debug)]
    struct Counting {
        inner: MemoryStore,
        events: AtomicU64,
    }

    impl onward_store::StoreDecorator for Counting {
        fn inner(&self) -> &dyn Store {
            &self.inner
        }

        fn read(&self, read: Read) -> StoreFuture<'_, ReadReply> {
            if matches!(read, Read::Events { .. }) {
                self.events.fetch_add(1, Ordering::Relaxed);
            }
            Store::read(&self.inner, read)
        }
    }

    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let clock = Arc::new(ManualClock::default());
        let store = Arc::new(Counting { inner: MemoryStore::with_clock(clock.clone()), events: AtomicU64::new(0) });
        let api = Api::start(store.clone(), clock).await;
        let mut streams = Vec::new();
        for _ in 0..50 {
            streams.push(Stream::open(&api, api.request("GET", "/v1/events")).await);
        }
        for round in 0..10 {
            api.submit("k").await;
            for stream in &mut streams {
                assert!(stream.next().await.data.contains(&format!("\"task\":\"{}\"", round + 1)));
            }
        }
        let reads = store.events.load(Ordering::Relaxed);
        // Fifty streams that read alone would read a thousand pages for ten changes.
        assert!(reads < 200, "{reads} reads");
        let _ = tokio::time::timeout(Duration::from_millis(200), streams[0].0.read_u8()).await;
        assert_eq!(store.events.load(Ordering::Relaxed), reads, "idle streams read");
    });
}

/// Opens a stream with a key of its own, and reads its first event. Returns the stream and the id
/// of the key.
async fn with_own_key(api: &Api, expires_after: Option<Duration>) -> (Stream, String) {
    let new = NewKey { name: "own".to_owned(), role: Role::Viewer, expires_after };
    let (key, record) = api.keys.create(new).await.unwrap();
    api.submit("a").await;
    let mut stream = Stream::open(api, Request::new("GET", "/v1/events").key(&key)).await;
    assert_eq!(stream.next().await.event, "submitted");
    (stream, record.id)
}

/// Shows: W8
async fn a_stream_ends_when_its_key_is_revoked_here(api: Api) {
    let (stream, id) = with_own_key(&api, None).await;
    api.delete(&format!("/v1/keys/{id}")).await.expect(200);
    api.submit("b").await;
    let rest = stream.rest().await;
    assert!(rest.contains("event: bye") && !rest.contains("\"kind\":\"b\""), "{rest}");
}

/// Shows: W8
async fn a_stream_sends_nothing_after_its_key_was_revoked_elsewhere(api: Api) {
    let (stream, id) = with_own_key(&api, None).await;
    api.keys.revoke(&id).await.unwrap();
    api.clock.advance(bounds::KEY_CHECK);
    api.submit("b").await;
    let rest = stream.rest().await;
    assert!(rest.contains("event: bye") && !rest.contains("\"kind\":\"b\""), "{rest}");
}

async fn a_stream_ends_when_its_key_expires(api: Api) {
    let (stream, _) = with_own_key(&api, Some(Duration::from_secs(60))).await;
    api.clock.advance(Duration::from_secs(60));
    api.submit("b").await;
    let rest = stream.rest().await;
    assert!(rest.contains("event: bye") && !rest.contains("\"kind\":\"b\""), "{rest}");
}

/// Shows: W8
async fn a_page_that_selects_nothing_ends_early_with_its_cursor(api: Api) {
    let submit = |kind: &str| Write::Submit(Box::new(NewTask::new(kind).unwrap()));
    let read_at_once = bounds::EVENT_PAGE * bounds::EVENT_PAGES_READ;
    api.store.apply((0..read_at_once + 1).map(|_| submit("a")).collect()).await.unwrap();
    api.submit("b").await;
    let first = api.get("/v1/events?kinds=b").await.expect(200);
    assert_eq!(first["events"], json!([]));
    let next = first["next"].as_str().unwrap();
    let second = api.get(&format!("/v1/events?kinds=b&after={next}")).await.expect(200);
    assert_eq!(second["events"][0]["kind"], "b", "{second}");
}
