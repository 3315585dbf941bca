//! The circuit breakers: a store that fails is not called for a while.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use onward_server::http::bounds;
use onward_store::{
    Error, ManualClock, MemoryStore, Outcome, Read, ReadReply, Store, StoreDecorator, StoreFuture, Write,
};
use serde_json::json;

use crate::api::Api;

/// A store whose reads or writes fail on request. It counts the calls that reach it.
#[derive(Debug)]
struct Failing {
    inner: MemoryStore,
    reads_fail: AtomicBool,
    writes_fail: AtomicBool,
    calls: AtomicU64,
}

impl Failing {
    fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    fn fail(&self, reads: bool, writes: bool) {
        self.reads_fail.store(reads, Ordering::Relaxed);
        self.writes_fail.store(writes, Ordering::Relaxed);
    }
}

impl StoreDecorator for Failing {
    fn inner(&self) -> &dyn Store {
        &self.inner
    }

    fn apply(&self, writes: Vec<Write>) -> StoreFuture<'_, Vec<Outcome>> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        match self.writes_fail.load(Ordering::Relaxed) {
            true => Box::pin(async { Err(Error::full("the disk is full")) }),
            false => self.inner.apply(writes),
        }
    }

    fn read(&self, read: Read) -> StoreFuture<'_, ReadReply> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        match self.reads_fail.load(Ordering::Relaxed) {
            true => Box::pin(async { Err(Error::io("the connection is lost")) }),
            false => Store::read(&self.inner, read),
        }
    }
}

fn on_failing(case: impl AsyncFnOnce(Api, Arc<Failing>)) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let clock = Arc::new(ManualClock::default());
        let store = Arc::new(Failing {
            inner: MemoryStore::with_clock(clock.clone()),
            reads_fail: AtomicBool::new(false),
            writes_fail: AtomicBool::new(false),
            calls: AtomicU64::new(0),
        });
        let api = Api::start(store.clone(), clock).await;
        case(api, store).await;
    });
}

/// Sends a request that is refused, and returns the seconds until the next trial.
async fn refused(api: &Api) -> u64 {
    let response = api.get("/v1/queues").await;
    let seconds = response.header("retry-after").unwrap().parse().unwrap();
    response.expect_problem(503, "store_unavailable");
    seconds
}

/// Shows: W8
#[test]
fn a_store_that_fails_is_called_once_after_a_second_and_then_ever_less_often() {
    on_failing(async |api, store| {
        store.fail(true, false);
        for _ in 0..bounds::STORE_FAILURES {
            refused(&api).await;
        }
        let mut pauses = vec![1];
        for _ in 0..6 {
            let calls = store.calls();
            let pause = *pauses.last().unwrap();
            assert_eq!(refused(&api).await, pause);
            assert_eq!(store.calls(), calls, "the store was called while the breaker was open");
            api.clock.advance(Duration::from_secs(pause));
            pauses.push(refused(&api).await);
            assert_eq!(store.calls(), calls + 1, "a trial is one call");
        }
        assert_eq!(pauses, [1, 2, 4, 8, 16, 30, 30]);
        store.fail(false, false);
        api.clock.advance(bounds::STORE_PAUSE_MAXIMUM);
        api.get("/v1/queues").await.expect(200);
        api.get("/v1/queues").await.expect(200);
    });
}

/// Shows: W8
#[test]
fn a_store_that_cannot_be_written_is_still_read() {
    on_failing(async |api, store| {
        let submit = async || api.post("/v1/tasks", json!({"kind": "k"})).await;
        store.fail(false, true);
        for _ in 0..bounds::STORE_FAILURES {
            submit().await.expect_problem(503, "store_unavailable");
        }
        api.get("/v1/tasks").await.expect(200);
        let calls = store.calls();
        let response = submit().await;
        assert_eq!(response.header("retry-after"), Some("1"));
        let problem = response.expect_problem(503, "store_unavailable");
        assert!(problem["detail"].as_str().unwrap().contains("in a row"), "{problem}");
        // The key of the request was read, and nothing was written.
        assert_eq!(store.calls(), calls + 1);
        store.fail(false, false);
        api.clock.advance(bounds::STORE_PAUSE);
        submit().await.expect(201);
    });
}

#[test]
fn refused_requests_do_not_open_a_breaker() {
    on_failing(async |api, _| {
        for _ in 0..2 * bounds::STORE_FAILURES {
            api.post("/v1/tasks/99/cancel", json!({})).await.expect_problem(404, "not_found");
            api.put("/v1/limits/all", json!({"concurrency": 0, "rate": {"tasks": 0, "per": "1s"}})).await;
        }
        api.submit("k").await;
    });
}
