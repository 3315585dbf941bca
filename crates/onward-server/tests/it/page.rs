//! The files of the web page, and the stream that keeps it up to date.

use onward_server::http::ServerOptions;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;

use crate::api::Api;
use crate::client::Request;

on_every_store! {
    the_page_is_served_without_a_credential_and_with_a_strict_policy,
    assets_never_change_and_are_compressed,
    changes_are_reported_without_events,
    page_and_api_work_below_a_path,
}

/// Returns the path of the module that the page starts with.
async fn start(api: &Api) -> String {
    let text = api.send(Request::new("GET", "/")).await.text();
    let (_, rest) = text.split_once("src=\"").unwrap();
    format!("/{}", rest.split('"').next().unwrap())
}

/// Shows: B10
async fn the_page_is_served_without_a_credential_and_with_a_strict_policy(api: Api) {
    let page = api.send(Request::new("GET", "/")).await;
    assert_eq!((page.status, page.header("content-type")), (200, Some("text/html; charset=utf-8")));
    let policy = page.header("content-security-policy").unwrap();
    assert!(policy.contains("default-src 'self'") && !policy.contains("unsafe"), "{policy}");
    assert_eq!(page.header("cache-control"), Some("no-cache"));
    let tag = page.header("etag").unwrap();
    assert_eq!(api.send(Request::new("GET", "/").header("if-none-match", tag)).await.status, 304);
    // A name that leads to this machine from elsewhere is refused, as it is for the API.
    api.send(Request::new("GET", "/").header("host", "evil.example")).await.expect_problem(421, "host_unknown");
}

async fn assets_never_change_and_are_compressed(api: Api) {
    let path = start(&api).await;
    let plain = api.send(Request::new("GET", &path)).await;
    assert_eq!(plain.header("content-type"), Some("text/javascript; charset=utf-8"));
    assert!(plain.header("cache-control").unwrap().contains("immutable"));
    let packed = api.send(Request::new("GET", &path).header("accept-encoding", "br, gzip")).await;
    assert_eq!(packed.header("content-encoding"), Some("gzip"));
    assert!(packed.body.len() < plain.body.len() && packed.body.starts_with(&[0x1f, 0x8b]));
    let (_, file) = path.rsplit_once('/').unwrap();
    for unknown in [format!("/assets/0/{file}"), path.replace(file, "none.js"), path.replace(file, "../index.html")] {
        api.send(Request::new("GET", &unknown)).await.expect_problem(404, "route_unknown");
    }
}

async fn page_and_api_work_below_a_path(api: Api) {
    let mut options = ServerOptions::default();
    options.base_path = "/work/onward".to_owned();
    let other = api.another(options).await;
    let outside = other.send(Request::new("GET", "/work/onward")).await;
    assert_eq!((outside.status, outside.header("location")), (308, Some("/work/onward/")));
    let page = other.send(Request::new("GET", "/work/onward/")).await;
    let (_, rest) = page.text().split_once("src=\"").map(|(one, two)| (one.to_owned(), two.to_owned())).unwrap();
    let asset = rest.split('"').next().unwrap();
    assert_eq!(other.send(Request::new("GET", &format!("/work/onward/{asset}"))).await.status, 200);
    let created = other.post("/work/onward/v1/tasks", serde_json::json!({"kind": "k"})).await;
    assert_eq!(created.header("location"), Some("/work/onward/v1/tasks/1"));
    other.send(Request::new("GET", "/v1/health/live")).await.expect_problem(404, "route_unknown");
    other.get("/work/onward/v1/none").await.expect_problem(404, "route_unknown");
}

/// Shows: B10
async fn changes_are_reported_without_events(api: Api) {
    let mut stream = TcpStream::connect(api.address).await.unwrap();
    stream.write_all(&api.request("GET", "/v1/changes").bytes()).await.unwrap();
    let mut lines = BufReader::new(stream).lines();
    let mut next = async |text: &str| {
        while let Some(line) = lines.next_line().await.unwrap() {
            if line.contains(text) {
                return;
            }
        }
        panic!("the stream has ended before {text}");
    };
    next("{\"number\":1}").await;
    api.submit("k").await;
    next("{\"number\":2}").await;
    api.server.begin_stop();
    next("event: bye").await;
}

/// Shows: B10
#[test]
fn an_open_page_reads_nothing_while_nothing_changes() {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::Duration;

    use onward_store::{ManualClock, MemoryStore, Read, ReadReply, Store, StoreFuture};

    #[derive(Debug)]
    struct Counting(MemoryStore, AtomicU64);

    impl onward_store::StoreDecorator for Counting {
        fn inner(&self) -> &dyn Store {
            &self.0
        }

        fn read(&self, read: Read) -> StoreFuture<'_, ReadReply> {
            self.1.fetch_add(1, Ordering::Relaxed);
            Store::read(&self.0, read)
        }
    }

    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let clock = Arc::new(ManualClock::default());
        let store = Arc::new(Counting(MemoryStore::with_clock(clock.clone()), AtomicU64::new(0)));
        let api = Api::start(store.clone(), clock).await;
        let mut stream = TcpStream::connect(api.address).await.unwrap();
        stream.write_all(&api.request("GET", "/v1/changes").bytes()).await.unwrap();
        let mut lines = BufReader::new(stream).lines();
        while !lines.next_line().await.unwrap().unwrap().contains("number") {}
        let before = store.1.load(Ordering::Relaxed);
        let more = async { while !lines.next_line().await.unwrap().unwrap().contains("number") {} };
        assert!(tokio::time::timeout(Duration::from_millis(600), more).await.is_err(), "a message without a change");
        assert_eq!(store.1.load(Ordering::Relaxed), before, "an idle page reads");
    });
}
