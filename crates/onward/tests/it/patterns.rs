//! Handlers for patterns of kinds, and the options that apply to such kinds.

use std::time::Duration;

use onward::handlers::Verdict;
use onward::{Backoff, Context, Engine, Failure, HandlerOptions, RetryPolicy, TaskState};

use crate::fixture::{HOUR, SECOND, TestStore, error, record, start_drain, state, submit};

on_every_store! {
    a_pattern_serves_the_kinds_that_begin_so_and_no_others,
    the_longest_pattern_holds_and_a_kinds_own_handler_before_it,
    two_handlers_for_one_pattern_are_an_error_of_the_run,
    a_star_that_is_not_the_last_character_is_an_error_of_the_run,
    draining_by_patterns_leaves_what_others_serve,
    draining_by_patterns_waits_for_what_is_due_later,
    what_is_said_of_fewer_kinds_holds_before_what_is_said_of_more,
    a_pattern_has_a_timeout_of_its_own,
    two_policies_for_one_pattern_are_an_error_of_the_run,
    a_failure_policy_may_give_a_task_up_before_its_attempts_are_used,
    a_failure_policy_may_give_a_task_further_attempts,
    a_failure_policy_may_leave_an_attempt_uncounted,
    a_failure_policy_sees_the_failure_and_what_the_retry_policy_makes_of_it,
    a_failure_policy_sees_a_panic_too,
    the_retry_policy_holds_if_a_failure_policy_panics,
    a_reserved_kind_is_refused_wherever_a_program_names_one,
}

/// Registers a handler that returns `answer`.
fn answering(engine: &Engine, pattern: &str, answer: &'static str) {
    engine.handle(pattern, move |_| async move { Ok::<_, Failure>(answer) });
}

/// Returns the result of the handler of a kind.
async fn answer(store: &TestStore, engine: &Engine, kind: &str) -> String {
    let id = submit(engine, kind).await;
    engine.drain().await.unwrap();
    let result = record(store, id).await.result.into_bytes().unwrap_or_default();
    String::from_utf8(result.to_vec()).unwrap()
}

fn attempts(attempts: u32) -> RetryPolicy {
    RetryPolicy { attempts, backoff: Backoff::Constant { delay: Duration::ZERO } }
}

async fn fail(_: Context) -> Result<(), Failure> {
    Err(Failure::retryable("still down"))
}

/// Returns the number of attempts of a task of a kind.
async fn attempts_of(store: &TestStore, engine: &Engine, kind: &str) -> u32 {
    let id = submit(engine, kind).await;
    engine.drain().await.unwrap();
    record(store, id).await.attempts
}

/// Shows: Q7
async fn a_pattern_serves_the_kinds_that_begin_so_and_no_others(store: TestStore) {
    let engine = store.engine().await;
    answering(&engine, "image:*", "an image");
    let other = submit(&engine, "images").await;
    assert_eq!(answer(&store, &engine, "image:resize").await, "an image");
    assert_eq!(state(&store, other).await, TaskState::Waiting);
}

/// Shows: Q7
async fn the_longest_pattern_holds_and_a_kinds_own_handler_before_it(store: TestStore) {
    let engine = store.engine().await;
    for pattern in ["image:*", "*", "image:raw:convert", "image:raw:*"] {
        answering(&engine, pattern, pattern);
    }
    for (kind, expected) in [
        ("mail", "*"),
        ("image:resize", "image:*"),
        ("image:raw:crop", "image:raw:*"),
        ("image:raw:convert", "image:raw:convert"),
    ] {
        assert_eq!(answer(&store, &engine, kind).await, expected);
    }
}

/// Shows: Q7
async fn two_handlers_for_one_pattern_are_an_error_of_the_run(store: TestStore) {
    let engine = store.engine().await;
    answering(&engine, "image:*", "one");
    answering(&engine, "image:*", "two");
    let error = engine.run().await.unwrap_err();
    assert_eq!(error.to_string(), "the pattern `image:*` has two handlers; register one");
}

/// Shows: Q7
async fn a_star_that_is_not_the_last_character_is_an_error_of_the_run(store: TestStore) {
    let engine = store.engine().await;
    answering(&engine, "image:*:large", "never");
    assert!(engine.run().await.unwrap_err().to_string().contains("`image:*:large`"));
}

/// Shows: Q7
async fn draining_by_patterns_leaves_what_others_serve(store: TestStore) {
    let engine = store.engine().await;
    answering(&engine, "image:*", "an image");
    let scheduled = onward::NewTask { when: onward::task::When::After(HOUR), ..crate::fixture::task("mail") };
    engine.submit_task(scheduled).await.unwrap();
    submit(&engine, "image:resize").await;
    assert_eq!(engine.drain().await.unwrap().completed, 1);
}

/// Shows: Q7
async fn draining_by_patterns_waits_for_what_is_due_later(store: TestStore) {
    let engine = store.engine().await;
    answering(&engine, "image:*", "an image");
    let scheduled = onward::NewTask { when: onward::task::When::After(HOUR), ..crate::fixture::task("image:resize") };
    let id = engine.submit_task(scheduled).await.unwrap().id();
    let drained = start_drain(&engine);
    assert_eq!(store.advance_until(HOUR / 2, drained).await.completed, 1);
    assert_eq!(state(&store, id).await, TaskState::Completed);
}

