//! Attempts that are completed externally.
#![expect(clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking")]

use std::time::Duration;

use onward_store::rules::retry::{Backoff, FailureClass, RetryPolicy};
use onward_store::{
    Change, CompletionToken, CompletionWait, ConcurrencyLimit, Dependencies, ExternalCompletion, Lease, NewTask,
    Outcome, Refusal, SetQueue, StoreReads, TaskId, TaskState, Ttl, TtlFrom, WaitReason, Write,
};

use crate::test_store::{LEASE, TestStore, name, task};

const SECOND: Duration = Duration::from_secs(1);
const COMPLETE: ExternalCompletion = ExternalCompletion::Complete { result: None };

fn wait_within(lease: Lease, within: Option<Duration>, attempts: u32) -> Write {
    let retry = RetryPolicy { attempts, backoff: Backoff::Constant { delay: SECOND } };
    Write::AwaitCompletion { lease, wait: CompletionWait { within, retry, random: 0 } }
}

/// Starts a task whose first attempt then waits for external completion. One more attempt is
/// allowed.
async fn awaited(store: &TestStore, within: Option<Duration>) -> Lease {
    let lease = store.running(task("approve")).await;
    let outcome = store.write(wait_within(lease, within, 2)).await;
    assert_eq!(outcome, Outcome::AwaitsCompletion { state: TaskState::Blocked });
    lease
}

fn complete_externally(token: impl Into<CompletionToken>, completion: ExternalCompletion) -> Write {
    Write::CompleteExternally { token: token.into(), completion }
}

fn fail(error: &str) -> ExternalCompletion {
    ExternalCompletion::Fail { error: error.to_owned(), class: FailureClass::Retryable }
}

async fn completed_externally(
    store: &TestStore,
    token: impl Into<CompletionToken>,
    end: ExternalCompletion,
) -> TaskState {
    match store.write(complete_externally(token, end)).await {
        Outcome::CompletedExternally { state } => state,
        other => panic!("it should have been completed: {other:?}"),
    }
}

/// Shows: Q8
pub async fn an_asynchronous_attempt_is_completed_by_its_token(store: TestStore) {
    let lease = awaited(&store, None).await;
    let record = store.record(lease.task).await;
    assert_eq!((record.state, record.session, record.attempts), (TaskState::Blocked, None, 0));
    store.advance(SECOND);
    let result = Some("yes".into());
    assert_eq!(
        completed_externally(&store, lease, ExternalCompletion::Complete { result }).await,
        TaskState::Completed
    );
    let record = store.record(lease.task).await;
    assert_eq!((record.state, record.attempts, record.result.as_deref()), (TaskState::Completed, 1, Some(&b"yes"[..])));
    assert_eq!(record.finished_at.unwrap() - record.started_at.unwrap(), SECOND);
    assert_eq!(store.inner().statistics().await.unwrap()[0].run, SECOND);
    let changes: Vec<_> = store.changes().await.into_iter().map(|(_, change)| change).collect();
    assert_eq!(changes[2..], [Change::Blocked, Change::Completed]);
}

/// Shows: Q8
pub async fn a_task_waiting_for_completion_uses_no_slot_and_loses_no_lease(store: TestStore) {
    let limit = Some(ConcurrencyLimit::AtMost(1));
    store.write(Write::SetQueue(SetQueue { concurrency: limit, ..SetQueue::new(name("default")) })).await;
    let lease = awaited(&store, None).await;
    store.submit("next").await;
    store.claim_one(lease.session).await;
    assert_eq!(store.queue("default").await.map(|queue| (queue.running, queue.blocked)), Some((1, 1)));
    store.lapse().await;
    assert_eq!(store.state(lease.task).await, TaskState::Blocked);
    assert_eq!(completed_externally(&store, lease, COMPLETE).await, TaskState::Completed);
}

/// Shows: Q8
pub async fn a_wait_for_completion_survives_a_restart(mut store: TestStore) {
    let lease = awaited(&store, Some(LEASE)).await;
    store.reopen().await;
    assert_eq!(store.state(lease.task).await, TaskState::Blocked);
    assert_eq!(store.sweep().await.next_due, Some(LEASE));
    assert_eq!(completed_externally(&store, lease, COMPLETE).await, TaskState::Completed);
    store.reopen().await;
    assert_eq!(store.sweep().await.next_due, None);
}

