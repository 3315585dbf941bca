//! One operation on many tasks, and the filters that select them.

use std::time::Duration;

use onward_store::{
    Bulk, BulkDone, BulkVerb, Change, NewTask, OnDuplicate, Outcome, Priority, Refusal, StateCounts, TaskFilter,
    TaskId, TaskState, When, Write,
};

use crate::test_store::{TestStore, keyed, name, task};

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
async fn chunk(
    store: &TestStore,
    verb: BulkVerb,
    filter: TaskFilter,
    before: Option<TaskId>,
    limit: usize,
) -> BulkDone {
    match store.write(write(verb, filter, before, limit)).await {
        Outcome::Bulk(done) => {
            assert_eq!(done.states.sum(), done.tasks);
            BulkDone { states: StateCounts::default(), ..done }
        }
        other => unreachable!("nothing refuses a chunk: {other:?}"),
    }
}

/// Applies a bulk operation to all selected tasks, up to 1000, in one chunk.
async fn bulk(store: &TestStore, verb: BulkVerb, filter: TaskFilter) -> BulkDone {
    chunk(store, verb, filter, None, 1000).await
}

fn done(tasks: u64) -> BulkDone {
    BulkDone { tasks, ..BulkDone::default() }
}

async fn submit_some(store: &TestStore, count: usize) -> Vec<TaskId> {
    let mut ids = Vec::new();
    for _ in 0..count {
        ids.push(store.submit("k").await);
    }
    ids
}

/// Shows: T13
pub async fn tasks_that_have_not_started_are_cancelled_together(store: TestStore) {
    let waiting = store.submit("k").await;
    let scheduled = store.submit_new(NewTask { when: When::After(Duration::from_secs(1)), ..task("k") }).await;
    assert_eq!(bulk(&store, BulkVerb::Cancel, any()).await, done(2));
    assert_eq!([store.state(waiting).await, store.state(scheduled).await], [TaskState::Cancelled; 2]);
}

/// Shows: T13
pub async fn running_tasks_are_asked_to_stop_and_named(store: TestStore) {
    let lease = store.running(task("k")).await;
    let expected = BulkDone { cancel_requested: vec![lease.task], ..done(1) };
    assert_eq!(bulk(&store, BulkVerb::Cancel, any()).await, expected);
    let Outcome::Renewed { cancel } = store.write(Write::RenewSession { session: lease.session }).await else {
        unreachable!("the session is open")
    };
    assert_eq!(cancel, [lease.task]);
}

/// Shows: T13
pub async fn what_was_asked_to_stop_is_not_asked_again(store: TestStore) {
    store.running(task("k")).await;
    bulk(&store, BulkVerb::Cancel, any()).await;
    assert_eq!(bulk(&store, BulkVerb::Cancel, any()).await, done(0));
}

/// Shows: T13
pub async fn a_chunk_counts_its_tasks_by_the_state_that_each_had_before(store: TestStore) {
    store.completed(task("k")).await;
    submit_some(&store, 2).await;
    store.submit_new(NewTask { when: When::After(Duration::from_secs(1)), ..task("k") }).await;
    let Outcome::Bulk(done) = store.write(write(BulkVerb::Delete, any(), None, 1000)).await else {
        unreachable!("nothing refuses a chunk")
    };
    let expected = [(TaskState::Scheduled, 1), (TaskState::Waiting, 2), (TaskState::Completed, 1)];
    assert_eq!(done.states.iter().collect::<Vec<_>>(), expected);
}

/// Shows: T13
pub async fn ended_tasks_are_not_cancelled(store: TestStore) {
    let id = store.completed(task("k")).await;
    assert_eq!(bulk(&store, BulkVerb::Cancel, any()).await, done(0));
    assert_eq!(store.state(id).await, TaskState::Completed);
}

/// Shows: T13
pub async fn a_chunk_does_no_more_than_its_limit_and_returns_where_to_continue(store: TestStore) {
    let ids = submit_some(&store, 5).await;
    let first = chunk(&store, BulkVerb::Cancel, any(), None, 2).await;
    assert_eq!((first.tasks, first.next), (2, Some(ids[3])));
    assert_eq!(store.state(ids[2]).await, TaskState::Waiting);
    let second = chunk(&store, BulkVerb::Cancel, any(), first.next, 2).await;
    let third = chunk(&store, BulkVerb::Cancel, any(), second.next, 2).await;
    assert_eq!((second.tasks, third), (2, done(1)));
}

