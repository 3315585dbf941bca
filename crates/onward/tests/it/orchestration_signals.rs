//! Signals that are sent in the process that runs the orchestration. They are part of the engine's
//! next write.

use std::sync::{Arc, Mutex};

use onward::orchestration::{OrchestrationContext, Signal, select_all};
use onward::{Engine, Failure, TaskId, TaskState};
use onward_store::{Error, Outcome, Store, StoreDecorator, StoreFuture, StoreReads, Write};
use serde::{Deserialize, Serialize};

use crate::fixture::{TestStore, record, start as start_run, stop};
use crate::orchestrations::{Double, Work, finish, start};

on_every_store! {
    a_signal_and_the_claim_of_the_turn_that_it_brings_are_one_commit,
    signals_keep_their_order_and_are_taken_in_once_while_the_engine_stops_and_starts,
    a_signal_that_the_store_cannot_write_is_an_error_of_its_sender_and_ends_no_run,
    a_declared_signal_is_sent_and_taken_with_its_type,
    a_refused_signal_is_an_error_of_its_sender_while_the_engine_runs,
    signals_offered_to_waits_that_are_dropped_keep_their_order,
    a_signal_offered_to_a_dropped_wait_goes_to_the_next_one,
}

/// A store that records the other writes of each call with a signal, and fails such calls on
/// request.
#[derive(Debug)]
struct Calls {
    inner: Arc<dyn Store>,
    with_signals: Mutex<Vec<Vec<Write>>>,
    fails: bool,
}

impl StoreDecorator for Calls {
    fn inner(&self) -> &dyn Store {
        &*self.inner
    }

    fn apply(&self, writes: Vec<Write>) -> StoreFuture<'_, Vec<Outcome>> {
        if writes.iter().any(|write| matches!(write, Write::Signal(_))) {
            self.with_signals.lock().unwrap().push(writes.clone());
            if self.fails {
                return Box::pin(async { Err(Error::invalid("no signal goes through here")) });
            }
        }
        self.inner.apply(writes)
    }
}

/// Receives `work.0` signals.
async fn listen(work: Work, context: OrchestrationContext) -> Result<String, Failure> {
    for number in 0..work.0 {
        let sent: u32 = context.event("sent")?.await?;
        if sent != number {
            return Err(Failure::permanent(format!("{sent} came in the place of {number}")));
        }
    }
    Ok(work.0.to_string())
}

async fn engine(store: &TestStore, fails: bool) -> (Engine, Arc<Calls>) {
    let calls = Arc::new(Calls { inner: store.shared(), with_signals: Mutex::default(), fails });
    let engine = Engine::builder().store(calls.clone()).open().await.unwrap();
    engine.register(|task: Double, _| async move { Ok(task.0 * 2) });
    engine.orchestrate(listen);
    (engine, calls)
}

/// Runs a task, so that the engine certainly runs.
async fn runs(engine: &Engine) {
    assert_eq!(engine.submit(Double(4)).await.unwrap().wait().await.unwrap(), 8);
}

/// Returns an orchestration that waits for its first signal.
async fn listener(engine: &Engine, signals: u32) -> TaskId {
    let task = engine.submit(Work(signals)).await.unwrap().id();
    engine.run_until_idle().await.unwrap();
    task
}

/// Shows: D3, D11
async fn a_signal_and_the_claim_of_the_turn_that_it_brings_are_one_commit(store: TestStore) {
    let (engine, calls) = engine(&store, false).await;
    let task = listener(&engine, 1).await;
    let run = start_run(&engine);
    runs(&engine).await;
    engine.signal(task, "sent", &0u32).await.unwrap();
    assert_eq!(engine.wait(task).await.unwrap().state, TaskState::Completed);
    stop(&engine, run).await;
    let calls = calls.with_signals.lock().unwrap();
    let claims = |writes: &Vec<Write>| matches!(writes.last(), Some(Write::Claim(_)));
    assert!(calls.len() == 1 && calls.iter().all(claims), "{calls:?}");
}

/// Shows: D3
async fn signals_keep_their_order_and_are_taken_in_once_while_the_engine_stops_and_starts(store: TestStore) {
    let (engine, _) = engine(&store, false).await;
    let task = listener(&engine, 60).await;
    for round in 0..20 {
        let run = start_run(&engine);
        if round % 2 == 0 {
            runs(&engine).await;
        }
        for number in [0, 1, 2] {
            if number == round % 3 {
                engine.stop();
            }
            engine.signal(task, "sent", &(round * 3 + number)).await.unwrap();
        }
        run.await.unwrap();
    }
    assert_eq!(finish(&engine, task).await.unwrap(), "60");
}

