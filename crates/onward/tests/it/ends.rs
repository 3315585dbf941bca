//! Ends of attempts, and their effect on the task.

use onward_store::StoreReads;
use std::time::Duration;

use onward::task::{Ttl, TtlFrom};
use onward::{Backoff, Failure, HandlerOptions, RetryPolicy, TaskState};

use crate::fixture::{Gate, SECOND, TestStore, error, record, start, start_drain, state, stop, submit, task};

on_every_store! {
    a_task_runs_and_keeps_its_result,
    a_panic_in_a_handler_frees_its_slot,
    a_panic_before_a_handler_has_become_a_future_is_a_failure_too,
    a_permanent_failure_is_not_tried_again,
    the_last_attempt_goes_to_the_dead_letters,
    a_dead_letter_can_be_tried_again_under_its_number,
    a_retry_without_delay_needs_no_time_to_pass,
    a_failed_task_waits_for_its_back_off,
    each_shape_of_back_off_waits_as_it_says,
    jitter_spreads_delays_up_to_their_bounds,
    a_back_off_beyond_measure_does_not_overflow,
    a_handler_says_when_to_try_again,
    a_failure_that_does_not_count_uses_up_no_attempt,
    the_nearest_retry_policy_holds,
    a_result_beyond_the_limit_is_a_permanent_failure_that_says_so,
    a_handler_that_hangs_is_aborted_after_its_timeout_and_grace,
    a_handler_has_its_grace_to_end_well_after_a_timeout,
    the_deadline_ends_an_attempt_before_a_later_timeout,
    the_timeout_ends_an_attempt_before_a_later_deadline,
    no_attempt_starts_past_the_deadline,
    a_time_to_live_under_a_second_expires_on_time,
}

fn attempts(attempts: u32, delay: Duration) -> RetryPolicy {
    RetryPolicy { attempts, backoff: Backoff::Constant { delay } }
}

/// Shows: T1, T17
async fn a_task_runs_and_keeps_its_result(store: TestStore) {
    let engine = store.engine().await;
    engine.handle("greet", |_| async { Ok::<_, Failure>("hello") });
    let id = submit(&engine, "greet").await;
    assert_eq!(engine.drain().await.unwrap().completed, 1);
    let record = record(&store, id).await;
    assert_eq!((record.state, record.result.as_deref()), (TaskState::Completed, Some(&b"hello"[..])));
}

/// Shows: T21, T7
/// Beats: leaked-slot
async fn a_panic_in_a_handler_frees_its_slot(store: TestStore) {
    let engine = store.builder().concurrency(1).open().await.unwrap();
    engine.handle("panic", |_| async { if true { panic!("no such luck") } else { Ok::<(), Failure>(()) } });
    engine.handle("fine", |_| async { Ok::<(), Failure>(()) });
    let panics = submit(&engine, "panic").await;
    let fine = submit(&engine, "fine").await;
    engine.drain().await.unwrap();
    assert_eq!(state(&store, fine).await, TaskState::Completed);
    assert_eq!(error(&store, panics).await, "the handler panicked: no such luck");
}

/// Shows: T7
async fn a_panic_before_a_handler_has_become_a_future_is_a_failure_too(store: TestStore) {
    let engine = store.engine().await;
    engine.handle("panic", |context| {
        assert!(context.attempt() > 9, "too early");
        async { Ok::<(), Failure>(()) }
    });
    let id = submit(&engine, "panic").await;
    engine.drain().await.unwrap();
    assert_eq!(error(&store, id).await, "the handler panicked: too early");
}

/// Shows: T7
async fn a_permanent_failure_is_not_tried_again(store: TestStore) {
    let engine = store.builder().retry(attempts(5, Duration::ZERO)).open().await.unwrap();
    engine.handle("fail", |_| async { Err::<(), _>(Failure::permanent("no such image")) });
    let id = submit(&engine, "fail").await;
    engine.drain().await.unwrap();
    let record = record(&store, id).await;
    assert_eq!((record.state, record.attempts), (TaskState::Failed, 1));
}

