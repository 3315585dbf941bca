//! One operation on many tasks, and the filters that select them.

use std::time::Duration;

use onward_store::{
    Bulk, BulkDone, BulkVerb, Change, NewTask, OnDuplicate, Outcome, Priority, Refusal, StateCounts, TaskFilter,
    TaskId, TaskState, When, Write,
};

use crate::bench::{Bench, keyed, name, task};

fn any() -> TaskFilter {
    TaskFilter::default()
}

fn in_state(state: TaskState) -> TaskFilter {
    TaskFilter { states: vec![state], ..any() }
}

fn write(verb: BulkVerb, filter: TaskFilter, before: Option<TaskId>, limit: usize) -> Write {
    Write::Bulk(Box::new(Bulk { verb, filter, before, limit }))
}

/// Applies one chunk of a bulk operation. Clears the counts by state, which only one case checks.
async fn chunk(bench: &Bench, verb: BulkVerb, filter: TaskFilter, before: Option<TaskId>, limit: usize) -> BulkDone {
    match bench.write(write(verb, filter, before, limit)).await {
        Outcome::Bulk(done) => {
            assert_eq!(done.states.sum(), done.tasks);
            BulkDone { states: StateCounts::default(), ..done }
        }
        other => unreachable!("nothing refuses a chunk: {other:?}"),
    }
}

/// Applies a bulk operation to all selected tasks, up to 1000, in one chunk.
async fn bulk(bench: &Bench, verb: BulkVerb, filter: TaskFilter) -> BulkDone {
    chunk(bench, verb, filter, None, 1000).await
}

fn done(tasks: u64) -> BulkDone {
    BulkDone { tasks, ..BulkDone::default() }
}

async fn submit_some(bench: &Bench, count: usize) -> Vec<TaskId> {
    let mut ids = Vec::new();
    for _ in 0..count {
        ids.push(bench.submit("k").await);
    }
    ids
}

/// Shows: T13
pub async fn tasks_that_have_not_started_are_cancelled_together(bench: Bench) {
    let waiting = bench.submit("k").await;
    let scheduled = bench.submit_new(NewTask { when: When::After(Duration::from_secs(1)), ..task("k") }).await;
    assert_eq!(bulk(&bench, BulkVerb::Cancel, any()).await, done(2));
    assert_eq!([bench.state(waiting).await, bench.state(scheduled).await], [TaskState::Cancelled; 2]);
}

/// Shows: T13
pub async fn running_tasks_are_asked_to_stop_and_named(bench: Bench) {
    let lease = bench.running(task("k")).await;
    let expected = BulkDone { asked: vec![lease.task], ..done(1) };
    assert_eq!(bulk(&bench, BulkVerb::Cancel, any()).await, expected);
    let Outcome::Renewed { cancel } = bench.write(Write::RenewSession { session: lease.session }).await else {
        unreachable!("the session is open")
    };
    assert_eq!(cancel, [lease.task]);
}

/// Shows: T13
pub async fn what_was_asked_to_stop_is_not_asked_again(bench: Bench) {
    bench.running(task("k")).await;
    bulk(&bench, BulkVerb::Cancel, any()).await;
    assert_eq!(bulk(&bench, BulkVerb::Cancel, any()).await, done(0));
}

/// Shows: T13
pub async fn a_chunk_counts_its_tasks_by_the_state_that_each_had_before(bench: Bench) {
    bench.completed(task("k")).await;
    submit_some(&bench, 2).await;
    bench.submit_new(NewTask { when: When::After(Duration::from_secs(1)), ..task("k") }).await;
    let Outcome::Bulk(done) = bench.write(write(BulkVerb::Delete, any(), None, 1000)).await else {
        unreachable!("nothing refuses a chunk")
    };
    let expected = [(TaskState::Scheduled, 1), (TaskState::Waiting, 2), (TaskState::Completed, 1)];
    assert_eq!(done.states.iter().collect::<Vec<_>>(), expected);
}

/// Shows: T13
pub async fn ended_tasks_are_not_cancelled(bench: Bench) {
    let id = bench.completed(task("k")).await;
    assert_eq!(bulk(&bench, BulkVerb::Cancel, any()).await, done(0));
    assert_eq!(bench.state(id).await, TaskState::Completed);
}

/// Shows: T13
pub async fn a_chunk_does_no_more_than_its_limit_and_says_where_to_go_on(bench: Bench) {
    let ids = submit_some(&bench, 5).await;
    let first = chunk(&bench, BulkVerb::Cancel, any(), None, 2).await;
    assert_eq!((first.tasks, first.next), (2, Some(ids[3])));
    assert_eq!(bench.state(ids[2]).await, TaskState::Waiting);
    let second = chunk(&bench, BulkVerb::Cancel, any(), first.next, 2).await;
    let third = chunk(&bench, BulkVerb::Cancel, any(), second.next, 2).await;
    assert_eq!((second.tasks, third), (2, done(1)));
}

