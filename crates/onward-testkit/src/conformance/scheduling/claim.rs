//! Claims.

use std::time::Duration;

use onward_store::{
    Claim, KindSelection, Lease, NewTask, Outcome, Priority, QueueMode, QueueSelection, Refusal, SessionId, StoreReads,
    TaskId, TaskState, When, Write, bounds,
};

use crate::test_store::{TestStore, after, all_of, name, numbers, task};

fn of_priority(priority: u8) -> NewTask {
    NewTask { priority: Priority(priority), ..task("k") }
}

fn in_queue(queue: &str) -> NewTask {
    NewTask { queue: name(queue), ..task("k") }
}

pub async fn a_claim_makes_a_task_run(store: TestStore) {
    let id = store.submit("k").await;
    let lease = store.start_one().await;
    assert_eq!(lease, Lease { task: id, session: SessionId(1), claim: 1 });
    let record = store.record(id).await;
    assert_eq!((record.state, record.session, record.attempts), (TaskState::Running, Some(lease.session), 1));
    assert_eq!(record.started_at, Some(store.now()));
}

pub async fn two_claims_never_get_the_same_task(store: TestStore) {
    store.submit("k").await;
    store.start_one().await;
    let session = store.session().await;
    assert_eq!(store.claim(session, 10).await, []);
}

pub async fn a_claim_respects_its_limit(store: TestStore) {
    for _ in 0..3 {
        store.submit("k").await;
    }
    let session = store.session().await;
    assert_eq!((store.claim(session, 2).await.len(), store.claim(session, 2).await.len()), (2, 1));
}

pub async fn a_claim_of_none_gets_none(store: TestStore) {
    store.submit("k").await;
    let session = store.session().await;
    assert_eq!(store.claim(session, 0).await, []);
}

pub async fn a_claim_beyond_the_limit_of_claims_gets_that_many(store: TestStore) {
    let writes = (0..4097).map(|_| Write::Submit(Box::new(task("k")))).collect();
    store.apply(writes).await;
    let session = store.session().await;
    assert_eq!(store.claim(session, usize::MAX).await.len(), 4096);
}

/// Shows: T4
pub async fn within_a_priority_the_oldest_comes_first(store: TestStore) {
    let ids = [store.submit("a").await, store.submit("b").await, store.submit("a").await];
    let session = store.session().await;
    assert_eq!(numbers(&store.claim(session, 3).await), ids);
}

/// Shows: T4
pub async fn the_most_urgent_comes_first(store: TestStore) {
    let low = store.submit_new(of_priority(0)).await;
    let high = store.submit_new(of_priority(255)).await;
    let middle = store.submit_new(of_priority(128)).await;
    let session = store.session().await;
    assert_eq!(numbers(&store.claim(session, 3).await), [high, middle, low]);
}

pub async fn all_queues_are_merged_by_priority_and_age(store: TestStore) {
    let first = store.submit_new(in_queue("z")).await;
    let second = store.submit_new(in_queue("a")).await;
    let urgent = store.submit_new(NewTask { priority: Priority::URGENT, ..in_queue("m") }).await;
    let session = store.session().await;
    assert_eq!(numbers(&store.claim(session, 3).await), [urgent, first, second]);
}

pub async fn a_claim_takes_only_from_the_queues_it_names(store: TestStore) {
    store.submit_new(in_queue("a")).await;
    let wanted = store.submit_new(in_queue("b")).await;
    let session = store.session().await;
    assert_eq!(store.claim_from(session, 10, &[("b", 10), ("unknown", 10)]).await, [wanted]);
}

pub async fn a_claim_takes_at_most_its_limit_from_each_queue(store: TestStore) {
    let first = store.submit_new(in_queue("a")).await;
    store.submit_new(in_queue("a")).await;
    let other = store.submit_new(in_queue("b")).await;
    let session = store.session().await;
    assert_eq!(store.claim_from(session, 10, &[("a", 1), ("b", 5)]).await, [first, other]);
}

pub async fn the_limit_in_all_holds_over_the_limits_of_queues(store: TestStore) {
    let low = NewTask { priority: Priority::LOW, ..in_queue("a") };
    store.submit_new(low).await;
    let wanted = store.submit_new(in_queue("b")).await;
    let session = store.session().await;
    assert_eq!(store.claim_from(session, 1, &[("a", 5), ("b", 5)]).await, [wanted]);
}

pub async fn a_claim_of_no_queue_gets_none(store: TestStore) {
    store.submit("k").await;
    let session = store.session().await;
    assert_eq!(store.claim_from(session, 10, &[]).await, []);
}