/// Shows: T8
async fn the_last_attempt_goes_to_the_dead_letters(store: TestStore) {
    let engine = store.builder().retry(attempts(3, Duration::ZERO)).open().await.unwrap();
    engine.handle("fail", |_| async { Err::<(), _>(Failure::retryable("still down")) });
    let id = submit(&engine, "fail").await;
    let summary = engine.drain().await.unwrap();
    assert_eq!((summary.dead, summary.retried), (1, 2));
    let record = record(&store, id).await;
    assert_eq!((record.state, record.attempts, record.errors.len()), (TaskState::Dead, 3, 3));
}

/// Shows: T8
async fn a_dead_letter_can_be_tried_again_under_its_number(store: TestStore) {
    let engine = store.engine().await;
    engine.handle("mend", |context| async move {
        let is_mended = context.state::<std::sync::atomic::AtomicBool>()?;
        if is_mended.swap(true, std::sync::atomic::Ordering::SeqCst) {
            Ok(())
        } else {
            Err(Failure::retryable("broken"))
        }
    });
    engine.state(std::sync::atomic::AtomicBool::new(false));
    let id = submit(&engine, "mend").await;
    engine.drain().await.unwrap();
    assert_eq!(state(&store, id).await, TaskState::Dead);
    engine.retry(id).await.unwrap();
    engine.drain().await.unwrap();
    assert_eq!(state(&store, id).await, TaskState::Completed);
}

/// Shows: T7
async fn a_retry_without_delay_needs_no_time_to_pass(store: TestStore) {
    let engine = store.builder().retry(attempts(4, Duration::ZERO)).open().await.unwrap();
    engine.handle("fail", |_| async { Err::<(), _>(Failure::retryable("not yet")) });
    let id = submit(&engine, "fail").await;
    engine.drain().await.unwrap();
    let record = record(&store, id).await;
    assert_eq!((record.attempts, record.finished_at), (4, Some(record.submitted_at)));
}

/// Shows: T7
async fn a_failed_task_waits_for_its_back_off(store: TestStore) {
    let engine = store.builder().retry(attempts(2, SECOND)).open().await.unwrap();
    engine.handle("fail", |_| async { Err::<(), _>(Failure::retryable("not yet")) });
    let id = submit(&engine, "fail").await;
    engine.run_until_idle().await.unwrap();
    assert_eq!(state(&store, id).await, TaskState::Scheduled);
    store.clock.advance(SECOND);
    engine.run_until_idle().await.unwrap();
    assert_eq!(state(&store, id).await, TaskState::Dead);
}

/// Returns the delays before the second, third and fourth attempt of a task that always fails.
async fn delays(store: &TestStore, backoff: Backoff) -> Vec<Duration> {
    let engine = store.builder().retry(RetryPolicy { attempts: 4, backoff }).open().await.unwrap();
    engine.handle("fail", |_| async { Err::<(), _>(Failure::retryable("not yet")) });
    let id = submit(&engine, "fail").await;
    let mut delays = Vec::new();
    for _ in 0..3 {
        engine.run_until_idle().await.unwrap();
        delays.push(record(store, id).await.run_at - store.clock().now());
        store.clock.advance(delays[delays.len() - 1]);
    }
    delays
}

/// Shows: T7
async fn each_shape_of_back_off_waits_as_it_says(store: TestStore) {
    let (initial, maximum) = (SECOND, SECOND * 5);
    let shapes = [
        (Backoff::Constant { delay: SECOND }, [1, 1, 1]),
        (Backoff::Linear { initial, increment: SECOND * 2, maximum }, [1, 3, 5]),
        (Backoff::Linear { initial, increment: SECOND * 3, maximum }, [1, 4, 5]),
        (Backoff::Exponential { initial, factor: 2.0, maximum }, [1, 2, 4]),
        (Backoff::Exponential { initial, factor: 3.0, maximum }, [1, 3, 5]),
    ];
    for (backoff, seconds) in shapes {
        assert_eq!(delays(&store, backoff).await, seconds.map(|seconds| SECOND * seconds), "{backoff:?}");
    }
}

