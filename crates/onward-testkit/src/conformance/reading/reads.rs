//! Listings, queues, statistics, and the description of a store.

use std::time::Duration;

use onward_store::rules::retry::{Backoff, RetryPolicy};
use onward_store::{
    AfterFailure, Dependencies, EndedCounts, IoStatistics, KindStatistics, NewTask, OnDuplicate, Page, Priority,
    QueueRecord, Scope, StoreReads, TaskFilter, TaskId, TaskRecord, TaskState, Timestamp, Ttl, TtlFrom, When, Write,
};

use crate::test_store::{TestStore, after, keyed, name, task};

const SECOND: Duration = Duration::from_secs(1);

/// Shows: T17, Q10
pub async fn a_task_record_has_what_was_submitted_while_it_is_live_and_when_it_has_ended(store: TestStore) {
    let backoff = Backoff::Exponential { initial: SECOND, factor: 2.0, maximum: SECOND * 10 };
    let new = NewTask {
        ttl: Some(Ttl { duration: SECOND * 60, from: TtlFrom::FirstAttempt }),
        timeout: Some(SECOND * 5),
        heartbeat_timeout: Some(SECOND * 2),
        deadline: Some(store.now().plus(SECOND * 600)),
        retention: Some(SECOND * 3600),
        retry: Some(RetryPolicy { attempts: 4, backoff }),
        scheduled_at: Some(store.now()),
        ..task("k")
    };
    let id = store.submit_new(new.clone()).await;
    let options = |task: TaskRecord| {
        let whens = (task.ttl, task.timeout, task.heartbeat_timeout, task.deadline, task.scheduled_at);
        (whens, task.retention, task.retry)
    };
    let whens = (new.ttl, new.timeout, new.heartbeat_timeout, new.deadline, new.scheduled_at);
    assert_eq!(options(store.record(id).await), (whens, new.retention, new.retry));
    store.complete_next().await;
    assert_eq!(options(store.record(id).await), (whens, new.retention, new.retry));
    let listed = store.inner().tasks(TaskFilter::default(), Page::default()).await.unwrap_or_default().tasks;
    assert_eq!(listed.into_iter().map(options).collect::<Vec<_>>(), [(whens, new.retention, new.retry)]);
}

async fn pages(store: &TestStore, limit: usize) -> Vec<Vec<TaskId>> {
    let (mut pages, mut before) = (Vec::new(), None);
    loop {
        let page = store.inner().tasks(TaskFilter::default(), Page { before, limit }).await.unwrap_or_default();
        pages.push(page.tasks.iter().map(|task| task.id).collect());
        before = page.next;
        if before.is_none() {
            return pages;
        }
    }
}

fn ids(numbers: &[i64]) -> Vec<TaskId> {
    numbers.iter().copied().map(TaskId).collect()
}

async fn submit_some(store: &TestStore, count: usize) {
    store.apply((0..count).map(|_| Write::Submit(Box::new(task("k")))).collect()).await;
}

pub async fn an_unknown_task_is_not_found(store: TestStore) {
    assert_eq!((store.find(TaskId(1)).await, store.find(TaskId(-1)).await), (None, None));
}

pub async fn tasks_are_listed_newest_first(store: TestStore) {
    submit_some(&store, 3).await;
    assert_eq!(store.list(TaskFilter::default()).await, ids(&[3, 2, 1]));
}

pub async fn live_and_ended_tasks_are_listed_together(store: TestStore) {
    store.completed(task("k")).await;
    store.submit("k").await;
    store.completed(NewTask { priority: Priority::HIGH, ..task("k") }).await;
    assert_eq!(store.list(TaskFilter::default()).await, ids(&[3, 2, 1]));
}

/// Shows: T17
pub async fn pages_continue_where_the_last_one_ended(store: TestStore) {
    submit_some(&store, 5).await;
    assert_eq!(pages(&store, 2).await, [ids(&[5, 4]), ids(&[3, 2]), ids(&[1])]);
}

pub async fn a_full_last_page_has_no_next_page(store: TestStore) {
    submit_some(&store, 4).await;
    assert_eq!(pages(&store, 2).await, [ids(&[4, 3]), ids(&[2, 1])]);
}

pub async fn pages_stay_in_step_while_tasks_arrive(store: TestStore) {
    submit_some(&store, 4).await;
    let first = store.inner().tasks(TaskFilter::default(), Page { before: None, limit: 2 }).await.unwrap_or_default();
    submit_some(&store, 2).await;
    let second =
        store.inner().tasks(TaskFilter::default(), Page { before: first.next, limit: 2 }).await.unwrap_or_default();
    assert_eq!(second.tasks.iter().map(|task| task.id).collect::<Vec<_>>(), ids(&[2, 1]));
}