pub async fn a_claim_takes_only_the_kinds_it_names(store: TestStore) {
    store.submit("a").await;
    let wanted = store.submit("b").await;
    let session = store.session().await;
    assert_eq!(store.claim_kinds(session, 10, &["b", "unknown"]).await, [wanted]);
}

pub async fn a_claim_of_no_kind_gets_none(store: TestStore) {
    store.submit("k").await;
    let session = store.session().await;
    assert_eq!(store.claim_kinds(session, 10, &[]).await, []);
}

pub async fn queues_and_kinds_combine(store: TestStore) {
    store.submit_new(NewTask { kind: name("x"), ..in_queue("a") }).await;
    let wanted = store.submit_new(NewTask { kind: name("y"), ..in_queue("a") }).await;
    store.submit_new(NewTask { kind: name("y"), ..in_queue("b") }).await;
    let session = store.session().await;
    let queues = QueueSelection::Only(vec![(name("a"), 9)]);
    let kinds = KindSelection::Only(vec![name("y")]);
    let claimed = store.claimed(Claim { queues, kinds, ..all_of(session, 9) }).await;
    assert_eq!(numbers(&claimed.tasks), [wanted]);
}

/// Shows: T5
pub async fn a_task_that_is_not_due_is_not_claimed(store: TestStore) {
    store.submit_new(NewTask { when: When::After(Duration::from_micros(1)), ..task("k") }).await;
    let session = store.session().await;
    assert_eq!(store.claim(session, 1).await, []);
}

/// Shows: T5
pub async fn a_task_is_claimed_from_the_moment_it_is_due(store: TestStore) {
    let delay = Duration::from_millis(250);
    let id = store.submit_new(NewTask { when: When::After(delay), ..task("k") }).await;
    let session = store.session().await;
    store.advance(delay);
    assert_eq!(numbers(&store.claim(session, 1).await), [id]);
}

/// Shows: T4
pub async fn a_task_that_comes_due_goes_behind_what_was_due_before(store: TestStore) {
    let first = store.submit_new(NewTask { when: When::After(Duration::from_secs(1)), ..task("k") }).await;
    let second = store.submit("k").await;
    let session = store.session().await;
    store.advance(Duration::from_secs(1));
    assert_eq!(numbers(&store.claim(session, 2).await), [second, first]);
}

/// Submits a task, and after `between` another that is more urgent by two levels. Returns the order
/// in which they are claimed.
async fn order_after(store: &TestStore, between: Duration) -> Vec<TaskId> {
    store.submit_new(NewTask { priority: Priority(10), ..task("k") }).await;
    store.advance(between);
    store.submit_new(NewTask { priority: Priority(12), ..task("k") }).await;
    let session = store.session().await;
    numbers(&store.claim(session, 2).await)
}

/// Shows: T4
pub async fn a_task_that_has_waited_long_goes_before_a_more_urgent_one(store: TestStore) {
    assert_eq!(order_after(&store, bounds::PRIORITY_LEVEL * 2).await, [TaskId(1), TaskId(2)]);
}

/// Shows: T4
pub async fn a_task_that_has_waited_less_goes_behind_a_more_urgent_one(store: TestStore) {
    let between = bounds::PRIORITY_LEVEL * 2 - Duration::from_micros(1);
    assert_eq!(order_after(&store, between).await, [TaskId(2), TaskId(1)]);
}

pub async fn a_task_that_is_retried_at_once_keeps_its_position(store: TestStore) {
    let lease = store.running(task("k")).await;
    let second = store.submit("k").await;
    store.fail(lease, after(Duration::ZERO)).await;
    assert_eq!(numbers(&store.claim(lease.session, 2).await), [lease.task, second]);
}

pub async fn a_claim_counts_claims_and_attempts(store: TestStore) {
    let lease = store.running(task("k")).await;
    store.release(lease, Duration::ZERO).await;
    let released = store.claim(lease.session, 1).await.remove(0);
    assert_eq!((released.lease.claim, released.attempt), (2, 1));
    store.fail(released.lease, after(Duration::ZERO)).await;
    let failed = store.claim(lease.session, 1).await.remove(0);
    assert_eq!((failed.lease.claim, failed.attempt), (3, 2));
}

pub async fn an_unknown_session_claims_nothing(store: TestStore) {
    let id = store.submit("k").await;
    let session = SessionId(77);
    assert_eq!(store.refused(Write::Claim(all_of(session, 1))).await, Refusal::SessionLost(session));
    assert_eq!(store.state(id).await, TaskState::Waiting);
}

pub async fn a_refused_claim_sweeps_nothing(store: TestStore) {
    let id = store.submit_new(NewTask { when: When::After(Duration::from_secs(1)), ..task("k") }).await;
    store.advance(Duration::from_secs(1));
    store.refused(Write::Claim(all_of(SessionId(77), 1))).await;
    assert_eq!(store.state(id).await, TaskState::Scheduled);
}