/// Shows: T13
pub async fn a_task_that_came_after_the_first_chunk_is_not_touched(bench: Bench) {
    submit_some(&bench, 3).await;
    let first = chunk(&bench, BulkVerb::Cancel, any(), None, 1).await;
    let late = bench.submit("k").await;
    chunk(&bench, BulkVerb::Cancel, any(), first.next, 1000).await;
    assert_eq!(bench.state(late).await, TaskState::Waiting);
}

/// Shows: T13
pub async fn ended_tasks_are_tried_again_together(bench: Bench) {
    let ids = submit_some(&bench, 2).await;
    bulk(&bench, BulkVerb::Cancel, any()).await;
    let waiting = bench.submit("k").await;
    assert_eq!(bulk(&bench, BulkVerb::Retry, any()).await, done(2));
    for id in ids.into_iter().chain([waiting]) {
        assert_eq!(bench.state(id).await, TaskState::Waiting);
    }
}

/// A retry of completed tasks would repeat finished work, such as payments.
///
/// Shows: T13
pub async fn completed_tasks_are_tried_again_only_where_their_state_is_named(bench: Bench) {
    let completed = bench.completed(task("k")).await;
    submit_some(&bench, 1).await;
    bulk(&bench, BulkVerb::Cancel, any()).await;
    assert_eq!(bulk(&bench, BulkVerb::Retry, any()).await, done(1));
    assert_eq!(bench.state(completed).await, TaskState::Completed);
    assert_eq!(bulk(&bench, BulkVerb::Retry, in_state(TaskState::Completed)).await, done(1));
    assert_eq!(bench.state(completed).await, TaskState::Waiting);
}

/// Shows: T13
pub async fn of_tasks_with_one_key_the_newest_is_tried_again(bench: Bench) {
    let old = bench.completed(keyed("a", OnDuplicate::Skip)).await;
    let new = bench.completed(keyed("a", OnDuplicate::Skip)).await;
    let expected = BulkDone { passed_over: 1, ..done(1) };
    assert_eq!(bulk(&bench, BulkVerb::Retry, in_state(TaskState::Completed)).await, expected);
    assert_eq!([bench.state(old).await, bench.state(new).await], [TaskState::Completed, TaskState::Waiting]);
}

/// Shows: T13
pub async fn all_but_running_tasks_are_deleted_without_a_trace(bench: Bench) {
    let ended = bench.completed(task("k")).await;
    let running = bench.running(task("k")).await.task;
    let waiting = bench.submit_new(keyed("a", OnDuplicate::Skip)).await;
    assert_eq!(bulk(&bench, BulkVerb::Delete, any()).await, done(2));
    assert_eq!((bench.find(ended).await, bench.find(waiting).await), (None, None));
    assert_eq!(bench.state(running).await, TaskState::Running);
    bench.submit_new(keyed("a", OnDuplicate::Reject)).await;
}

/// Shows: T13, T16
pub async fn what_is_done_to_many_is_told_of_each(bench: Bench) {
    let ids = submit_some(&bench, 2).await;
    bulk(&bench, BulkVerb::Cancel, any()).await;
    bulk(&bench, BulkVerb::Retry, any()).await;
    bulk(&bench, BulkVerb::Delete, any()).await;
    // Events of a purged task are removed, so its submission is missing here.
    let expected =
        [Change::Cancelled, Change::Retried, Change::Purged].map(|change| [(ids[1], change), (ids[0], change)]);
    assert_eq!(bench.changes().await, expected.concat());
}

/// Shows: T13, T10
pub async fn tasks_are_cancelled_by_their_tags(bench: Bench) {
    let with = |value: &str| NewTask { tags: [("customer", value)].into_iter().collect(), ..task("k") };
    let mine = bench.submit_new(with("42")).await;
    let other = bench.submit_new(with("43")).await;
    let filter = TaskFilter { tags: [("customer", "42")].into_iter().collect(), ..any() };
    assert_eq!(bulk(&bench, BulkVerb::Cancel, filter).await, done(1));
    assert_eq!([bench.state(mine).await, bench.state(other).await], [TaskState::Cancelled, TaskState::Waiting]);
    let filter = TaskFilter { tag_key_prefix: Some("cust".to_owned()), ..any() };
    assert_eq!(bulk(&bench, BulkVerb::Cancel, filter).await, done(1));
}

/// Shows: T13
pub async fn tasks_are_cancelled_by_kind_and_queue(bench: Bench) {
    bench.submit("a").await;
    let in_queue = bench.submit_new(NewTask { queue: name("q"), ..task("a") }).await;
    let filter = TaskFilter { kind: Some(name("a")), queue: Some(name("q")), ..any() };
    assert_eq!(bulk(&bench, BulkVerb::Cancel, filter).await, done(1));
    assert_eq!(bench.state(in_queue).await, TaskState::Cancelled);
}