/// Shows: T13
pub async fn a_task_that_came_after_the_first_chunk_is_not_touched(store: TestStore) {
    submit_some(&store, 3).await;
    let first = chunk(&store, BulkVerb::Cancel, any(), None, 1).await;
    let late = store.submit("k").await;
    chunk(&store, BulkVerb::Cancel, any(), first.next, 1000).await;
    assert_eq!(store.state(late).await, TaskState::Waiting);
}

/// Shows: T13
pub async fn ended_tasks_are_retried_together(store: TestStore) {
    let ids = submit_some(&store, 2).await;
    bulk(&store, BulkVerb::Cancel, any()).await;
    let waiting = store.submit("k").await;
    assert_eq!(bulk(&store, BulkVerb::Retry, any()).await, done(2));
    for id in ids.into_iter().chain([waiting]) {
        assert_eq!(store.state(id).await, TaskState::Waiting);
    }
}

/// A retry of completed tasks would repeat finished work, such as payments.
///
/// Shows: T13
pub async fn completed_tasks_are_retried_only_where_their_state_is_named(store: TestStore) {
    let completed = store.completed(task("k")).await;
    submit_some(&store, 1).await;
    bulk(&store, BulkVerb::Cancel, any()).await;
    assert_eq!(bulk(&store, BulkVerb::Retry, any()).await, done(1));
    assert_eq!(store.state(completed).await, TaskState::Completed);
    assert_eq!(bulk(&store, BulkVerb::Retry, in_state(TaskState::Completed)).await, done(1));
    assert_eq!(store.state(completed).await, TaskState::Waiting);
}

/// Shows: T13
pub async fn of_tasks_with_one_key_the_newest_is_retried(store: TestStore) {
    let old = store.completed(keyed("a", OnDuplicate::Skip)).await;
    let new = store.completed(keyed("a", OnDuplicate::Skip)).await;
    let expected = BulkDone { skipped: 1, ..done(1) };
    assert_eq!(bulk(&store, BulkVerb::Retry, in_state(TaskState::Completed)).await, expected);
    assert_eq!([store.state(old).await, store.state(new).await], [TaskState::Completed, TaskState::Waiting]);
}

/// Shows: T13
pub async fn all_but_running_tasks_are_deleted_without_a_trace(store: TestStore) {
    let ended = store.completed(task("k")).await;
    let running = store.running(task("k")).await.task;
    let waiting = store.submit_new(keyed("a", OnDuplicate::Skip)).await;
    assert_eq!(bulk(&store, BulkVerb::Delete, any()).await, done(2));
    assert_eq!((store.find(ended).await, store.find(waiting).await), (None, None));
    assert_eq!(store.state(running).await, TaskState::Running);
    store.submit_new(keyed("a", OnDuplicate::Reject)).await;
}

/// Shows: T13, T16
pub async fn a_bulk_operation_makes_an_event_for_each_task(store: TestStore) {
    let ids = submit_some(&store, 2).await;
    bulk(&store, BulkVerb::Cancel, any()).await;
    bulk(&store, BulkVerb::Retry, any()).await;
    bulk(&store, BulkVerb::Delete, any()).await;
    // Events of a purged task are removed, so its submission is missing here.
    let expected =
        [Change::Cancelled, Change::Retried, Change::Purged].map(|change| [(ids[1], change), (ids[0], change)]);
    assert_eq!(store.changes().await, expected.concat());
}

/// Shows: T13, T10
pub async fn tasks_are_cancelled_by_their_tags(store: TestStore) {
    let with = |value: &str| NewTask { tags: [("customer", value)].into_iter().collect(), ..task("k") };
    let mine = store.submit_new(with("42")).await;
    let other = store.submit_new(with("43")).await;
    let filter = TaskFilter { tags: [("customer", "42")].into_iter().collect(), ..any() };
    assert_eq!(bulk(&store, BulkVerb::Cancel, filter).await, done(1));
    assert_eq!([store.state(mine).await, store.state(other).await], [TaskState::Cancelled, TaskState::Waiting]);
    let filter = TaskFilter { tag_key_prefix: Some("cust".to_owned()), ..any() };
    assert_eq!(bulk(&store, BulkVerb::Cancel, filter).await, done(1));
}

/// Shows: T13
pub async fn tasks_are_cancelled_by_kind_and_queue(store: TestStore) {
    store.submit("a").await;
    let in_queue = store.submit_new(NewTask { queue: name("q"), ..task("a") }).await;
    let filter = TaskFilter { kind: Some(name("a")), queue: Some(name("q")), ..any() };
    assert_eq!(bulk(&store, BulkVerb::Cancel, filter).await, done(1));
    assert_eq!(store.state(in_queue).await, TaskState::Cancelled);
}