/// Shows: Q8
pub async fn an_attempt_failed_externally_is_retried_by_its_policy(store: TestStore) {
    let lease = awaited(&store, None).await;
    assert_eq!(completed_externally(&store, lease, fail("declined")).await, TaskState::Scheduled);
    store.advance(SECOND);
    let next = store.start_one().await;
    assert_eq!(next.task, lease.task);
    store.write(wait_within(next, None, 2)).await;
    assert_eq!(completed_externally(&store, next, fail("declined again")).await, TaskState::Dead);
    let record = store.record(lease.task).await;
    let errors: Vec<_> = record.errors.iter().map(|error| (error.attempt, &*error.message)).collect();
    assert_eq!((record.attempts, errors), (2, vec![(1, "declined"), (2, "declined again")]));
}

pub async fn a_permanent_external_failure_ends_the_task(store: TestStore) {
    let lease = awaited(&store, None).await;
    let end = ExternalCompletion::Fail { error: "never".into(), class: FailureClass::Permanent };
    assert_eq!(completed_externally(&store, lease, end).await, TaskState::Failed);
}

/// Shows: Q8
pub async fn an_attempt_that_is_not_completed_in_time_has_failed(store: TestStore) {
    let lease = awaited(&store, Some(SECOND)).await;
    assert_eq!(store.sweep().await.next_due, Some(SECOND));
    store.advance(SECOND);
    store.sweep().await;
    let record = store.record(lease.task).await;
    assert_eq!((record.state, record.attempts), (TaskState::Scheduled, 1));
    assert_eq!(record.errors[0].message, "it was not completed within 1s");
}

/// Shows: Q8
pub async fn an_extension_restarts_the_time_to_complete(store: TestStore) {
    let lease = awaited(&store, Some(SECOND)).await;
    store.advance(SECOND / 2);
    assert_eq!(
        completed_externally(&store, lease, ExternalCompletion::Extend { within: Some(SECOND * 2) }).await,
        TaskState::Blocked
    );
    assert_eq!(store.sweep().await.next_due, Some(SECOND * 2));
    store.advance(SECOND);
    store.sweep().await;
    assert_eq!(store.state(lease.task).await, TaskState::Blocked);
    store.advance(SECOND);
    store.sweep().await;
    assert_eq!(store.record(lease.task).await.errors[0].message, "it was not completed within 2s");
}

/// Shows: Q8
pub async fn a_second_external_completion_is_refused(store: TestStore) {
    let lease = awaited(&store, None).await;
    completed_externally(&store, lease, COMPLETE).await;
    let refusal = store.refused(complete_externally(lease, fail("late"))).await;
    assert_eq!(refusal, Refusal::AlreadyEnded { task: lease.task, state: TaskState::Completed });
}

/// Shows: Q8
pub async fn the_token_of_an_earlier_attempt_is_refused(store: TestStore) {
    let lease = awaited(&store, None).await;
    completed_externally(&store, lease, fail("first")).await;
    store.advance(SECOND);
    let next = store.start_one().await;
    assert_eq!(store.refused(complete_externally(lease, COMPLETE)).await, Refusal::TokenOutdated(lease.into()));
    store.write(wait_within(next, None, 2)).await;
    assert_eq!(store.refused(complete_externally(lease, COMPLETE)).await, Refusal::TokenOutdated(lease.into()));
    assert_eq!(completed_externally(&store, next, COMPLETE).await, TaskState::Completed);
}

/// Shows: Q8
pub async fn the_waiting_attempt_is_completed_by_the_tasks_number(store: TestStore) {
    let lease = awaited(&store, None).await;
    assert_eq!(completed_externally(&store, lease.task, COMPLETE).await, TaskState::Completed);
}

/// Shows: Q8
pub async fn a_task_that_does_not_wait_for_completion_is_not_completed(store: TestStore) {
    let waiting = store.submit("plain").await;
    let not_awaited = |task, state| Refusal::NotAwaited { task, state };
    assert_eq!(store.refused(complete_externally(waiting, COMPLETE)).await, not_awaited(waiting, TaskState::Waiting));
    let lease = store.start_one().await;
    assert_eq!(store.refused(complete_externally(waiting, COMPLETE)).await, not_awaited(waiting, TaskState::Running));
    assert_eq!(store.refused(complete_externally(lease, fail("no"))).await, not_awaited(waiting, TaskState::Running));
    assert_eq!(store.refused(complete_externally(TaskId(99), COMPLETE)).await, Refusal::TaskNotFound(TaskId(99)));
    store.complete(lease).await;
}