pub async fn a_page_holds_at_least_one_and_at_most_a_thousand_tasks(store: TestStore) {
    submit_some(&store, 1001).await;
    for (limit, held) in [(0, 1), (usize::MAX, 1000)] {
        let page = store.inner().tasks(TaskFilter::default(), Page { before: None, limit }).await.unwrap_or_default();
        assert_eq!((page.tasks.len(), page.next.is_some()), (held, true));
    }
}

pub async fn payloads_and_results_are_listed_only_if_asked_for(store: TestStore) {
    let lease = store.running(NewTask { payload: "in".into(), ..task("k") }).await;
    store.done(Write::Complete { lease, result: Some("out".into()) }).await;
    for with_payload in [false, true] {
        let filter = TaskFilter { with_payload, ..TaskFilter::default() };
        let page = store.inner().tasks(filter, Page::default()).await.unwrap_or_default();
        assert_eq!(page.tasks[0].payload.is_some(), with_payload);
        assert_eq!(
            (page.tasks[0].result.is_read(), page.tasks[0].result.bytes().is_some()),
            (with_payload, with_payload)
        );
    }
}

pub async fn a_listing_has_what_a_read_of_the_task_has(store: TestStore) {
    let lease = store.running(keyed("a", OnDuplicate::Skip)).await;
    store.fail(lease, after(SECOND)).await;
    let filter = TaskFilter { with_payload: true, ..TaskFilter::default() };
    let page = store.inner().tasks(filter, Page::default()).await.unwrap_or_default();
    assert_eq!(page.tasks, [store.record(lease.task).await]);
}

/// Shows: T17
pub async fn a_filter_by_kind_shows_that_kind(store: TestStore) {
    store.submit("a").await;
    let wanted = store.submit("b").await;
    let kind = Some(name("b"));
    assert_eq!(store.list(TaskFilter { kind, ..TaskFilter::default() }).await, [wanted]);
}

pub async fn a_filter_by_an_unknown_name_shows_nothing(store: TestStore) {
    store.submit("a").await;
    assert_eq!(store.list(TaskFilter { kind: Some(name("b")), ..TaskFilter::default() }).await, []);
    assert_eq!(store.list(TaskFilter { queue: Some(name("b")), ..TaskFilter::default() }).await, []);
}

/// Shows: T17
pub async fn a_filter_by_queue_shows_that_queue(store: TestStore) {
    store.submit("k").await;
    let wanted = store.submit_new(NewTask { queue: name("q"), ..task("k") }).await;
    let queue = Some(name("q"));
    assert_eq!(store.list(TaskFilter { queue, ..TaskFilter::default() }).await, [wanted]);
}

/// Shows: T17
pub async fn a_filter_by_key_shows_live_and_ended_tasks(store: TestStore) {
    let ended = store.completed(keyed("a", OnDuplicate::Skip)).await;
    let live = store.submit_new(keyed("a", OnDuplicate::Skip)).await;
    store.submit_new(keyed("b", OnDuplicate::Skip)).await;
    let key = Some("a".to_owned());
    assert_eq!(store.list(TaskFilter { key, ..TaskFilter::default() }).await, [live, ended]);
}

/// Shows: T17
pub async fn a_filter_by_states_shows_any_of_them(store: TestStore) {
    let completed = store.completed(task("k")).await;
    let running = store.running(task("k")).await.task;
    store.submit("k").await;
    let states = vec![TaskState::Running, TaskState::Completed];
    assert_eq!(store.list(TaskFilter { states, ..TaskFilter::default() }).await, [running, completed]);
}

/// Shows: T17
pub async fn a_filter_by_submission_includes_its_start_and_not_its_end(store: TestStore) {
    let start = store.now();
    for _ in 0..4 {
        store.submit("k").await;
        store.advance(SECOND);
    }
    let (submitted_from, submitted_before) = (Some(start.plus(SECOND)), Some(start.plus(SECOND * 3)));
    let filter = TaskFilter { submitted_from, submitted_before, ..TaskFilter::default() };
    assert_eq!(store.list(filter).await, ids(&[3, 2]));
}

pub async fn a_filter_by_end_leaves_out_live_tasks(store: TestStore) {
    let ended = store.completed(task("k")).await;
    store.submit("k").await;
    let from = TaskFilter { finished_from: Some(Timestamp::MIN), ..TaskFilter::default() };
    let before = TaskFilter { finished_before: Some(Timestamp::MAX), ..TaskFilter::default() };
    assert_eq!((store.list(from).await, store.list(before).await), (vec![ended], vec![ended]));
}