/// Shows: Q7
async fn what_is_said_of_fewer_kinds_holds_before_what_is_said_of_more(store: TestStore) {
    let engine = store.engine().await;
    let said = |attempts_: u32| HandlerOptions::new().retry(attempts(attempts_));
    engine.handle("*", fail).handle_with("image:own", said(5), fail).handle_with("mail:*", said(6), fail);
    engine.options("image:crop", said(4)).options("*", said(2)).options("image:*", said(3));
    engine.options("mail:*", said(9)).options("mail:urgent", said(7));
    for (kind, expected) in
        [("other", 2), ("image:resize", 3), ("image:crop", 4), ("image:own", 5), ("mail:any", 6), ("mail:urgent", 7)]
    {
        assert_eq!(attempts_of(&store, &engine, kind).await, expected, "{kind}");
    }
}

/// Shows: Q7
async fn a_pattern_has_a_timeout_of_its_own(store: TestStore) {
    let engine = store.builder().grace(Duration::ZERO).open().await.unwrap();
    engine.handle("*", |_| std::future::pending::<Result<(), Failure>>());
    engine.options("image:*", HandlerOptions::new().timeout(SECOND));
    let id = submit(&engine, "image:resize").await;
    store.advance_until(SECOND, start_drain(&engine)).await;
    assert_eq!(error(&store, id).await, "timed out after 1s");
}

/// Shows: Q7
async fn two_policies_for_one_pattern_are_an_error_of_the_run(store: TestStore) {
    let engine = store.engine().await;
    engine.handle("*", fail);
    engine.options("image:*", HandlerOptions::new().retry(attempts(1)));
    engine.options("image:*", HandlerOptions::new().retry(attempts(2)));
    let error = engine.run().await.unwrap_err();
    assert_eq!(error.to_string(), "the pattern `image:*` has two retry policies; set one");
}

/// Runs a task whose handler fails, with two attempts, under a failure policy.
async fn judged(
    store: &TestStore,
    decide: impl Fn(&onward::handlers::FailedAttempt<'_>) -> Verdict + Send + Sync + 'static,
) -> onward::TaskRecord {
    let engine = store.engine().await;
    engine.handle_with("fail", HandlerOptions::new().retry(attempts(2)), fail);
    engine.options("*", HandlerOptions::new().on_failure(decide));
    let id = submit(&engine, "fail").await;
    engine.drain().await.unwrap();
    record(store, id).await
}

/// Shows: Q7, T7
async fn a_failure_policy_may_give_a_task_up_before_its_attempts_are_used(store: TestStore) {
    let task = judged(&store, |_| Verdict::Dead).await;
    assert_eq!((task.state, task.attempts), (TaskState::Dead, 1));
    let task = judged(&store, |_| Verdict::Fail).await;
    assert_eq!((task.state, task.attempts), (TaskState::Failed, 1));
}

/// Shows: Q7, T7
async fn a_failure_policy_may_give_a_task_further_attempts(store: TestStore) {
    let task = judged(&store, |failed| match failed.context.attempt() {
        1..5 => Verdict::Retry { after: Duration::ZERO },
        _ => failed.verdict,
    });
    let task = task.await;
    assert_eq!((task.state, task.attempts), (TaskState::Dead, 5));
}

/// Shows: Q7, T7
async fn a_failure_policy_may_leave_an_attempt_uncounted(store: TestStore) {
    let calls = std::sync::atomic::AtomicU32::new(0);
    let task = judged(&store, move |failed| match calls.fetch_add(1, std::sync::atomic::Ordering::SeqCst) {
        0..3 => Verdict::NotCounted { after: Duration::ZERO },
        _ => failed.verdict,
    });
    let task = task.await;
    assert_eq!((task.state, task.attempts, task.errors.len()), (TaskState::Dead, 2, 5));
}

/// Shows: Q7
async fn a_failure_policy_sees_the_failure_and_what_the_retry_policy_makes_of_it(store: TestStore) {
    let (sender, mut seen) = tokio::sync::mpsc::unbounded_channel();
    judged(&store, move |failed| {
        sender.send((failed.failure.message().to_owned(), failed.context.attempt(), failed.verdict)).unwrap();
        failed.verdict
    })
    .await;
    let again = Verdict::Retry { after: Duration::ZERO };
    assert_eq!(seen.recv().await, Some(("still down".to_owned(), 1, again)));
    assert_eq!(seen.recv().await, Some(("still down".to_owned(), 2, Verdict::Dead)));
}

/// Shows: Q7
async fn a_failure_policy_sees_a_panic_too(store: TestStore) {
    let engine = store.engine().await;
    engine.handle("panic", |_| async { if true { panic!("no such luck") } else { Ok::<(), Failure>(()) } });
    engine.options(
        "*",
        HandlerOptions::new().on_failure(|failed| match failed.failure.message() {
            "the handler panicked: no such luck" => Verdict::Fail,
            _ => failed.verdict,
        }),
    );
    let id = submit(&engine, "panic").await;
    engine.drain().await.unwrap();
    assert_eq!(state(&store, id).await, TaskState::Failed);
}

/// Shows: Q7
async fn the_retry_policy_holds_if_a_failure_policy_panics(store: TestStore) {
    let task = judged(&store, |_| panic!("a fault in the policy")).await;
    assert_eq!((task.state, task.attempts), (TaskState::Dead, 2));
}

/// Shows: Q7
async fn a_reserved_kind_is_refused_wherever_a_program_names_one(store: TestStore) {
    let is_refused = |text: String| assert!(text.contains("`onward.`, which is reserved"), "{text}");
    let line = || onward::NewTask::new("onward.each").unwrap();
    let engine = store.engine().await;
    is_refused(engine.submit_task(line()).await.unwrap_err().to_string());
    is_refused(engine.submit_all(vec![line()]).await.unwrap_err().to_string());
    for pattern in ["onward.each", "onward.*"] {
        let engine = store.engine().await;
        answering(&engine, pattern, "never");
        is_refused(engine.drain().await.unwrap_err().to_string());
    }
}
