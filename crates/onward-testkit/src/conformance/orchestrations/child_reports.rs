//! Reports about tasks that orchestrations submitted, and cancels of these tasks by reference.
#![expect(clippy::panic, reason = "a test fails by panicking")]

use std::time::Duration;

use onward_store::{
    AfterFailure, AfterTurn, Bulk, BulkDone, BulkVerb, ChildTask, Lease, MessageBody, NewTask, Outcome, Recipient,
    Refusal, SessionId, StateCounts, TaskFilter, TaskId, TaskResult, TaskState, Turn, Write, bounds,
};

use super::orchestration_turns::{PARK, activity, awaiting, claim, messages, one_event, signal, turned};
use crate::test_store::{TestStore, task};

/// Returns an orchestration that is parked until its tasks with the references 1 and 2 have ended,
/// and their numbers. No attempt of them has begun.
async fn awaiting_unstarted(store: &TestStore) -> (TaskId, SessionId, [TaskId; 2]) {
    let lease = store.running(NewTask { orchestration: true, ..task("order") }).await;
    let submits = vec![activity(lease.task, 1), activity(lease.task, 2)];
    let turned = turned(store, Turn { submits, ..one_event(lease, 0, PARK) }).await;
    (lease.task, lease.session, [turned.submitted[0].id(), turned.submitted[1].id()])
}

/// Returns the lease of a turn of an orchestration that is parked.
async fn woken(store: &TestStore, task: TaskId, session: SessionId) -> Lease {
    store.done(signal(Recipient::Task(task), "1")).await;
    store.claim_kinds_leases(session, &["order"]).await[0]
}

/// Returns the number of attempts and the omitted size in the first report.
fn report(messages: &[MessageBody]) -> (u32, Option<u64>) {
    match messages.first() {
        Some(MessageBody::Ended { attempts, omitted, .. }) => (*attempts, *omitted),
        other => panic!("there should be a report: {other:?}"),
    }
}

/// Shows: D2
pub async fn a_turn_withdraws_tasks_that_never_started(store: TestStore) {
    let (task, session, [first, second]) = awaiting_unstarted(&store).await;
    let turn = woken(&store, task, session).await;
    let withdraws = vec![ChildTask::Task(first), ChildTask::Reference(2), ChildTask::Task(TaskId(999))];
    turned(&store, Turn { withdraws, ..one_event(turn, 1, PARK) }).await;
    assert_eq!([store.state(first).await, store.state(second).await], [TaskState::Cancelled; 2]);
    let claimed = claim(&store, session).await;
    assert_eq!(report(&messages(&claimed)[1..]), (0, None));
}

/// Shows: D2
pub async fn a_turn_does_not_withdraw_a_task_that_runs(store: TestStore) {
    let (task, lease) = awaiting(&store).await;
    let turn = woken(&store, task, lease.session).await;
    turned(&store, Turn { withdraws: vec![ChildTask::Reference(7)], ..one_event(turn, 1, PARK) }).await;
    let record = store.record(lease.task).await;
    assert_eq!((record.state, record.cancel_requested), (TaskState::Running, false));
}

/// Shows: D2
pub async fn a_turn_does_not_withdraw_a_task_that_was_claimed_before(store: TestStore) {
    let (task, lease) = awaiting(&store).await;
    store.release(lease, Duration::from_secs(60)).await;
    let turn = woken(&store, task, lease.session).await;
    turned(&store, Turn { withdraws: vec![lease.task.into()], ..one_event(turn, 1, PARK) }).await;
    assert_eq!(store.state(lease.task).await, TaskState::Scheduled);
}

/// Shows: D2
pub async fn a_turn_withdraws_no_task_of_another(store: TestStore) {
    let (task, lease) = awaiting(&store).await;
    let (_, _, [stranger, _]) = awaiting_unstarted(&store).await;
    let turn = woken(&store, task, lease.session).await;
    let withdraws = vec![stranger.into(), ChildTask::Reference(1)];
    turned(&store, Turn { withdraws, ..one_event(turn, 1, PARK) }).await;
    assert_eq!(store.state(stranger).await, TaskState::Waiting);
}

/// Shows: D2
pub async fn a_turn_cancels_tasks_by_their_references(store: TestStore) {
    let (task, session, [first, second]) = awaiting_unstarted(&store).await;
    let running = store.claim_kinds_leases(session, &["charge"]).await;
    let turn = woken(&store, task, session).await;
    let cancels = vec![ChildTask::Reference(2), ChildTask::Reference(3)];
    let submits = vec![activity(task, 3)];
    let turned = turned(&store, Turn { cancels, submits, ..one_event(turn, 1, PARK) }).await;
    assert_eq!(running.iter().map(|lease| lease.task).collect::<Vec<_>>(), [first, second]);
    let [first, second] = [store.record(first).await, store.record(second).await];
    assert_eq!([first.cancel_requested, second.cancel_requested], [false, true]);
    assert_eq!(store.state(turned.submitted[0].id()).await, TaskState::Cancelled);
}