pub async fn a_claim_renews_its_session(store: TestStore) {
    let lease = store.running(task("k")).await;
    for _ in 0..3 {
        store.advance(Duration::from_secs(9));
        store.claim(lease.session, 0).await;
    }
    store.complete(lease).await;
}

pub async fn a_late_claim_does_not_lose_the_claimers_own_tasks(store: TestStore) {
    let lease = store.running(task("k")).await;
    store.advance(Duration::from_secs(3600));
    store.claim(lease.session, 1).await;
    store.complete(lease).await;
}

pub async fn a_claim_names_the_tasks_to_be_cancelled_every_time(store: TestStore) {
    let lease = store.running(task("k")).await;
    store.cancel(lease.task).await;
    for _ in 0..2 {
        assert_eq!(store.claimed(all_of(lease.session, 1)).await.cancel, [lease.task]);
    }
    store.complete(lease).await;
    assert_eq!(store.claimed(all_of(lease.session, 1)).await.cancel, []);
}

pub async fn a_claim_names_no_task_without_a_cancel_request(store: TestStore) {
    let lease = store.running(task("k")).await;
    store.submit("k").await;
    store.claim_one(lease.session).await;
    store.cancel(lease.task).await;
    assert_eq!(store.claimed(all_of(lease.session, 1)).await.cancel, [lease.task]);
}

pub async fn a_claim_names_no_other_sessions_tasks(store: TestStore) {
    let lease = store.running(task("k")).await;
    store.cancel(lease.task).await;
    let other = store.session().await;
    assert_eq!(store.claimed(all_of(other, 1)).await.cancel, []);
}

pub async fn a_completion_and_a_claim_share_a_call(store: TestStore) {
    let lease = store.running(task("k")).await;
    let next = store.submit("k").await;
    let outcomes =
        store.apply(vec![Write::Complete { lease, result: None }, Write::Claim(all_of(lease.session, 1))]).await;
    assert_eq!(outcomes.len(), 2);
    assert_eq!((store.state(lease.task).await, store.state(next).await), (TaskState::Completed, TaskState::Running));
}

pub async fn peek_shows_what_a_claim_would_get(store: TestStore) {
    store.submit_new(of_priority(1)).await;
    let urgent = store.submit_new(of_priority(9)).await;
    let peeked = store.inner().peek(all_of(SessionId(0), 0)).await;
    assert_eq!(peeked.ok().flatten().map(|task| (task.id, task.state)), Some((urgent, TaskState::Waiting)));
}

pub async fn peek_shows_nothing_where_nothing_can_be_claimed(store: TestStore) {
    store.submit_new(NewTask { when: When::After(Duration::from_secs(1)), ..task("k") }).await;
    store.submit("other").await;
    let kinds = KindSelection::Only(vec![name("k")]);
    let peeked = store.inner().peek(Claim { kinds, ..all_of(SessionId(0), 0) }).await;
    assert_eq!(peeked.ok(), Some(None));
}

fn matching(kinds: &[&str], prefixes: &[&str]) -> KindSelection {
    let kinds = kinds.iter().map(|kind| name(kind)).collect();
    KindSelection::matching(kinds, prefixes.iter().map(|prefix| (*prefix).to_owned()).collect())
}

/// Shows: Q7
pub async fn a_claim_by_kind_prefix_takes_those_alone(store: TestStore) {
    let small = store.submit("image:small").await;
    store.submit("imag").await;
    store.submit("Image:small").await;
    let large = store.submit("image:large").await;
    let session = store.session().await;
    let claimed = store.claimed(Claim { kinds: matching(&[], &["image:"]), ..all_of(session, 9) }).await;
    assert_eq!(numbers(&claimed.tasks), [small, large]);
}

/// Shows: Q7
pub async fn kinds_and_kind_prefixes_add_up(store: TestStore) {
    let image = store.submit("image:small").await;
    let mail = store.submit("mail").await;
    store.submit("mail:large").await;
    let session = store.session().await;
    let claimed = store.claimed(Claim { kinds: matching(&["mail"], &["image:", "x"]), ..all_of(session, 9) }).await;
    assert_eq!(numbers(&claimed.tasks), [image, mail]);
}

/// Shows: Q7
pub async fn an_empty_prefix_takes_every_kind(store: TestStore) {
    let task = store.submit("any").await;
    let session = store.session().await;
    let claimed = store.claimed(Claim { kinds: matching(&[], &[""]), ..all_of(session, 9) }).await;
    assert_eq!(numbers(&claimed.tasks), [task]);
}