/// An external system may complete the task before the handler has released it.
///
/// Shows: Q8
pub async fn an_attempt_that_still_runs_is_completed_by_its_token(store: TestStore) {
    let lease = store.running(task("approve")).await;
    assert_eq!(completed_externally(&store, lease, COMPLETE).await, TaskState::Completed);
    assert_eq!(store.refused(wait_within(lease, None, 1)).await, Refusal::LeaseLost(lease));
}

/// Shows: Q8
pub async fn a_task_waiting_for_completion_is_cancelled_at_once(store: TestStore) {
    let lease = awaited(&store, Some(SECOND)).await;
    assert_eq!(store.cancel(lease.task).await, Outcome::Cancelled);
    assert_eq!(store.sweep().await.next_due, None);
    let refusal = store.refused(complete_externally(lease, COMPLETE)).await;
    assert_eq!(refusal, Refusal::AlreadyEnded { task: lease.task, state: TaskState::Cancelled });
}

pub async fn a_task_to_be_cancelled_does_not_start_to_wait(store: TestStore) {
    let lease = store.running(task("approve")).await;
    store.cancel(lease.task).await;
    let outcome = store.write(wait_within(lease, None, 1)).await;
    assert_eq!(outcome, Outcome::AwaitsCompletion { state: TaskState::Cancelled });
}

/// Shows: Q8, B6
pub async fn why_names_the_awaited_completion(store: TestStore) {
    let lease = awaited(&store, Some(SECOND)).await;
    let reasons = store.inner().why(lease.task).await.unwrap().unwrap();
    assert_eq!(reasons, [WaitReason::Completion { token: lease.into(), until: Some(store.now().plus(SECOND)) }]);
    assert!(reasons[0].to_string().contains("onward task complete 1.1"), "{}", reasons[0]);
}

/// Shows: Q8, T6
pub async fn the_time_to_live_does_not_run_while_an_attempt_waits_for_completion(store: TestStore) {
    let ttl = Some(Ttl { duration: SECOND * 5, from: TtlFrom::FirstAttempt });
    let lease = store.running(NewTask { ttl, ..task("approve") }).await;
    store.write(wait_within(lease, None, 2)).await;
    store.advance(SECOND * 10);
    store.sweep().await;
    assert_eq!(store.state(lease.task).await, TaskState::Blocked);
    completed_externally(&store, lease, fail("declined")).await;
    store.sweep().await;
    assert_eq!(store.state(lease.task).await, TaskState::Expired);
}

pub async fn an_external_result_beyond_the_limit_is_refused_and_changes_nothing(store: TestStore) {
    let lease = awaited(&store, None).await;
    let large = ExternalCompletion::Complete { result: Some(vec![0; store.payload_limit() + 1].into()) };
    store.invalid(complete_externally(lease, large)).await;
    assert_eq!(completed_externally(&store, lease, COMPLETE).await, TaskState::Completed);
}

/// Shows: Q8, T12
pub async fn dependents_start_when_the_task_is_completed_externally(store: TestStore) {
    let lease = awaited(&store, None).await;
    let next = store.submit_new(NewTask { depends_on: Dependencies::on([lease.task]), ..task("ship") }).await;
    completed_externally(&store, lease, COMPLETE).await;
    assert_eq!(store.state(next).await, TaskState::Waiting);
}

pub async fn a_refused_write_of_an_all_undoes_a_wait_for_completion(store: TestStore) {
    let lease = store.running(task("approve")).await;
    let refused = Write::Complete { lease, result: None };
    store.refused(Write::All(vec![wait_within(lease, Some(SECOND), 1), refused])).await;
    assert_eq!(store.state(lease.task).await, TaskState::Running);
    assert_eq!(store.sweep().await.next_due, Some(LEASE));
    store.complete(lease).await;
}

pub async fn a_policy_that_allows_no_attempt_is_refused(store: TestStore) {
    let lease = store.running(task("approve")).await;
    store.invalid(wait_within(lease, None, 0)).await;
    store.complete(lease).await;
}