/// Shows: D3
async fn a_signal_that_the_store_cannot_write_is_an_error_of_its_sender_and_ends_no_run(store: TestStore) {
    let (engine, _) = engine(&store, true).await;
    let task = listener(&engine, 1).await;
    let run = start_run(&engine);
    runs(&engine).await;
    let failed = engine.signal(task, "sent", &0u32).await.unwrap_err().to_string();
    assert!(failed.contains("no signal goes through here"), "{failed}");
    store.clock.advance(crate::fixture::HOUR);
    runs(&engine).await;
    stop(&engine, run).await;
    assert_eq!(record(&store, task).await.state, TaskState::Blocked);
}

/// Shows: D3
async fn a_refused_signal_is_an_error_of_its_sender_while_the_engine_runs(store: TestStore) {
    let (engine, _) = engine(&store, false).await;
    let run = start_run(&engine);
    runs(&engine).await;
    assert!(engine.signal(TaskId(99), "sent", &0u32).await.unwrap_err().is_not_found());
    let task = start(&engine).await;
    engine.signal(task, "sent", &0u32).await.unwrap();
    stop(&engine, run).await;
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Parcel {
    number: u32,
}

const PACKED: Signal<Parcel> = Signal::new("packed");
const UNNAMED: Signal<()> = Signal::new("un\u{200b}named");

/// Shows: D3
async fn a_declared_signal_is_sent_and_taken_with_its_type(store: TestStore) {
    let engine = crate::orchestrations::engine(&store, |_, context| async move {
        assert!(UNNAMED.next(&context).is_err());
        let first = PACKED.next(&context)?.await?;
        let queue = PACKED.queue(&context)?;
        let (second, third) = (queue.next().await?, queue.next().await?);
        Ok(format!("{} {} {}", first.number, second.number, third.number))
    })
    .await;
    let task = engine.submit_with(Work(1)).key("A-17").await.unwrap().id();
    PACKED.send(&engine, task, &Parcel { number: 4 }).await.unwrap();
    PACKED.send_to_key(&engine, "work", "A-17", &Parcel { number: 5 }).await.unwrap();
    // A signal may also be sent by its name as text.
    engine.signal(task, PACKED.name(), &Parcel { number: 6 }).await.unwrap();
    assert_eq!(finish(&engine, task).await.unwrap(), "4 5 6");
    let error = UNNAMED.send(&engine, task, &()).await.unwrap_err();
    assert!(error.is_invalid() && error.to_string().contains("U+200B at position 3"), "{error}");
    PACKED.send_or_keep(&engine, ("work", "A-18"), crate::fixture::HOUR, &Parcel { number: 7 }).await.unwrap();
    let kept = engine.tasks().key("A-18").first().await.unwrap().unwrap();
    assert_eq!(store.instance(kept.id).await.unwrap().unwrap().waiting, 1);
}

/// Shows: D4
async fn signals_offered_to_waits_that_are_dropped_keep_their_order(store: TestStore) {
    let engine = store.engine().await;
    engine.orchestrate(|_: Work, context: OrchestrationContext| async move {
        let sent = context.queue::<u32>("sent")?;
        let mut taken = Vec::new();
        for _ in 0..3 {
            // Three waits are offered signals. One takes its signal, and the others are dropped.
            let (_, first) = select_all([sent.next(), sent.next(), sent.next()]).await;
            taken.push(first?);
        }
        while let Some(next) = sent.try_next()? {
            taken.push(next);
        }
        Ok(format!("{taken:?}"))
    });
    let task = start(&engine).await;
    for number in 1..=5 {
        engine.signal(task, "sent", &number).await.unwrap();
    }
    assert_eq!(finish(&engine, task).await.unwrap(), "[1, 2, 3, 4, 5]");
}

/// Shows: D4
async fn a_signal_offered_to_a_dropped_wait_goes_to_the_next_one(store: TestStore) {
    let engine = store.engine().await;
    engine.orchestrate(|_: Work, context: OrchestrationContext| async move {
        let sent = context.queue::<u32>("sent")?;
        let (first, second, third) = (sent.next(), sent.next(), sent.next());
        drop(first);
        Ok(format!("{} {}", second.await?, third.await?))
    });
    let task = start(&engine).await;
    for number in 1..=2 {
        engine.signal(task, "sent", &number).await.unwrap();
    }
    assert_eq!(finish(&engine, task).await.unwrap(), "1 2");
}
