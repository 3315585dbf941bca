//! Middleware, which runs around handlers.

use std::sync::{Arc, Mutex};

use onward::handlers::Next;
use onward::{Context, Engine, Failure, HandlerOptions, Output, TaskState};

use crate::fixture::{Gate, TestStore, error, record, start, state, stop, submit};

on_every_store! {
    middleware_of_shorter_patterns_is_outside_and_a_handlers_own_inside,
    middleware_of_some_kinds_of_a_pattern_runs_for_those_alone,
    a_middleware_may_answer_in_place_of_the_handler,
    a_middleware_may_change_the_result,
    a_panic_in_a_handler_passes_through_its_middleware,
    a_panic_in_a_middleware_is_a_failure_of_the_attempt,
    an_attempt_that_is_aborted_takes_its_middleware_along,
}

/// A trace of the actions, in order.
#[derive(Clone, Default)]
struct Trace(Arc<Mutex<Vec<String>>>);

impl Trace {
    fn add(&self, what: impl Into<String>) {
        self.0.lock().unwrap().push(what.into());
    }

    fn seen(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }

    /// Returns a middleware that records its entry and exit.
    fn middleware(
        &self,
        name: &'static str,
    ) -> impl Fn(Context, Next) -> std::pin::Pin<Box<dyn Future<Output = Result<Output, Failure>> + Send>>
    + Send
    + Sync
    + 'static {
        let trace = self.clone();
        move |context, next| {
            let trace = trace.clone();
            Box::pin(async move {
                trace.add(format!("> {name}"));
                let _left = Left(trace, name);
                next.run(context).await
            })
        }
    }
}

/// A guard that records the exit of a middleware, however it happens.
struct Left(Trace, &'static str);

impl Drop for Left {
    fn drop(&mut self) {
        self.0.add(format!("< {}", self.1));
    }
}

/// Registers a handler that records that it runs.
fn traced(engine: &Engine, trace: &Trace, options: HandlerOptions) {
    let trace = trace.clone();
    engine.handle_with("image:resize", options, move |_| {
        trace.add("handler");
        async { Ok::<(), Failure>(()) }
    });
}

/// Shows: Q7
async fn middleware_of_shorter_patterns_is_outside_and_a_handlers_own_inside(store: TestStore) {
    let (engine, trace) = (store.engine().await, Trace::default());
    traced(&engine, &trace, HandlerOptions::new().wrap(trace.middleware("own")));
    engine.options("image:resize", HandlerOptions::new().wrap(trace.middleware("kind")));
    engine.options("image:*", HandlerOptions::new().wrap(trace.middleware("image")));
    engine.wrap(trace.middleware("first")).wrap(trace.middleware("second"));
    engine.options("mail:*", HandlerOptions::new().wrap(trace.middleware("mail")));
    submit(&engine, "image:resize").await;
    engine.drain().await.unwrap();
    let expected = [
        "> first", "> second", "> image", "> kind", "> own", "handler", "< own", "< kind", "< image", "< second",
        "< first",
    ];
    assert_eq!(trace.seen(), expected);
}

/// Shows: Q7
async fn middleware_of_some_kinds_of_a_pattern_runs_for_those_alone(store: TestStore) {
    let (engine, trace) = (store.engine().await, Trace::default());
    engine.handle("image:*", |_| async { Ok::<(), Failure>(()) });
    engine.options("image:raw:*", HandlerOptions::new().wrap(trace.middleware("raw")));
    submit(&engine, "image:resize").await;
    engine.drain().await.unwrap();
    assert!(trace.seen().is_empty());
    submit(&engine, "image:raw:crop").await;
    engine.drain().await.unwrap();
    assert_eq!(trace.seen(), ["> raw", "< raw"]);
}

/// Shows: Q7
async fn a_middleware_may_answer_in_place_of_the_handler(store: TestStore) {
    let (engine, trace) = (store.engine().await, Trace::default());
    traced(&engine, &trace, HandlerOptions::new());
    engine.wrap(|_, _| async { Err(Failure::permanent("not on this machine")) });
    let id = submit(&engine, "image:resize").await;
    engine.drain().await.unwrap();
    assert_eq!((state(&store, id).await, trace.seen()), (TaskState::Failed, Vec::new()));
}

/// Shows: Q7
async fn a_middleware_may_change_the_result(store: TestStore) {
    let engine = store.engine().await;
    engine.handle("any", |_| async { Ok::<_, Failure>("result") });
    engine.wrap(|context, next| async move {
        let output = next.run(context).await?;
        let result = output.bytes().map(|bytes| bytes.to_vec()).unwrap_or_default();
        Ok(Output::from([b"signed ".to_vec(), result].concat()))
    });
    let id = submit(&engine, "any").await;
    engine.drain().await.unwrap();
    assert_eq!(record(&store, id).await.result.as_deref(), Some(&b"signed result"[..]));
}

/// Shows: Q7
async fn a_panic_in_a_handler_passes_through_its_middleware(store: TestStore) {
    let (engine, trace) = (store.engine().await, Trace::default());
    engine.handle("panic", |context| {
        assert!(context.attempt() > 9, "too early");
        async { Ok::<(), Failure>(()) }
    });
    engine.wrap(trace.middleware("around"));
    let id = submit(&engine, "panic").await;
    engine.drain().await.unwrap();
    assert_eq!(error(&store, id).await, "the handler panicked: too early");
    assert_eq!(trace.seen(), ["> around", "< around"]);
}

/// Shows: Q7
async fn a_panic_in_a_middleware_is_a_failure_of_the_attempt(store: TestStore) {
    let engine = store.engine().await;
    engine.handle("any", |_| async { Ok::<(), Failure>(()) });
    engine.wrap(|_, next| async move {
        drop(next);
        panic!("a fault in the middleware")
    });
    let id = submit(&engine, "any").await;
    engine.drain().await.unwrap();
    assert_eq!(error(&store, id).await, "the handler panicked: a fault in the middleware");
}

/// Shows: Q7, T13
async fn an_attempt_that_is_aborted_takes_its_middleware_along(store: TestStore) {
    let engine = store.builder().grace(std::time::Duration::ZERO).open().await.unwrap();
    let (trace, gate) = (Trace::default(), Gate::new());
    engine.handle("hold", gate.handler()).wrap(trace.middleware("around"));
    let id = submit(&engine, "hold").await;
    let run = start(&engine);
    gate.entered(1).await;
    engine.cancel(id).await.unwrap();
    assert_eq!(engine.wait(id).await.unwrap().state, TaskState::Cancelled);
    assert_eq!(trace.seen(), ["> around", "< around"]);
    stop(&engine, run).await;
}