/// Shows: T17
pub async fn a_filter_by_end_includes_its_start_and_not_its_end(store: TestStore) {
    let start = store.now();
    for _ in 0..4 {
        store.completed(task("k")).await;
        store.advance(SECOND);
    }
    let (finished_from, finished_before) = (Some(start.plus(SECOND)), Some(start.plus(SECOND * 3)));
    let filter = TaskFilter { finished_from, finished_before, ..TaskFilter::default() };
    assert_eq!(store.list(filter).await, ids(&[3, 2]));
}

pub async fn every_condition_of_a_filter_must_hold(store: TestStore) {
    store.submit("a").await;
    store.completed(NewTask { priority: Priority::HIGH, ..task("a") }).await;
    let (kind, states) = (Some(name("a")), vec![TaskState::Waiting]);
    assert_eq!(store.list(TaskFilter { kind, states, ..TaskFilter::default() }).await, ids(&[1]));
}

pub async fn an_empty_store_has_no_queues(store: TestStore) {
    assert_eq!(store.inner().queues().await.ok(), Some(vec![]));
}

/// Shows: Q1
pub async fn queues_are_shown_by_name_with_their_sizes(store: TestStore) {
    store.submit_new(NewTask { queue: name("z"), ..task("k") }).await;
    store.submit_new(NewTask { queue: name("a"), when: When::After(SECOND), ..task("k") }).await;
    store.start_one().await;
    let sizes: Vec<_> = store.inner().queues().await.unwrap_or_default().into_iter().map(sizes).collect();
    assert_eq!(sizes, [("a".to_owned(), 1, 0, 0), ("z".to_owned(), 0, 0, 1)]);
}

fn sizes(queue: QueueRecord) -> (String, u64, u64, u64) {
    (queue.name.to_string(), queue.scheduled, queue.waiting, queue.running)
}

pub async fn a_queue_counts_how_its_tasks_ended(store: TestStore) {
    store.completed(task("k")).await;
    for next in [AfterFailure::Fail, AfterFailure::Dead] {
        let lease = store.running(task("k")).await;
        store.fail(lease, next).await;
    }
    let id = store.submit("k").await;
    store.cancel(id).await;
    let expected = EndedCounts { completed: 1, failed: 1, dead: 1, cancelled: 1, expired: 0 };
    assert_eq!(store.queue("default").await.map(|queue| queue.ended), Some(expected));
}

pub async fn a_queue_no_longer_counts_a_retried_task(store: TestStore) {
    let id = store.completed(task("k")).await;
    store.retry(id).await;
    let queue = store.queue("default").await;
    assert_eq!(queue.map(|queue| (queue.ended.total(), queue.waiting)), Some((0, 1)));
}

pub async fn a_queue_record_has_when_its_oldest_waiting_task_was_due(store: TestStore) {
    let due = store.now().plus(SECOND);
    store.submit_new(NewTask { when: When::At(due), ..task("k") }).await;
    store.advance(SECOND * 2);
    store.submit("k").await;
    store.sweep().await;
    assert_eq!(store.queue("default").await.map(|queue| queue.oldest_waiting), Some(Some(due)));
}

/// Shows: Q10
pub async fn the_oldest_task_of_a_queue_is_found_for_any_kind_and_group(store: TestStore) {
    let oldest = async || store.queue("default").await.and_then(|queue| queue.oldest_waiting);
    let of = |group: &str, kind: &str| NewTask { group: Some(name(group)), ..task(kind) };
    let (late, early) = (store.now().plus(SECOND * 3), store.now().plus(SECOND * 2));
    store.submit_new(NewTask { when: When::At(late), ..of("a", "k") }).await;
    store.submit_new(NewTask { when: When::At(early), ..of("b", "other") }).await;
    store.advance(SECOND * 4);
    store.sweep().await;
    assert_eq!(oldest().await, Some(early));
    let urgent = store.now();
    store.submit_new(NewTask { priority: Priority(129), ..task("k") }).await;
    assert_eq!(oldest().await, Some(urgent));
}