/// Shows: T13, T17
pub async fn a_filter_takes_a_range_of_priorities_with_both_ends(bench: Bench) {
    let mut ids = Vec::new();
    for priority in [31, 32, 128, 129] {
        ids.push(bench.submit_new(NewTask { priority: Priority(priority), ..task("k") }).await);
    }
    let filter = TaskFilter { priority_from: Some(Priority(32)), priority_to: Some(Priority(128)), ..any() };
    assert_eq!(bench.list(filter.clone()).await, [ids[2], ids[1]]);
    assert_eq!(bulk(&bench, BulkVerb::Delete, filter).await, done(2));
}

/// Shows: T13, T17
pub async fn a_filter_takes_the_beginning_of_a_key(bench: Bench) {
    let mut ids = Vec::new();
    for key in ["order:1", "order:", "order", "%", "Order:1"] {
        ids.push(bench.submit_new(keyed(key, OnDuplicate::Skip)).await);
    }
    bench.submit("k").await;
    let filter = TaskFilter { key_prefix: Some("order:".to_owned()), ..any() };
    assert_eq!(bench.list(filter).await, [ids[1], ids[0]]);
    assert_eq!(bench.list(TaskFilter { key_prefix: Some("%".to_owned()), ..any() }).await, [ids[3]]);
}

/// Shows: T13
pub async fn a_filter_takes_those_who_were_asked_to_stop(bench: Bench) {
    let lease = bench.running(task("k")).await;
    bench.submit("k").await;
    bench.cancel(lease.task).await;
    let asked = |asked| TaskFilter { cancel_requested: Some(asked), ..any() };
    assert_eq!(bench.list(asked(true)).await, [lease.task]);
    assert_eq!(bench.list(asked(false)).await.len(), 1);
}

/// Shows: T13, Q8
pub async fn tasks_are_moved_together_running_ones_after_their_attempt(bench: Bench) {
    let lease = bench.running(task("k")).await;
    let ids = submit_some(&bench, 2).await;
    let ended = bench.submit("other").await;
    bench.cancel(ended).await;
    assert_eq!(bulk(&bench, BulkVerb::Move(name("slow")), any()).await, done(3));
    let queue_of = async |id| bench.record(id).await.queue;
    assert_eq!([queue_of(ids[0]).await, queue_of(ids[1]).await], [name("slow"), name("slow")]);
    assert_eq!([queue_of(lease.task).await, queue_of(ended).await], [name("default"), name("default")]);
    bench.release(lease, Duration::ZERO).await;
    assert_eq!(queue_of(lease.task).await, name("slow"));
}

pub async fn a_move_of_no_task_makes_no_queue(bench: Bench) {
    bench.completed(task("k")).await;
    assert_eq!(bulk(&bench, BulkVerb::Move(name("slow")), any()).await, done(0));
    assert!(bench.queue("slow").await.is_none());
}

pub async fn a_verb_that_can_do_nothing_to_the_states_asked_for_does_nothing(bench: Bench) {
    bench.completed(task("k")).await;
    bench.submit("k").await;
    let of = |state| TaskFilter { states: vec![state], ..any() };
    assert_eq!(bulk(&bench, BulkVerb::Cancel, of(TaskState::Completed)).await, done(0));
    assert_eq!(bulk(&bench, BulkVerb::Retry, of(TaskState::Waiting)).await, done(0));
    assert_eq!(bulk(&bench, BulkVerb::Delete, of(TaskState::Running)).await, done(0));
}

pub async fn a_chunk_of_a_refused_all_did_nothing(bench: Bench) {
    let ids = submit_some(&bench, 2).await;
    let refused = Write::Cancel { task: TaskId(999) };
    let all = Write::All(vec![write(BulkVerb::Cancel, any(), None, 1000), refused]);
    assert!(matches!(bench.refused(all).await, Refusal::Member { index: 1, .. }));
    assert_eq!([bench.state(ids[0]).await, bench.state(ids[1]).await], [TaskState::Waiting; 2]);
}

/// Shows: T13
pub async fn a_chunk_in_which_nothing_is_selected_says_where_to_go_on(bench: Bench) {
    let first = bench.submit_new(NewTask { queue: name("rare"), ..task("k") }).await;
    let submit = Write::Submit(Box::new(task("k")));
    bench.write(Write::All(vec![submit; 16_384])).await;
    let filter = TaskFilter { queue: Some(name("rare")), ..any() };
    let nothing = chunk(&bench, BulkVerb::Cancel, filter.clone(), None, 1000).await;
    assert_eq!(nothing, BulkDone { next: Some(TaskId(2)), ..done(0) });
    assert_eq!(chunk(&bench, BulkVerb::Cancel, filter, nothing.next, 1000).await, done(1));
    assert_eq!(bench.state(first).await, TaskState::Cancelled);
}