/// Shows: T7
async fn jitter_spreads_delays_up_to_their_bounds(store: TestStore) {
    let backoff = Backoff::ExponentialJitter { initial: SECOND * 100, factor: 2.0, maximum: SECOND * 300 };
    let delays = delays(&store, backoff).await;
    assert!(delays.iter().zip([100, 200, 300]).all(|(delay, bound)| *delay <= SECOND * bound), "{delays:?}");
    // The delays have whole microseconds, so two are equal once in a hundred million times.
    assert!(delays[0] != delays[1] && delays[1] != delays[2], "{delays:?}");
}

/// Shows: T7
/// Beats: backoff-overflow
async fn a_back_off_beyond_measure_does_not_overflow(store: TestStore) {
    let backoff = Backoff::Exponential { initial: Duration::MAX, factor: f64::MAX, maximum: Duration::MAX };
    let engine = store.builder().retry(RetryPolicy { attempts: 2, backoff }).open().await.unwrap();
    engine.handle("fail", |_| async { Err::<(), _>(Failure::retryable("not yet")) });
    let id = submit(&engine, "fail").await;
    engine.run_until_idle().await.unwrap();
    let record = record(&store, id).await;
    assert_eq!(record.run_at - record.submitted_at, onward_store::rules::retry::LONGEST_DELAY);
}

/// Shows: T7
async fn a_handler_says_when_to_try_again(store: TestStore) {
    let engine = store.builder().retry(attempts(2, Duration::ZERO)).open().await.unwrap();
    engine.handle("busy", |_| async { Err::<(), _>(Failure::retry_after("busy", SECOND * 30)) });
    let id = submit(&engine, "busy").await;
    engine.run_until_idle().await.unwrap();
    let record = record(&store, id).await;
    assert_eq!((record.state, record.run_at - record.submitted_at), (TaskState::Scheduled, SECOND * 30));
}

/// Shows: T7
async fn a_failure_that_does_not_count_uses_up_no_attempt(store: TestStore) {
    let engine = store.engine().await;
    engine.handle("busy", |_| async { Err::<(), _>(Failure::not_counted("busy", SECOND)) });
    let id = submit(&engine, "busy").await;
    for _ in 0..5 {
        engine.run_until_idle().await.unwrap();
        store.clock.advance(SECOND);
    }
    let record = record(&store, id).await;
    assert_eq!((record.state, record.attempts), (TaskState::Scheduled, 0));
}

/// Shows: T7
async fn the_nearest_retry_policy_holds(store: TestStore) {
    let now = Duration::ZERO;
    let builder = store.builder().retry(attempts(1, now)).queue_retry("patient", attempts(2, now));
    let engine = builder.open().await.unwrap();
    let fail = |_| async { Err::<(), _>(Failure::retryable("no")) };
    engine.handle("plain", fail).handle_with("kind", HandlerOptions::new().retry(attempts(3, now)), fail);
    let mut tasks = [task("plain"), task("plain"), task("kind"), task("kind")];
    for patient in &mut tasks[1..] {
        patient.queue = onward::Name::new("patient").unwrap();
    }
    tasks[3].retry = Some(attempts(4, now));
    let submitted = engine.submit_all(tasks.to_vec()).await.unwrap();
    engine.drain().await.unwrap();
    for (tried, submitted) in (1..).zip(submitted) {
        assert_eq!(record(&store, submitted.id()).await.attempts, tried);
    }
}

/// Shows: T1, T13
async fn a_result_beyond_the_limit_is_a_permanent_failure_that_says_so(store: TestStore) {
    let engine = store.engine().await;
    let limit = store.info().payload_limit;
    engine.handle("large", move |_| async move { Ok::<_, Failure>(vec![0; limit + 1]) });
    let id = submit(&engine, "large").await;
    assert_eq!(engine.drain().await.unwrap().failed, 1);
    let error = error(&store, id).await;
    assert!(error.contains("bytes and the limit"), "{error}");
}