/// Shows: Q7
pub async fn a_claim_of_every_kind_leaves_those_that_are_reserved(store: TestStore) {
    let line = NewTask { queue: name("each:run"), ..task(bounds::EACH_KIND) };
    let (line, own) = (store.submit_new(line).await, store.submit("own").await);
    let session = store.session().await;
    let claimed = store.claimed(Claim { kinds: matching(&[], &["", "onward."]), ..all_of(session, 9) }).await;
    assert_eq!(numbers(&claimed.tasks), [own]);
    assert_eq!(store.claim(session, 9).await, []);
    assert_eq!(store.claim_kinds(session, 9, &[bounds::EACH_KIND]).await, [line]);
}

/// Shows: Q7, D9
pub async fn a_claim_leaves_out_orchestrations_that_it_does_not_ask_for(store: TestStore) {
    let of = |group: Option<&str>, orchestration| NewTask { group: group.map(name), orchestration, ..task("both") };
    let first = store.submit_new(of(None, true)).await;
    let plain = store.submit_new(of(None, false)).await;
    let of_group = store.submit_new(of(Some("g"), true)).await;
    let plain_of_group = store.submit_new(of(Some("g"), false)).await;
    let with_affinity_key = store.submit_new(NewTask { affinity: Some(name("s")), ..of(Some("g"), true) }).await;
    let session = store.session().await;
    let tasks = |kinds| Claim { kinds, orchestrations: false, ..all_of(session, 9) };
    let peeked = store.inner().peek(tasks(KindSelection::All)).await;
    assert_eq!(peeked.ok().flatten().map(|task| task.id), Some(plain));
    let claimed = store.claimed(tasks(matching(&["both"], &["b"]))).await;
    assert_eq!(numbers(&claimed.tasks), [plain, plain_of_group]);
    let named = store.claimed(tasks(KindSelection::Only(vec![name("both")]))).await;
    assert_eq!(numbers(&named.tasks), []);
    assert_eq!(store.claim_kinds(session, 9, &["both"]).await, [first, of_group, with_affinity_key]);
}

/// Shows: Q7, D9
pub async fn orchestrations_that_a_claim_leaves_out_delay_no_task_after_a_restart(mut store: TestStore) {
    for orchestration in [true, true, true, false] {
        store.submit_new(NewTask { orchestration, ..task("both") }).await;
    }
    store.reopen().await;
    let last = store.submit("both").await;
    store.done(Write::SetQueueMode(QueueMode::Strict)).await;
    let session = store.session().await;
    let claimed = store.claimed(Claim { orchestrations: false, ..all_of(session, 2) }).await;
    assert_eq!(claimed.tasks.last().map(|task| task.lease.task), Some(last));
    assert_eq!(store.claim(session, 9).await.len(), 3);
}

/// Shows: Q7, D9
pub async fn an_orchestration_is_moved_to_another_queue_as_one(store: TestStore) {
    let moved = store.submit_new(NewTask { orchestration: true, ..task("both") }).await;
    let outcome = store.write(Write::Move { task: moved, queue: name("slow") }).await;
    assert_eq!(outcome, Outcome::Moved);
    let session = store.session().await;
    let claimed = store.claimed(Claim { orchestrations: false, ..all_of(session, 9) }).await;
    assert_eq!(numbers(&claimed.tasks), []);
    assert_eq!(store.claim_from(session, 9, &[("slow", 9)]).await, [moved]);
}

/// Shows: Q7
pub async fn a_reserved_kind_or_queue_is_refused_by_name(store: TestStore) {
    let in_queue = |queue: &str, kind: &str| NewTask { queue: name(queue), ..task(kind) };
    for (new, what) in [
        (task("onward.mine"), "the kind `onward.mine`"),
        (task(bounds::EACH_KIND), "the kind `onward.each`"),
        (in_queue("onward.mine", "k"), "the queue `onward.mine`"),
        (in_queue(bounds::UNSTARTED_QUEUE, "k"), "the queue `onward.unstarted`"),
        (NewTask { orchestration: true, ..in_queue(bounds::UNSTARTED_QUEUE, "k") }, "the queue `onward.unstarted`"),
        (NewTask { orchestration: true, ..in_queue("each:run", bounds::EACH_KIND) }, "the kind `onward.each`"),
    ] {
        let text = store.invalid(Write::Submit(Box::new(new))).await;
        assert!(text.contains(what) && text.contains("`onward.`, which is reserved"), "{text}");
    }
}

/// Shows: Q7
pub async fn peek_respects_kind_prefixes(store: TestStore) {
    store.submit("mail").await;
    let image = store.submit("image:small").await;
    let peeked = store.inner().peek(Claim { kinds: matching(&[], &["image:"]), ..all_of(SessionId(0), 0) }).await;
    assert_eq!(peeked.ok().flatten().map(|task| task.id), Some(image));
}
