//! Submission of tasks.

use std::time::Duration;

use onward_store::rules::retry::{Backoff, RetryPolicy};
use onward_store::{NewTask, Outcome, Priority, TaskId, TaskResult, TaskState, When, Write};

use crate::test_store::{TestStore, name, task};

pub async fn task_numbers_start_at_one_and_grow(store: TestStore) {
    let ids = [store.submit("a").await, store.submit("b").await, store.submit("a").await];
    assert_eq!(ids, [TaskId(1), TaskId(2), TaskId(3)]);
}

pub async fn a_submitted_task_has_what_was_submitted(store: TestStore) {
    let new = NewTask { queue: name("q"), payload: "hello".into(), priority: Priority::HIGH, ..task("kind") };
    let record = store.record(store.submit_new(new).await).await;
    assert_eq!((record.kind, record.queue, record.priority), (name("kind"), name("q"), Priority::HIGH));
    assert_eq!((record.payload.as_deref(), record.state), (Some(b"hello".as_slice()), TaskState::Waiting));
    assert_eq!((record.submitted_at, record.run_at), (store.now(), store.now()));
}

pub async fn a_submitted_task_has_no_history(store: TestStore) {
    let record = store.record(store.submit("k").await).await;
    assert_eq!((record.attempts, record.errors, record.session), (0, vec![], None));
    assert_eq!((record.started_at, record.finished_at, record.expires_at), (None, None, None));
    assert_eq!(
        (record.result, record.progress, record.key, record.cancel_requested),
        (TaskResult::None, None, None, false)
    );
}

pub async fn a_claim_returns_what_was_submitted(store: TestStore) {
    let new = NewTask {
        payload: "\0\u{ff}".into(),
        timeout: Some(Duration::from_micros(1500)),
        heartbeat_timeout: Some(Duration::from_micros(700)),
        deadline: Some(store.now().plus(Duration::from_secs(9))),
        retention: Some(Duration::from_secs(3)),
        retry: Some(RetryPolicy { attempts: 7, backoff: Backoff::Constant { delay: Duration::from_millis(3) } }),
        ..task("k")
    };
    store.submit_new(new.clone()).await;
    let session = store.session().await;
    let claimed = store.claim(session, 1).await.remove(0);
    assert_eq!(
        (claimed.payload, claimed.timeout, claimed.heartbeat_timeout, claimed.deadline, claimed.retry),
        (new.payload, new.timeout, new.heartbeat_timeout, new.deadline, new.retry)
    );
    assert_eq!((claimed.submitted_at, claimed.attempt, claimed.retention), (store.now(), 1, new.retention));
}

/// Shows: T5
pub async fn a_delay_makes_a_task_scheduled(store: TestStore) {
    let delay = Duration::from_micros(1);
    let record = store.record(store.submit_new(NewTask { when: When::After(delay), ..task("k") }).await).await;
    assert_eq!((record.state, record.run_at), (TaskState::Scheduled, store.now().plus(delay)));
}

/// Shows: T5
pub async fn a_moment_in_the_future_makes_a_task_scheduled(store: TestStore) {
    let at = store.now().plus(Duration::from_secs(60));
    let record = store.record(store.submit_new(NewTask { when: When::At(at), ..task("k") }).await).await;
    assert_eq!((record.state, record.run_at), (TaskState::Scheduled, at));
}

pub async fn no_delay_makes_a_task_wait_at_once(store: TestStore) {
    let id = store.submit_new(NewTask { when: When::After(Duration::ZERO), ..task("k") }).await;
    assert_eq!(store.state(id).await, TaskState::Waiting);
}

/// Shows: T5
pub async fn a_moment_in_the_past_means_now(store: TestStore) {
    let when = When::At(store.now().minus(Duration::from_secs(1)));
    let record = store.record(store.submit_new(NewTask { when, ..task("k") }).await).await;
    assert_eq!((record.state, record.run_at), (TaskState::Waiting, store.now()));
}

pub async fn a_delay_beyond_all_time_is_the_end_of_time(store: TestStore) {
    let id = store.submit_new(NewTask { when: When::After(Duration::MAX), ..task("k") }).await;
    assert_eq!(store.record(id).await.run_at, onward_store::Timestamp::MAX);
}

/// Shows: T1
pub async fn each_write_of_a_call_has_its_outcome_in_order(store: TestStore) {
    let submit = |kind| Write::Submit(Box::new(task(kind)));
    let outcomes = store.apply(vec![submit("a"), Write::Cancel { task: TaskId(1) }, submit("b")]).await;
    assert!(matches!(outcomes[0], Outcome::Submitted(submitted) if submitted.id() == TaskId(1)));
    assert_eq!(outcomes[1], Outcome::Cancelled);
    assert!(matches!(outcomes[2], Outcome::Submitted(submitted) if submitted.id() == TaskId(2)));
}

pub async fn no_writes_have_no_outcomes(store: TestStore) {
    assert_eq!(store.apply(vec![]).await, []);
}

/// Shows: T1
pub async fn many_tasks_of_one_call_all_arrive(store: TestStore) {
    let writes = (0..3000).map(|_| Write::Submit(Box::new(task("k")))).collect();
    assert_eq!(store.apply(writes).await.len(), 3000);
    assert_eq!(store.queue("default").await.map(|queue| queue.waiting), Some(3000));
}

pub async fn names_that_look_like_queries_are_names(store: TestStore) {
    let hostile = "'; DROP TABLE task; -- \"%_é";
    let id = store.submit_new(NewTask { queue: name(hostile), ..task(hostile) }).await;
    assert_eq!(store.record(id).await.kind, name(hostile));
    assert!(store.queue(hostile).await.is_some());
}