/// Tasks in memory, tasks moved to the tables and tasks that leave either are counted alike.
///
/// Shows: Q10
pub async fn a_queues_sizes_are_right_over_restarts_and_whatever_its_tasks_do(mut store: TestStore) {
    let first = store.submit("k").await;
    store.submit_new(NewTask { when: When::After(SECOND), ..task("k") }).await;
    let blocked = store.submit_new(NewTask { depends_on: Dependencies::on([first]), ..task("k") }).await;
    store.submit("k").await;
    assert_eq!(live_sizes(&store).await, [2, 1, 1, 0]);
    store.reopen().await;
    assert_eq!(live_sizes(&store).await, [2, 1, 1, 0]);
    store.advance(SECOND);
    store.sweep().await;
    assert_eq!(live_sizes(&store).await, [3, 0, 1, 0]);
    let session = store.session().await;
    let claimed = store.claim(session, 2).await;
    assert_eq!(live_sizes(&store).await, [1, 0, 1, 2]);
    store.complete(claimed[0].lease).await;
    assert_eq!(live_sizes(&store).await, [2, 0, 0, 1]);
    store.reopen().await;
    assert_eq!(live_sizes(&store).await, [3, 0, 0, 0]);
    store.cancel(blocked).await;
    store.submit("k").await;
    let (queue, states) = (name("default"), vec![TaskState::Waiting]);
    assert_eq!(store.removed(Write::Purge { queue, states, limit: 2 }).await, (2, true));
    assert_eq!(live_sizes(&store).await, [1, 0, 0, 0]);
}

/// Returns the numbers of waiting, scheduled, blocked and running tasks of the default queue.
async fn live_sizes(store: &TestStore) -> [u64; 4] {
    let queue = store.queue("default").await;
    queue.map_or([0; 4], |queue| [queue.waiting, queue.scheduled, queue.blocked, queue.running])
}

pub async fn a_queue_without_waiting_tasks_has_no_oldest(store: TestStore) {
    store.submit_new(NewTask { when: When::After(SECOND), ..task("k") }).await;
    assert_eq!(store.queue("default").await.map(|queue| queue.oldest_waiting), Some(None));
}

pub async fn a_pause_makes_a_queue_and_is_shown_with_it(store: TestStore) {
    store.pause(Scope::Queue(name("q")), None).await;
    assert_eq!(store.queue("q").await.map(|queue| queue.paused), Some(true));
}

pub async fn a_claim_makes_no_queue(store: TestStore) {
    let session = store.session().await;
    store.claim_from(session, 1, &[("q", 1)]).await;
    assert_eq!(store.queue("q").await, None);
}

pub async fn a_kind_without_ended_tasks_has_no_statistics(store: TestStore) {
    store.running(task("k")).await;
    assert_eq!(store.inner().statistics().await.ok(), Some(vec![]));
}

/// Shows: T17
pub async fn statistics_add_up_what_completed_tasks_took(store: TestStore) {
    for seconds in [1, 3] {
        let lease = run_after(&store, SECOND).await;
        store.advance(SECOND * seconds);
        store.complete(lease).await;
    }
    let expected = KindStatistics {
        kind: name("k"),
        ended: EndedCounts { completed: 2, ..EndedCounts::default() },
        attempts: 2,
        wait: SECOND * 2,
        run: SECOND * 4,
        run_maximum: SECOND * 3,
        io: IoStatistics::default(),
    };
    assert_eq!(store.inner().statistics().await.ok(), Some(vec![expected]));
}

async fn run_after(store: &TestStore, wait: Duration) -> onward_store::Lease {
    store.submit("k").await;
    store.advance(wait);
    store.start_one().await
}

pub async fn statistics_count_every_attempt_of_completed_tasks(store: TestStore) {
    let lease = store.running(task("k")).await;
    store.fail(lease, after(Duration::ZERO)).await;
    store.complete_next().await;
    let statistics = store.inner().statistics().await.unwrap_or_default();
    assert_eq!(statistics[0].attempts, 2);
}

pub async fn statistics_time_only_completed_tasks(store: TestStore) {
    let lease = store.running(task("k")).await;
    store.advance(SECOND);
    store.fail(lease, AfterFailure::Dead).await;
    let statistics = store.inner().statistics().await.unwrap_or_default();
    assert_eq!((statistics[0].ended.dead, statistics[0].run, statistics[0].attempts), (1, Duration::ZERO, 0));
}

/// Shows: T17
pub async fn statistics_are_shown_by_kind(store: TestStore) {
    for kind in ["b", "a"] {
        store.completed(task(kind)).await;
    }
    let kinds: Vec<_> = store.inner().statistics().await.unwrap_or_default().into_iter().map(|one| one.kind).collect();
    assert_eq!(kinds, [name("a"), name("b")]);
}

pub async fn a_retry_does_not_change_statistics(store: TestStore) {
    let id = store.completed(task("k")).await;
    store.retry(id).await;
    let statistics = store.inner().statistics().await.unwrap_or_default();
    assert_eq!(statistics[0].ended.completed, 1);
}

pub async fn a_store_describes_itself(store: TestStore) {
    let info = store.inner().info();
    assert_eq!(info.payload_limit, store.payload_limit());
    assert!(!info.backend.is_empty() && !info.location.is_empty());
}

pub async fn a_store_uses_the_clock_it_was_given(store: TestStore) {
    store.advance(SECOND);
    assert_eq!(store.inner().clock().now(), store.now());
}
