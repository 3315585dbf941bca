//! Handlers that run elsewhere: credit, kinds left to other engines, the outcome of ends, crashes.

use std::sync::Arc;
use std::time::Duration;

use onward::handlers::EndReport;
use onward::{Failure, Name, RetryPolicy, TaskState};
use tokio::sync::mpsc;

use crate::fixture::{Gate, SECOND, TestStore, error, record, start, state, stop, submit, task};

on_every_store! {
    an_engine_on_credit_calls_no_more_handlers_than_were_granted,
    a_retry_without_delay_uses_credit_as_any_other_attempt,
    a_skipped_kind_is_left_to_others_until_it_is_skipped_no_longer,
    the_end_of_an_attempt_is_reported_when_it_is_durable,
    an_end_that_the_store_refuses_is_reported_with_the_reason,
    an_end_after_the_lease_is_reported_as_stale,
    a_crash_is_retried_at_once_although_the_policy_permits_no_retry,
    a_task_whose_process_crashes_three_times_is_dead,
    a_released_attempt_does_not_count,
    a_checkpoint_of_any_bytes_reaches_the_next_attempt,
    the_time_left_of_an_attempt_ends_with_its_timeout,
}

/// Shows: W9
async fn an_engine_on_credit_calls_no_more_handlers_than_were_granted(store: TestStore) {
    let engine = store.builder().on_credit().open().await.unwrap();
    let gate = Gate::new();
    engine.handle("k", gate.handler());
    for _ in 0..5 {
        submit(&engine, "k").await;
    }
    let run = start(&engine);
    engine.grant(2);
    gate.entered(2).await;
    gate.open(2);
    store.settled().await;
    assert!(!gate.has_entered());
    engine.grant(5);
    gate.entered(3).await;
    gate.open(3);
    stop(&engine, run).await;
}

/// Shows: W9, T7
async fn a_retry_without_delay_uses_credit_as_any_other_attempt(store: TestStore) {
    let engine = store.builder().on_credit().retry(RetryPolicy::default()).open().await.unwrap();
    let (calls, mut called) = mpsc::unbounded_channel();
    engine.handle("k", move |context| {
        calls.send(context.attempt()).unwrap();
        async { Err::<(), _>(Failure::retry_after("again", Duration::ZERO)) }
    });
    submit(&engine, "k").await;
    let run = start(&engine);
    engine.grant(1);
    assert_eq!(called.recv().await, Some(1));
    store.settled().await;
    assert!(called.try_recv().is_err());
    engine.grant(2);
    assert_eq!(called.recv().await, Some(2));
    stop(&engine, run).await;
}

/// Shows: W9
async fn a_skipped_kind_is_left_to_others_until_it_is_skipped_no_longer(store: TestStore) {
    let engine = store.engine().await;
    let (one, other) = (Gate::new(), Gate::new());
    engine.handle("one", one.handler()).handle("other", other.handler());
    engine.skip_kinds([Name::new("one").unwrap()]);
    let skipped = submit(&engine, "one").await;
    submit(&engine, "other").await;
    let run = start(&engine);
    other.entered(1).await;
    other.open(1);
    store.settled().await;
    assert_eq!(state(&store, skipped).await, TaskState::Waiting);
    engine.skip_kinds([]);
    one.entered(1).await;
    one.open(1);
    stop(&engine, run).await;
}

/// Shows: W9
async fn the_end_of_an_attempt_is_reported_when_it_is_durable(store: TestStore) {
    let engine = store.engine().await;
    let (reports, mut reported) = mpsc::unbounded_channel();
    engine.handle("k", move |context| {
        let reports = reports.clone();
        context.on_end(move |report| reports.send(report).unwrap());
        async { Ok::<_, Failure>("done") }
    });
    let id = submit(&engine, "k").await;
    let run = start(&engine);
    assert_eq!(reported.recv().await, Some(EndReport::Durable));
    assert_eq!(state(&store, id).await, TaskState::Completed);
    stop(&engine, run).await;
}

/// Shows: W9
async fn an_end_that_the_store_refuses_is_reported_with_the_reason(store: TestStore) {
    let engine = store.engine().await;
    let limit = store.info().payload_limit;
    let (reports, mut reported) = mpsc::unbounded_channel();
    engine.handle("k", move |context| {
        let reports = reports.clone();
        context.on_end(move |report| reports.send(report).unwrap());
        async move { Ok::<_, Failure>(vec![0; limit + 1]) }
    });
    submit(&engine, "k").await;
    let run = start(&engine);
    assert!(matches!(reported.recv().await, Some(EndReport::Refused(why)) if why.contains(&limit.to_string())));
    stop(&engine, run).await;
}