/// Starts a task that never ends, and returns when its handler has started.
async fn hang(
    store: &TestStore,
    options: HandlerOptions,
) -> (onward::Engine, tokio::task::JoinHandle<()>, onward::TaskId) {
    let engine = store.engine().await;
    let gate = Gate::new();
    engine.handle_with("hang", options, gate.handler());
    let id = submit(&engine, "hang").await;
    let run = start(&engine);
    gate.entered(1).await;
    (engine, run, id)
}

/// Shows: T6
async fn a_handler_that_hangs_is_aborted_after_its_timeout_and_grace(store: TestStore) {
    let (engine, run, id) = hang(&store, HandlerOptions::new().timeout(SECOND)).await;
    let ended = tokio::spawn(async move {
        let record = engine.wait(id).await.unwrap();
        stop(&engine, run).await;
        record
    });
    let record = store.advance_until(SECOND, ended).await;
    assert_eq!(record.state, TaskState::Dead);
    assert_eq!(record.errors[0].message, "timed out after 1s");
}

/// Shows: T6
async fn a_handler_has_its_grace_to_end_well_after_a_timeout(store: TestStore) {
    let engine = store.engine().await;
    engine.handle_with("slow", HandlerOptions::new().timeout(SECOND), |context| async move {
        context.cancelled().cancelled().await;
        Ok::<_, Failure>("what was done so far")
    });
    let id = submit(&engine, "slow").await;
    store.advance_until(SECOND / 2, start_drain(&engine)).await;
    assert_eq!(state(&store, id).await, TaskState::Completed);
}

/// Shows: T6
async fn the_deadline_ends_an_attempt_before_a_later_timeout(store: TestStore) {
    let engine = store.engine().await;
    let gate = Gate::new();
    engine.handle("hang", gate.stoppable());
    let mut hang = task("hang");
    hang.timeout = Some(SECOND * 60);
    hang.deadline = Some(store.clock().now().plus(SECOND));
    let id = engine.submit_task(hang).await.unwrap().id();
    store.advance_until(SECOND / 4, start_drain(&engine)).await;
    assert_eq!(error(&store, id).await, "the deadline passed while it ran: stopped halfway");
}

/// Shows: T6
/// Beats: ignored-timeout
async fn the_timeout_ends_an_attempt_before_a_later_deadline(store: TestStore) {
    let engine = store.engine().await;
    let gate = Gate::new();
    engine.handle("hang", gate.stoppable());
    let mut hang = task("hang");
    hang.timeout = Some(SECOND);
    hang.deadline = Some(store.clock().now().plus(SECOND * 60));
    let id = engine.submit_task(hang).await.unwrap().id();
    store.advance_until(SECOND / 4, start_drain(&engine)).await;
    assert_eq!(error(&store, id).await, "timed out after 1s: stopped halfway");
}

/// Shows: T6
async fn no_attempt_starts_past_the_deadline(store: TestStore) {
    let engine = store.engine().await;
    engine.handle("late", |_| async { Ok::<(), Failure>(()) });
    let mut late = task("late");
    late.deadline = Some(store.clock().now().plus(SECOND));
    let id = engine.submit_task(late).await.unwrap().id();
    store.clock.advance(SECOND);
    engine.drain().await.unwrap();
    let record = store.task(id).await.unwrap().unwrap();
    assert_eq!((record.state, record.attempts), (TaskState::Expired, 0));
}

/// Shows: T6
/// Beats: rounded-ttl
async fn a_time_to_live_under_a_second_expires_on_time(store: TestStore) {
    let engine = store.engine().await;
    engine.handle("soon", |_| async { Ok::<(), Failure>(()) });
    let mut soon = task("soon");
    soon.ttl = Some(Ttl { duration: Duration::from_millis(250), from: TtlFrom::Submission });
    let early = engine.submit_task(soon.clone()).await.unwrap().id();
    store.clock.advance(Duration::from_millis(249));
    engine.drain().await.unwrap();
    let late = engine.submit_task(soon).await.unwrap().id();
    store.clock.advance(Duration::from_millis(250));
    engine.drain().await.unwrap();
    assert_eq!(state(&store, early).await, TaskState::Completed);
    assert_eq!(state(&store, late).await, TaskState::Expired);
}
