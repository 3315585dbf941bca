//! Bytes, rates and forecasts.

use std::time::Duration;

use onward::observe::{Forecast, RunningTask};
use onward::store::Clock;
use onward::task::ByteProgress;
use onward::{Context, Engine, Failure};

use crate::fixture::{Gate, SECOND, TestStore, record, start, start_drain, stop, submit};

on_every_store! {
    a_snapshot_shows_bytes_with_rate_and_time_left,
    bytes_that_an_earlier_attempt_did_do_not_count_as_fast,
    bytes_of_an_unknown_total_have_a_rate_and_no_end,
    the_last_bytes_stay_with_an_ended_task,
    what_says_nothing_is_estimated_from_the_history_of_its_kind,
    another_process_sees_bytes_and_time_left_in_the_record,
}

/// Registers a handler that reports its bytes at each of its steps, and waits before the next.
fn counting(engine: &Engine, gate: &Gate, steps: &'static [(u64, Option<u64>)]) {
    let gate = gate.clone();
    engine.handle("copy", move |context: Context| {
        let gate = gate.clone();
        async move {
            for &(done, total) in steps {
                context.progress_bytes(done, total);
                gate.pass().await;
            }
            Ok::<(), Failure>(())
        }
    });
}

fn running(engine: &Engine) -> RunningTask {
    engine.snapshot().running.remove(0)
}

/// Shows: T15, T19
async fn a_snapshot_shows_bytes_with_rate_and_time_left(store: TestStore) {
    let (engine, gate) = (store.engine().await, Gate::new());
    counting(&engine, &gate, &[(0, Some(1000)), (100, Some(1000))]);
    submit(&engine, "copy").await;
    let run = start(&engine);
    gate.entered(1).await;
    store.clock.advance(SECOND * 10);
    gate.open(1);
    gate.entered(1).await;
    let task = running(&engine);
    assert_eq!(task.bytes, Some(ByteProgress { done: 100, total: Some(1000) }));
    let forecast = task.forecast;
    assert_eq!((forecast.fraction, forecast.bytes_per_second), (Some(0.1), Some(10.0)));
    assert_eq!((forecast.remaining, forecast.is_estimated), (Some(SECOND * 90), false));
    gate.open(1);
    stop(&engine, run).await;
}

/// Shows: T15
async fn bytes_that_an_earlier_attempt_did_do_not_count_as_fast(store: TestStore) {
    let (engine, gate) = (store.engine().await, Gate::new());
    counting(&engine, &gate, &[(900, Some(1000)), (910, Some(1000))]);
    submit(&engine, "copy").await;
    let run = start(&engine);
    gate.entered(1).await;
    store.clock.advance(SECOND * 10);
    gate.open(1);
    gate.entered(1).await;
    assert_eq!(running(&engine).forecast.bytes_per_second, Some(1.0));
    gate.open(1);
    stop(&engine, run).await;
}

/// Shows: T15
async fn bytes_of_an_unknown_total_have_a_rate_and_no_end(store: TestStore) {
    let (engine, gate) = (store.engine().await, Gate::new());
    counting(&engine, &gate, &[(0, None), (50, None)]);
    submit(&engine, "copy").await;
    let run = start(&engine);
    gate.entered(1).await;
    store.clock.advance(SECOND * 10);
    gate.open(1);
    gate.entered(1).await;
    let mut expected = Forecast::default();
    expected.bytes_per_second = Some(5.0);
    assert_eq!(running(&engine).forecast, expected);
    gate.open(1);
    stop(&engine, run).await;
}

/// Shows: T15
async fn the_last_bytes_stay_with_an_ended_task(store: TestStore) {
    let engine = store.engine().await;
    engine.handle("copy", |context| async move {
        (0..=10_000).for_each(|done| context.progress_bytes(done, 10_000));
        Ok::<(), Failure>(())
    });
    let id = submit(&engine, "copy").await;
    engine.drain().await.unwrap();
    let expected = Some(ByteProgress { done: 10_000, total: Some(10_000) });
    assert_eq!(record(&store, id).await.progress.unwrap().bytes, expected);
}

/// Runs one task of a kind that takes ten seconds, and starts another that reports nothing.
async fn with_history(store: &TestStore, engine: &Engine, gate: &Gate) -> tokio::task::JoinHandle<()> {
    engine.handle("quiet", gate.handler());
    submit(engine, "quiet").await;
    let drained = start_drain(engine);
    gate.entered(1).await;
    store.clock.advance(SECOND * 10);
    gate.open(1);
    drained.await.unwrap();
    submit(engine, "quiet").await;
    let run = start(engine);
    gate.entered(1).await;
    store.clock.advance(SECOND * 4);
    run
}

/// Shows: T15, T19
async fn what_says_nothing_is_estimated_from_the_history_of_its_kind(store: TestStore) {
    let (engine, gate) = (store.engine().await, Gate::new());
    let run = with_history(&store, &engine, &gate).await;
    let task = engine.overview().await.unwrap().engine.unwrap().running.remove(0);
    let mut expected = Forecast::default();
    (expected.fraction, expected.remaining, expected.is_estimated) = (Some(0.4), Some(SECOND * 6), true);
    assert_eq!((task.fraction, task.forecast), (None, expected));
    gate.open(1);
    stop(&engine, run).await;
}

/// Shows: T15
async fn another_process_sees_bytes_and_time_left_in_the_record(store: TestStore) {
    let (engine, gate) = (store.engine().await, Gate::new());
    counting(&engine, &gate, &[(0, Some(400)), (100, Some(400))]);
    let id = submit(&engine, "copy").await;
    let run = start(&engine);
    gate.entered(1).await;
    store.clock.advance(SECOND * 10);
    gate.open(1);
    gate.entered(1).await;
    let mut task = record(&store, id).await;
    while task.progress.as_ref().and_then(|progress| progress.bytes).is_none_or(|bytes| bytes.done < 100) {
        store.advance(Duration::from_millis(100)).await;
        task = record(&store, id).await;
    }
    let forecast = Forecast::of_record(&task, None, store.clock.now()).unwrap();
    assert_eq!(forecast.fraction, Some(0.25));
    assert!(forecast.remaining.is_some_and(|left| left >= SECOND * 30), "{forecast:?}");
    gate.open(1);
    stop(&engine, run).await;
}