/// Shows: T13, T17
pub async fn a_filter_takes_a_range_of_priorities_with_both_ends(store: TestStore) {
    let mut ids = Vec::new();
    for priority in [31, 32, 128, 129] {
        ids.push(store.submit_new(NewTask { priority: Priority(priority), ..task("k") }).await);
    }
    let filter = TaskFilter { priority_from: Some(Priority(32)), priority_to: Some(Priority(128)), ..any() };
    assert_eq!(store.list(filter.clone()).await, [ids[2], ids[1]]);
    assert_eq!(bulk(&store, BulkVerb::Delete, filter).await, done(2));
}

/// Shows: T13, T17
pub async fn a_filter_takes_the_prefix_of_a_key(store: TestStore) {
    let mut ids = Vec::new();
    for key in ["order:1", "order:", "order", "%", "Order:1"] {
        ids.push(store.submit_new(keyed(key, OnDuplicate::Skip)).await);
    }
    store.submit("k").await;
    let filter = TaskFilter { key_prefix: Some("order:".to_owned()), ..any() };
    assert_eq!(store.list(filter).await, [ids[1], ids[0]]);
    assert_eq!(store.list(TaskFilter { key_prefix: Some("%".to_owned()), ..any() }).await, [ids[3]]);
}

/// Shows: T13
pub async fn a_filter_takes_those_who_were_asked_to_stop(store: TestStore) {
    let lease = store.running(task("k")).await;
    store.submit("k").await;
    store.cancel(lease.task).await;
    let asked = |asked| TaskFilter { cancel_requested: Some(asked), ..any() };
    assert_eq!(store.list(asked(true)).await, [lease.task]);
    assert_eq!(store.list(asked(false)).await.len(), 1);
}

/// Shows: T13, Q8
pub async fn tasks_are_moved_together_running_ones_after_their_attempt(store: TestStore) {
    let lease = store.running(task("k")).await;
    let ids = submit_some(&store, 2).await;
    let ended = store.submit("other").await;
    store.cancel(ended).await;
    assert_eq!(bulk(&store, BulkVerb::Move(name("slow")), any()).await, done(3));
    let queue_of = async |id| store.record(id).await.queue;
    assert_eq!([queue_of(ids[0]).await, queue_of(ids[1]).await], [name("slow"), name("slow")]);
    assert_eq!([queue_of(lease.task).await, queue_of(ended).await], [name("default"), name("default")]);
    store.release(lease, Duration::ZERO).await;
    assert_eq!(queue_of(lease.task).await, name("slow"));
}

pub async fn a_move_of_no_task_makes_no_queue(store: TestStore) {
    store.completed(task("k")).await;
    assert_eq!(bulk(&store, BulkVerb::Move(name("slow")), any()).await, done(0));
    assert!(store.queue("slow").await.is_none());
}

pub async fn a_verb_that_can_do_nothing_to_the_states_asked_for_does_nothing(store: TestStore) {
    store.completed(task("k")).await;
    store.submit("k").await;
    let of = |state| TaskFilter { states: vec![state], ..any() };
    assert_eq!(bulk(&store, BulkVerb::Cancel, of(TaskState::Completed)).await, done(0));
    assert_eq!(bulk(&store, BulkVerb::Retry, of(TaskState::Waiting)).await, done(0));
    assert_eq!(bulk(&store, BulkVerb::Delete, of(TaskState::Running)).await, done(0));
}

pub async fn a_chunk_of_a_refused_all_did_nothing(store: TestStore) {
    let ids = submit_some(&store, 2).await;
    let refused = Write::Cancel { task: TaskId(999) };
    let all = Write::All(vec![write(BulkVerb::Cancel, any(), None, 1000), refused]);
    assert!(matches!(store.refused(all).await, Refusal::InAll { index: 1, .. }));
    assert_eq!([store.state(ids[0]).await, store.state(ids[1]).await], [TaskState::Waiting; 2]);
}

/// Shows: T13
pub async fn a_chunk_in_which_nothing_is_selected_returns_where_to_continue(store: TestStore) {
    let first = store.submit_new(NewTask { queue: name("rare"), ..task("k") }).await;
    let submit = Write::Submit(Box::new(task("k")));
    store.write(Write::All(vec![submit; 16_384])).await;
    let filter = TaskFilter { queue: Some(name("rare")), ..any() };
    let nothing = chunk(&store, BulkVerb::Cancel, filter.clone(), None, 1000).await;
    assert_eq!(nothing, BulkDone { next: Some(TaskId(2)), ..done(0) });
    assert_eq!(chunk(&store, BulkVerb::Cancel, filter, nothing.next, 1000).await, done(1));
    assert_eq!(store.state(first).await, TaskState::Cancelled);
}