/// Shows: W9, T21
async fn an_end_after_the_lease_is_reported_as_stale(store: TestStore) {
    let engine = store.builder().open().await.unwrap();
    let other = store.engine().await;
    let (reports, mut reported) = mpsc::unbounded_channel();
    let stolen = Arc::new(other);
    engine.handle("k", move |context| {
        let (reports, stolen) = (reports.clone(), Arc::clone(&stolen));
        context.on_end(move |report| reports.send(report).unwrap());
        async move {
            // Completed by its token, the attempt is over before its own end is written.
            stolen.complete(context.completion_token(), "by another").await.map_err(Failure::from)?;
            Ok("too late")
        }
    });
    let id = submit(&engine, "k").await;
    let run = start(&engine);
    assert_eq!(reported.recv().await, Some(EndReport::Stale));
    assert_eq!(record(&store, id).await.result.as_deref(), Some(&b"by another"[..]));
    stop(&engine, run).await;
}

/// Shows: W9, T21
async fn a_crash_is_retried_at_once_although_the_policy_permits_no_retry(store: TestStore) {
    let engine = store.builder().retry(RetryPolicy::NEVER).open().await.unwrap();
    engine.handle("k", |context| async move {
        if context.attempt() == 1 { Err(Failure::crashed("it was killed")) } else { Ok("done") }
    });
    let id = submit(&engine, "k").await;
    engine.drain().await.unwrap();
    let record = record(&store, id).await;
    assert_eq!((record.state, record.attempts), (TaskState::Completed, 2));
    assert_eq!(error(&store, id).await, "it was killed");
}

/// Shows: W9, T21
async fn a_task_whose_process_crashes_three_times_is_dead(store: TestStore) {
    let engine = store.builder().retry(RetryPolicy::NEVER).open().await.unwrap();
    engine.handle("k", |_| async { Err::<(), _>(Failure::crashed("it was killed")) });
    let id = submit(&engine, "k").await;
    engine.drain().await.unwrap();
    let record = record(&store, id).await;
    assert_eq!((record.state, record.attempts), (TaskState::Dead, 3));
}

/// Shows: W9
async fn a_released_attempt_does_not_count(store: TestStore) {
    let engine = store.engine().await;
    let first = Arc::new(std::sync::atomic::AtomicBool::new(true));
    engine.handle("k", move |context| {
        let is_first = first.swap(false, std::sync::atomic::Ordering::Relaxed);
        let attempt = context.attempt();
        async move { if is_first { Err(Failure::released()) } else { Ok(attempt.to_string()) } }
    });
    let id = submit(&engine, "k").await;
    engine.drain().await.unwrap();
    let record = record(&store, id).await;
    assert_eq!((record.result.as_deref(), record.errors.len()), (Some(&b"1"[..]), 0));
}

/// Shows: W9
async fn a_checkpoint_of_any_bytes_reaches_the_next_attempt(store: TestStore) {
    let engine = store.builder().retry(RetryPolicy::default()).open().await.unwrap();
    engine.handle("k", |context| async move {
        if let Some(checkpoint) = context.checkpoint_bytes() {
            return Ok(checkpoint.clone());
        }
        context.keep_checkpoint(vec![0, 255].into()).await?;
        Err(Failure::retry_after("again", Duration::ZERO))
    });
    let id = submit(&engine, "k").await;
    engine.drain().await.unwrap();
    assert_eq!(record(&store, id).await.result.as_deref(), Some(&[0, 255][..]));
}

/// Shows: W9
async fn the_time_left_of_an_attempt_ends_with_its_timeout(store: TestStore) {
    let engine = store.engine().await;
    engine.handle("k", |context| async move { Ok::<_, Failure>(format!("{:?}", context.time_left())) });
    let limited = onward::NewTask { timeout: Some(SECOND), ..task("k") };
    let limited = engine.submit_task(limited).await.unwrap().id();
    let unlimited = submit(&engine, "k").await;
    engine.drain().await.unwrap();
    assert_eq!(record(&store, limited).await.result.as_deref(), Some(&b"Some(1s)"[..]));
    assert_eq!(record(&store, unlimited).await.result.as_deref(), Some(&b"None"[..]));
}
