//! Manual operations on tasks that do not run: run now, kill, delete.

use std::time::Duration;

use onward_store::{
    Bulk, BulkDone, BulkVerb, Dependencies, Dependency, NewTask, OnDependencyFailure, OnDuplicate, Outcome, Refusal,
    TaskFilter, TaskId, TaskState, When, Write,
};

use crate::bench::{Bench, after, keyed, numbers, task};

const HOUR: Duration = Duration::from_secs(3600);

fn later() -> NewTask {
    NewTask { when: When::After(HOUR), ..task("k") }
}

/// Returns the numbers of the tasks that a new session claims.
async fn claimed(bench: &Bench) -> Vec<TaskId> {
    let session = bench.session().await;
    numbers(&bench.claim(session, 9).await)
}

fn behind(id: TaskId) -> NewTask {
    let depends_on = Dependencies { tasks: vec![Dependency::Task(id)], on_failure: OnDependencyFailure::Cancel };
    NewTask { depends_on, ..task("k") }
}

/// Shows: Q10
pub async fn a_scheduled_task_can_be_run_now(bench: Bench) {
    let id = bench.submit_new(later()).await;
    bench.done(Write::RunNow { task: id }).await;
    assert_eq!(bench.state(id).await, TaskState::Waiting);
    assert_eq!(claimed(&bench).await, [id]);
}

/// Shows: Q10
pub async fn what_is_run_now_takes_its_place_among_what_became_due_now(bench: Bench) {
    let promoted = bench.submit_new(later()).await;
    let before = bench.submit("k").await;
    bench.advance(Duration::from_secs(1));
    bench.done(Write::RunNow { task: promoted }).await;
    bench.advance(Duration::from_secs(1));
    let behind = bench.submit("k").await;
    assert_eq!(claimed(&bench).await, [before, promoted, behind]);
}

/// Shows: Q10
pub async fn a_task_that_waits_for_its_next_attempt_can_be_run_now(bench: Bench) {
    let lease = bench.running(task("k")).await;
    bench.fail(lease, after(HOUR)).await;
    bench.done(Write::RunNow { task: lease.task }).await;
    assert_eq!(bench.claim(lease.session, 1).await[0].attempt, 2);
}

/// Shows: Q10
pub async fn run_now_of_a_due_task_changes_nothing(bench: Bench) {
    let id = bench.submit("k").await;
    let before = bench.find(id).await;
    bench.advance(Duration::from_secs(1));
    bench.done(Write::RunNow { task: id }).await;
    assert_eq!(bench.find(id).await, before);
}

/// Shows: Q10
pub async fn run_now_of_what_runs_is_blocked_or_has_ended_is_refused(bench: Bench) {
    let running = bench.running(task("k")).await.task;
    let blocked = bench.submit_new(behind(running)).await;
    let ended = bench.submit("k").await;
    bench.cancel(ended).await;
    assert_eq!(bench.refused(Write::RunNow { task: running }).await, Refusal::Running(running));
    assert_eq!(bench.refused(Write::RunNow { task: blocked }).await, Refusal::Blocked(blocked));
    let refusal = Refusal::AlreadyEnded { task: ended, state: TaskState::Cancelled };
    assert_eq!(bench.refused(Write::RunNow { task: ended }).await, refusal);
    assert_eq!(bench.refused(Write::RunNow { task: TaskId(99) }).await, Refusal::TaskNotFound(TaskId(99)));
}

/// Shows: Q10, T8
pub async fn a_killed_task_is_a_dead_letter_that_says_why(bench: Bench) {
    for new in [task("k"), later()] {
        let id = bench.submit_new(new).await;
        bench.done(Write::Kill { task: id }).await;
        let record = bench.record(id).await;
        assert_eq!((record.state, record.attempts, record.errors.len()), (TaskState::Dead, 0, 1));
        assert!(record.errors[0].message.contains("killed"), "{:?}", record.errors);
    }
    assert!(claimed(&bench).await.is_empty());
}

