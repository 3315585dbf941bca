//! Manual operations on tasks that do not run: run now, kill, delete.

use std::time::Duration;

use onward_store::{
    Bulk, BulkDone, BulkVerb, Dependencies, Dependency, NewTask, OnDependencyFailure, OnDuplicate, Outcome, Refusal,
    TaskFilter, TaskId, TaskState, When, Write,
};

use crate::test_store::{TestStore, after, keyed, numbers, task};

const HOUR: Duration = Duration::from_secs(3600);

fn later() -> NewTask {
    NewTask { when: When::After(HOUR), ..task("k") }
}

/// Returns the numbers of the tasks that a new session claims.
async fn claimed(store: &TestStore) -> Vec<TaskId> {
    let session = store.session().await;
    numbers(&store.claim(session, 9).await)
}

fn behind(id: TaskId) -> NewTask {
    let depends_on = Dependencies { tasks: vec![Dependency::Task(id)], on_failure: OnDependencyFailure::Cancel };
    NewTask { depends_on, ..task("k") }
}

/// Shows: Q10
pub async fn a_scheduled_task_can_be_run_now(store: TestStore) {
    let id = store.submit_new(later()).await;
    store.done(Write::RunNow { task: id }).await;
    assert_eq!(store.state(id).await, TaskState::Waiting);
    assert_eq!(claimed(&store).await, [id]);
}

/// Shows: Q10
pub async fn a_task_run_now_waits_behind_those_due_before(store: TestStore) {
    let promoted = store.submit_new(later()).await;
    let before = store.submit("k").await;
    store.advance(Duration::from_secs(1));
    store.done(Write::RunNow { task: promoted }).await;
    store.advance(Duration::from_secs(1));
    let behind = store.submit("k").await;
    assert_eq!(claimed(&store).await, [before, promoted, behind]);
}

/// Shows: Q10
pub async fn a_task_that_waits_for_its_next_attempt_can_be_run_now(store: TestStore) {
    let lease = store.running(task("k")).await;
    store.fail(lease, after(HOUR)).await;
    store.done(Write::RunNow { task: lease.task }).await;
    assert_eq!(store.claim(lease.session, 1).await[0].attempt, 2);
}

/// Shows: Q10
pub async fn run_now_of_a_due_task_changes_nothing(store: TestStore) {
    let id = store.submit("k").await;
    let before = store.find(id).await;
    store.advance(Duration::from_secs(1));
    store.done(Write::RunNow { task: id }).await;
    assert_eq!(store.find(id).await, before);
}

/// Shows: Q10
pub async fn run_now_of_what_runs_is_blocked_or_has_ended_is_refused(store: TestStore) {
    let running = store.running(task("k")).await.task;
    let blocked = store.submit_new(behind(running)).await;
    let ended = store.submit("k").await;
    store.cancel(ended).await;
    assert_eq!(store.refused(Write::RunNow { task: running }).await, Refusal::Running(running));
    assert_eq!(store.refused(Write::RunNow { task: blocked }).await, Refusal::Blocked(blocked));
    let refusal = Refusal::AlreadyEnded { task: ended, state: TaskState::Cancelled };
    assert_eq!(store.refused(Write::RunNow { task: ended }).await, refusal);
    assert_eq!(store.refused(Write::RunNow { task: TaskId(99) }).await, Refusal::TaskNotFound(TaskId(99)));
}

/// Shows: Q10, T8
pub async fn a_killed_task_is_a_dead_letter_with_a_reason(store: TestStore) {
    for new in [task("k"), later()] {
        let id = store.submit_new(new).await;
        store.done(Write::Kill { task: id }).await;
        let record = store.record(id).await;
        assert_eq!((record.state, record.attempts, record.errors.len()), (TaskState::Dead, 0, 1));
        assert!(record.errors[0].message.contains("killed"), "{:?}", record.errors);
    }
    assert!(claimed(&store).await.is_empty());
}

/// Shows: Q10, T8
pub async fn a_killed_task_frees_its_key_and_can_be_retried(store: TestStore) {
    let killed = store.submit_new(keyed("a", OnDuplicate::Reject)).await;
    store.done(Write::Kill { task: killed }).await;
    let other = store.submit_new(keyed("a", OnDuplicate::Reject)).await;
    store.done(Write::Kill { task: other }).await;
    store.done(Write::Retry { task: killed }).await;
    assert_eq!(store.state(killed).await, TaskState::Waiting);
}

/// Shows: Q10, T12
pub async fn dependents_of_a_killed_task_are_resolved(store: TestStore) {
    let killed = store.submit("k").await;
    let dependent = store.submit_new(behind(killed)).await;
    store.done(Write::Kill { task: killed }).await;
    assert_eq!(store.state(dependent).await, TaskState::Cancelled);
}

/// Shows: Q10
pub async fn a_running_or_ended_task_is_not_killed(store: TestStore) {
    let ended = store.completed(task("k")).await;
    let running = store.running(task("k")).await.task;
    assert_eq!(store.refused(Write::Kill { task: running }).await, Refusal::Running(running));
    let refusal = Refusal::AlreadyEnded { task: ended, state: TaskState::Completed };
    assert_eq!(store.refused(Write::Kill { task: ended }).await, refusal);
    assert_eq!(store.refused(Write::Kill { task: TaskId(99) }).await, Refusal::TaskNotFound(TaskId(99)));
}

/// Shows: Q10
pub async fn one_task_is_deleted_without_a_trace(store: TestStore) {
    let ended = store.completed(task("k")).await;
    let waiting = store.submit_new(keyed("a", OnDuplicate::Reject)).await;
    for id in [ended, waiting] {
        store.done(Write::Delete { task: id }).await;
        assert_eq!(store.find(id).await, None);
        assert_eq!(store.refused(Write::Delete { task: id }).await, Refusal::TaskNotFound(id));
    }
    store.submit_new(keyed("a", OnDuplicate::Reject)).await;
}

/// Shows: Q10
pub async fn a_running_task_is_not_deleted(store: TestStore) {
    let running = store.running(task("k")).await.task;
    assert_eq!(store.refused(Write::Delete { task: running }).await, Refusal::Running(running));
    assert_eq!(store.state(running).await, TaskState::Running);
}

async fn bulk(store: &TestStore, verb: BulkVerb) -> u64 {
    let chunk = Bulk { verb, filter: TaskFilter::default(), before: None, limit: 1000 };
    match store.write(Write::Bulk(Box::new(chunk))).await {
        Outcome::Bulk(BulkDone { tasks, skipped: 0, next: None, .. }) => tasks,
        other => unreachable!("one chunk does it all: {other:?}"),
    }
}

/// Shows: Q10, T13
pub async fn scheduled_tasks_are_run_now_together(store: TestStore) {
    let ids = [store.submit_new(later()).await, store.submit("k").await, store.submit_new(later()).await];
    assert_eq!(bulk(&store, BulkVerb::RunNow).await, 2);
    for id in ids {
        assert_eq!(store.state(id).await, TaskState::Waiting);
    }
}

/// Shows: Q10, T13
pub async fn tasks_that_do_not_run_are_killed_together(store: TestStore) {
    let running = store.running(task("k")).await.task;
    let ids = [store.submit_new(later()).await, store.submit("k").await, store.submit_new(behind(running)).await];
    assert_eq!(bulk(&store, BulkVerb::Kill).await, 3);
    for id in ids {
        assert_eq!(store.state(id).await, TaskState::Dead);
    }
    assert_eq!(store.state(running).await, TaskState::Running);
}