/// Shows: D9
pub async fn a_report_counts_the_attempts_that_began(store: TestStore) {
    let (_, lease) = awaiting(&store).await;
    store.release(lease, Duration::ZERO).await;
    let lease = store.claim_one(lease.session).await;
    store.fail(lease, AfterFailure::Retry { after: Duration::ZERO, uses_attempt: false, hold: false }).await;
    let lease = store.claim_one(lease.session).await;
    store.complete(lease).await;
    assert_eq!(report(&messages(&claim(&store, lease.session).await)), (3, None));
}

/// Shows: D9
pub async fn a_report_of_a_task_that_ends_between_attempts_counts_those_before(store: TestStore) {
    let (_, lease) = awaiting(&store).await;
    let after = Duration::from_secs(60);
    store.fail(lease, AfterFailure::Retry { after, uses_attempt: true, hold: false }).await;
    assert_eq!(store.cancel(lease.task).await, Outcome::Cancelled);
    assert_eq!(report(&messages(&claim(&store, lease.session).await)), (1, None));
}

/// Shows: D9
pub async fn a_report_leaves_a_large_result_out(store: TestStore) {
    // A store behind a codec counts encoded bytes.
    for size in [bounds::REPORTED_RESULT / 2, bounds::REPORTED_RESULT * 3 / 2] {
        let (_, lease) = awaiting(&store).await;
        let large = bytes::Bytes::from(vec![7; size]);
        store.done(Write::Complete { lease, result: Some(large.clone()) }).await;
        let claimed = claim(&store, lease.session).await;
        let messages = messages(&claimed);
        let is_omitted = size > bounds::REPORTED_RESULT;
        let MessageBody::Ended { result, omitted, .. } = &messages[0] else { panic!("there should be a report") };
        assert_eq!((result.is_none(), omitted.is_some()), (is_omitted, is_omitted));
        assert_eq!(store.record(lease.task).await.result, TaskResult::Value(large));
    }
}

/// Shows: D2
pub async fn a_bulk_cancel_counts_an_orchestration_by_its_state_before_its_tasks_ended(store: TestStore) {
    let (task, _, _) = awaiting_unstarted(&store).await;
    let bulk = Bulk { verb: BulkVerb::Cancel, filter: TaskFilter::default(), before: None, limit: 9 };
    let Outcome::Bulk(done) = store.write(Write::Bulk(Box::new(bulk))).await else {
        panic!("it should have been done")
    };
    let mut states = StateCounts::default();
    states.add(TaskState::Blocked, 1);
    states.add(TaskState::Waiting, 2);
    assert_eq!((done.states, done.cancel_requested), (states, vec![task]));
}

/// Returns a dead task with a report to an orchestration of a kind, and the orchestration.
async fn dead_step(store: &TestStore, kind: &str) -> (TaskId, Lease) {
    let lease = store.running(NewTask { orchestration: true, ..task(kind) }).await;
    turned(store, Turn { submits: vec![activity(lease.task, 7)], ..one_event(lease, 0, PARK) }).await;
    let step = store.claim_one(lease.session).await;
    store.fail(step, AfterFailure::Dead).await;
    (lease.task, step)
}

/// Shows: D9
pub async fn a_step_of_a_run_is_not_retried_by_itself(store: TestStore) {
    let (run, step) = dead_step(&store, "run:shop").await;
    let refusal = store.refused(Write::Retry { task: step.task }).await;
    assert_eq!(refusal, Refusal::StepOfRun { task: step.task, run });
    assert!(refusal.to_string().contains(&format!("onward workflow retry {run}")), "{refusal}");
    assert_eq!(store.state(step.task).await, TaskState::Dead);
}

/// Shows: D9
pub async fn a_bulk_retry_passes_over_steps_of_runs(store: TestStore) {
    let (_, step) = dead_step(&store, "run:shop").await;
    let filter = TaskFilter { states: vec![TaskState::Dead], ..TaskFilter::default() };
    let bulk = Write::Bulk(Box::new(Bulk { verb: BulkVerb::Retry, filter, before: None, limit: 9 }));
    let Outcome::Bulk(BulkDone { tasks, skipped, .. }) = store.write(bulk).await else {
        panic!("it should have been done")
    };
    assert_eq!((tasks, skipped, store.state(step.task).await), (0, 1, TaskState::Dead));
}

/// Shows: D9
pub async fn a_step_of_a_run_that_has_ended_is_retried(store: TestStore) {
    let (_, step) = dead_step(&store, "run:shop").await;
    let claimed = claim(&store, step.session).await;
    let turn = one_event(claimed.lease, 1, AfterTurn::Fail { error: "enough".into() });
    turned(&store, Turn { consumed: 1, ..turn }).await;
    store.retry(step.task).await;
}

/// Shows: D9
pub async fn a_task_of_an_orchestration_that_is_no_run_is_retried(store: TestStore) {
    let (_, step) = dead_step(&store, "runner").await;
    store.retry(step.task).await;
}