/// Shows: Q10, T8
pub async fn a_killed_task_frees_its_key_and_can_be_tried_again(bench: Bench) {
    let killed = bench.submit_new(keyed("a", OnDuplicate::Reject)).await;
    bench.done(Write::Kill { task: killed }).await;
    let other = bench.submit_new(keyed("a", OnDuplicate::Reject)).await;
    bench.done(Write::Kill { task: other }).await;
    bench.done(Write::Retry { task: killed }).await;
    assert_eq!(bench.state(killed).await, TaskState::Waiting);
}

/// Shows: Q10, T12
pub async fn what_depends_on_a_killed_task_is_told(bench: Bench) {
    let killed = bench.submit("k").await;
    let dependent = bench.submit_new(behind(killed)).await;
    bench.done(Write::Kill { task: killed }).await;
    assert_eq!(bench.state(dependent).await, TaskState::Cancelled);
}

/// Shows: Q10
pub async fn a_running_or_ended_task_is_not_killed(bench: Bench) {
    let ended = bench.completed(task("k")).await;
    let running = bench.running(task("k")).await.task;
    assert_eq!(bench.refused(Write::Kill { task: running }).await, Refusal::Running(running));
    let refusal = Refusal::AlreadyEnded { task: ended, state: TaskState::Completed };
    assert_eq!(bench.refused(Write::Kill { task: ended }).await, refusal);
    assert_eq!(bench.refused(Write::Kill { task: TaskId(99) }).await, Refusal::TaskNotFound(TaskId(99)));
}

/// Shows: Q10
pub async fn one_task_is_deleted_without_a_trace(bench: Bench) {
    let ended = bench.completed(task("k")).await;
    let waiting = bench.submit_new(keyed("a", OnDuplicate::Reject)).await;
    for id in [ended, waiting] {
        bench.done(Write::Delete { task: id }).await;
        assert_eq!(bench.find(id).await, None);
        assert_eq!(bench.refused(Write::Delete { task: id }).await, Refusal::TaskNotFound(id));
    }
    bench.submit_new(keyed("a", OnDuplicate::Reject)).await;
}

/// Shows: Q10
pub async fn a_running_task_is_not_deleted(bench: Bench) {
    let running = bench.running(task("k")).await.task;
    assert_eq!(bench.refused(Write::Delete { task: running }).await, Refusal::Running(running));
    assert_eq!(bench.state(running).await, TaskState::Running);
}

async fn bulk(bench: &Bench, verb: BulkVerb) -> u64 {
    let chunk = Bulk { verb, filter: TaskFilter::default(), before: None, limit: 1000 };
    match bench.write(Write::Bulk(Box::new(chunk))).await {
        Outcome::Bulk(BulkDone { tasks, passed_over: 0, next: None, .. }) => tasks,
        other => unreachable!("one chunk does it all: {other:?}"),
    }
}

/// Shows: Q10, T13
pub async fn scheduled_tasks_are_run_now_together(bench: Bench) {
    let ids = [bench.submit_new(later()).await, bench.submit("k").await, bench.submit_new(later()).await];
    assert_eq!(bulk(&bench, BulkVerb::RunNow).await, 2);
    for id in ids {
        assert_eq!(bench.state(id).await, TaskState::Waiting);
    }
}

/// Shows: Q10, T13
pub async fn tasks_that_do_not_run_are_killed_together(bench: Bench) {
    let running = bench.running(task("k")).await.task;
    let ids = [bench.submit_new(later()).await, bench.submit("k").await, bench.submit_new(behind(running)).await];
    assert_eq!(bulk(&bench, BulkVerb::Kill).await, 3);
    for id in ids {
        assert_eq!(bench.state(id).await, TaskState::Dead);
    }
    assert_eq!(bench.state(running).await, TaskState::Running);
}
