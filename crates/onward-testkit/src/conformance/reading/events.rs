//! The stream of events.

use std::time::Duration;

use onward_store::{
    AfterFailure, Change, Changes, Event, EventCursor, Hint, NewTask, Prune, StoreReads, TaskId, Write,
};

use crate::test_store::{TestStore, after, name, task};

const SECOND: Duration = Duration::from_secs(1);
const FIRST: TaskId = TaskId(1);

async fn page(store: &TestStore, cursor: EventCursor, limit: usize) -> Vec<Event> {
    let page = store.inner().events(cursor, limit).await.unwrap_or_else(|error| unreachable!("{error}"));
    assert_eq!(page.next, page.events.last().map_or(cursor, |event| event.cursor));
    page.events
}

/// Reads a page. Returns up to where events behind the cursor are forgotten, and the events.
async fn page_behind(store: &TestStore, cursor: EventCursor, limit: usize) -> (Option<EventCursor>, Vec<Event>) {
    let page = store.inner().events(cursor, limit).await.unwrap_or_else(|error| unreachable!("{error}"));
    (page.forgotten_up_to, page.events)
}

/// Takes some tasks through every kind of change.
async fn lead_some_lives(store: &TestStore) {
    let lease = store.running(task("k")).await;
    store.fail(lease, AfterFailure::Retry { after: Duration::ZERO, uses_attempt: true, hold: true }).await;
    store.apply(vec![Write::Submit(Box::new(task("a"))), Write::Submit(Box::new(task("b")))]).await;
    store.cancel(TaskId(2)).await;
    store.lapse().await;
    store.complete_next().await;
    store.submit("c").await;
    store.retry(TaskId(2)).await;
}

pub async fn an_empty_store_has_no_events(store: TestStore) {
    assert_eq!(page(&store, EventCursor::START, 10).await, []);
}

pub async fn an_event_has_its_task_its_change_and_its_time(store: TestStore) {
    store.submit_new(NewTask { queue: name("q"), ..task("k") }).await;
    let submitted_at = store.now();
    store.advance(SECOND);
    store.cancel(FIRST).await;
    let events = store.events().await;
    let changes: Vec<_> = events.iter().map(|event| (event.at, event.task, event.change)).collect();
    assert_eq!(changes, [(submitted_at, FIRST, Change::Submitted), (store.now(), FIRST, Change::Cancelled)]);
    assert!(events.iter().all(|event| event.kind == name("k") && event.queue == name("q")));
}

/// Shows: T16
pub async fn a_successful_task_makes_events(store: TestStore) {
    store.completed(task("k")).await;
    let expected = [Change::Submitted, Change::Started { attempt: 1 }, Change::Completed].map(|change| (FIRST, change));
    assert_eq!(store.changes().await, expected);
}

/// Shows: T16
pub async fn a_retry_makes_an_event_with_its_delay(store: TestStore) {
    let lease = store.running(task("k")).await;
    store.fail(lease, after(SECOND)).await;
    assert_eq!(store.changes().await.last(), Some(&(FIRST, Change::Retrying { attempt: 1, after: SECOND })));
}

pub async fn a_held_retry_makes_a_retry_and_a_start_event(store: TestStore) {
    let lease = store.running(task("k")).await;
    store.fail(lease, AfterFailure::Retry { after: Duration::ZERO, uses_attempt: true, hold: true }).await;
    let retrying = Change::Retrying { attempt: 1, after: Duration::ZERO };
    assert_eq!(store.changes().await[2..], [(FIRST, retrying), (FIRST, Change::Started { attempt: 2 })]);
}

/// Shows: T16
pub async fn each_unsuccessful_end_makes_its_own_event(store: TestStore) {
    for (next, change) in [(AfterFailure::Fail, Change::Failed), (AfterFailure::Dead, Change::Dead)] {
        let lease = store.running(task("k")).await;
        store.fail(lease, next).await;
        assert_eq!(store.changes().await.last(), Some(&(lease.task, change)));
    }
}

/// Shows: T16
pub async fn releases_and_retries_make_events(store: TestStore) {
    let lease = store.running(task("k")).await;
    store.release(lease, SECOND).await;
    store.cancel(FIRST).await;
    store.retry(FIRST).await;
    let events = [Change::Released, Change::Cancelled, Change::Retried].map(|change| (FIRST, change));
    assert_eq!(store.changes().await[2..], events);
}

pub async fn submissions_come_before_the_changes_of_their_call(store: TestStore) {
    let submit = || Write::Submit(Box::new(task("k")));
    store.apply(vec![submit(), Write::Cancel { task: FIRST }, submit()]).await;
    store.submit("k").await;
    let submitted = |id| (TaskId(id), Change::Submitted);
    assert_eq!(store.changes().await, [submitted(1), submitted(2), (FIRST, Change::Cancelled), submitted(3)]);
}

pub async fn a_page_holds_no_more_than_was_asked_for(store: TestStore) {
    lead_some_lives(&store).await;
    assert_eq!(page(&store, EventCursor::START, 3).await.len(), 3);
    assert_eq!(page(&store, EventCursor::START, 0).await, []);
}

pub async fn a_page_holds_at_most_a_thousand_events(store: TestStore) {
    store.apply((0..1200).map(|_| Write::Submit(Box::new(task("k")))).collect()).await;
    assert_eq!(page(&store, EventCursor::START, usize::MAX).await.len(), 1000);
}

/// Shows: T16
/// Beats: lost-events
pub async fn pages_of_any_size_lose_nothing_and_repeat_nothing(store: TestStore) {
    lead_some_lives(&store).await;
    let all = store.events().await;
    for size in 1..=all.len() {
        let (mut cursor, mut read) = (EventCursor::START, Vec::new());
        while let Some(last) = extend(&mut read, page(&store, cursor, size).await) {
            cursor = last;
        }
        assert_eq!(read, all, "in pages of {size}");
    }
}

fn extend(read: &mut Vec<Event>, page: Vec<Event>) -> Option<EventCursor> {
    let last = page.last().map(|event| event.cursor);
    read.extend(page);
    assert!(read.len() < 1000, "the same events come again and again");
    last
}

/// Shows: T16
/// Beats: lost-events
pub async fn a_follower_and_a_later_reader_see_the_same(store: TestStore) {
    let (mut followed, mut cursor) = (Vec::new(), EventCursor::START);
    let submit = || Write::Submit(Box::new(task("k")));
    let cancel = |id| Write::Cancel { task: TaskId(id) };
    for writes in [vec![submit()], vec![cancel(1), submit(), cancel(2)], vec![submit(), submit()], vec![cancel(4)]] {
        store.apply(writes).await;
        while let Some(last) = extend(&mut followed, page(&store, cursor, 1).await) {
            cursor = last;
        }
    }
    assert_eq!(followed, store.events().await);
}

pub async fn a_cursor_at_the_end_sees_only_what_comes(store: TestStore) {
    lead_some_lives(&store).await;
    let end = store.events().await.last().map(|event| event.cursor).unwrap_or_default();
    assert_eq!(page(&store, end, 10).await, []);
    let id = store.submit("later").await;
    let later: Vec<_> = page(&store, end, 10).await.into_iter().map(|event| (event.task, event.change)).collect();
    assert_eq!(later, [(id, Change::Submitted)]);
}

/// Shows: T16
pub async fn a_cursor_survives_its_text_form(store: TestStore) {
    lead_some_lives(&store).await;
    let all = store.events().await;
    let cursor: EventCursor = all[4].cursor.to_string().parse().unwrap_or_default();
    assert_eq!(page(&store, cursor, 1000).await, all[5..]);
}

fn prune(keep: u64, limit: usize) -> Write {
    Write::Prune(Prune { keep: Some(keep), older_than: None, limit })
}

pub async fn a_pruned_tasks_submission_is_left_out(store: TestStore) {
    store.completed(task("k")).await;
    store.removed(prune(0, 9)).await;
    assert!(store.changes().await.iter().all(|(_, change)| *change != Change::Submitted));
}

pub async fn a_prune_forgets_the_events_up_to_the_last_end_it_forgets(store: TestStore) {
    store.completed(task("k")).await;
    store.completed(task("k")).await;
    let kept = store.submit("k").await;
    store.cancel(kept).await;
    store.removed(prune(1, 9)).await;
    assert_eq!(store.changes().await, [(kept, Change::Submitted), (kept, Change::Cancelled)]);
}

pub async fn the_newest_calls_events_stay(store: TestStore) {
    store.completed(task("k")).await;
    store.removed(prune(0, 9)).await;
    assert_eq!(store.changes().await, [(FIRST, Change::Completed)]);
}

pub async fn a_calls_events_stay_while_a_task_that_ended_in_it_is_kept(store: TestStore) {
    for _ in 0..3 {
        store.submit("k").await;
    }
    let cancel = |id| Write::Cancel { task: TaskId(id) };
    store.apply(vec![cancel(1), cancel(2)]).await;
    store.cancel(TaskId(3)).await;
    assert_eq!(store.removed(prune(0, 1)).await, (1, true));
    let cancelled = store.changes().await.into_iter().filter(|(_, change)| *change == Change::Cancelled);
    assert_eq!(cancelled.map(|(id, _)| id.0).collect::<Vec<_>>(), [1, 2, 3]);
}

pub async fn a_cursor_into_forgotten_events_continues_with_the_oldest_there_are(store: TestStore) {
    store.completed(task("k")).await;
    let cursor = store.events().await[1].cursor;
    let kept = store.submit("k").await;
    store.cancel(kept).await;
    store.removed(prune(1, 9)).await;
    let events: Vec<_> = page(&store, cursor, 9).await.into_iter().map(|event| (event.task, event.change)).collect();
    assert_eq!(events, [(kept, Change::Submitted), (kept, Change::Cancelled)]);
}

/// Shows: T16
/// Beats: lost-events
pub async fn a_reader_is_notified_once_that_unread_events_are_forgotten(store: TestStore) {
    store.completed(task("k")).await;
    let cursor = store.events().await[1].cursor;
    let kept = store.submit("k").await;
    store.cancel(kept).await;
    store.removed(prune(1, 9)).await;
    let (forgotten, events) = page_behind(&store, cursor, 1).await;
    assert!(forgotten.is_some(), "an end was forgotten");
    let oldest = forgotten.unwrap_or_default();
    assert_eq!(page_behind(&store, oldest, 1).await, (None, events.clone()));
    let (forgotten, rest) = page_behind(&store, events[0].cursor, 9).await;
    assert_eq!((forgotten, rest.len()), (None, 1));
}

/// Shows: T16
pub async fn a_reader_within_a_call_whose_events_are_forgotten_is_notified(store: TestStore) {
    store.submit("k").await;
    store.submit("k").await;
    store.apply(vec![Write::Cancel { task: FIRST }, Write::Cancel { task: TaskId(2) }]).await;
    let within = store.events().await[2].cursor;
    let kept = store.submit("k").await;
    store.cancel(kept).await;
    store.removed(prune(1, 9)).await;
    let (forgotten, events) = page_behind(&store, within, 9).await;
    assert!(forgotten.is_some() && events.iter().all(|event| event.task == kept), "{events:?}");
}

/// Shows: T16
pub async fn a_reader_that_has_read_all_that_is_forgotten_lacks_nothing(store: TestStore) {
    store.completed(task("k")).await;
    let cursor = store.events().await.last().map(|event| event.cursor).unwrap_or_default();
    let kept = store.submit("k").await;
    store.cancel(kept).await;
    store.removed(prune(1, 9)).await;
    let (forgotten, events) = page_behind(&store, cursor, 9).await;
    assert_eq!((forgotten, events.len()), (None, 2));
}

pub async fn a_reader_from_the_start_gets_what_there_is(store: TestStore) {
    store.completed(task("k")).await;
    let kept = store.submit("k").await;
    store.cancel(kept).await;
    store.removed(prune(1, 9)).await;
    let (forgotten, events) = page_behind(&store, EventCursor::START, 1).await;
    assert_eq!((forgotten, events.len()), (None, 1));
    assert_eq!(page_behind(&store, events[0].cursor, 9).await.0, None);
}

pub async fn a_report_and_a_refusal_are_no_events(store: TestStore) {
    let lease = store.running(task("k")).await;
    let before = store.events().await;
    store.done(Write::Report { lease, fraction: Some(0.1), message: None, bytes: None }).await;
    store.refused(Write::Retry { task: FIRST }).await;
    assert_eq!(store.events().await, before);
}

/// Returns the next hint. A timeout fails the case, instead of hanging it, if the store gives none.
async fn hinted(changes: &mut Changes) -> Option<Hint> {
    tokio::time::timeout(Duration::from_secs(10), changes.changed()).await.ok()?
}

pub async fn a_change_hints_at_work(store: TestStore) {
    let mut changes = store.inner().changes();
    let before = changes.hint();
    store.submit("k").await;
    assert!(hinted(&mut changes).await.is_some_and(|hint| hint.work > before.work));
}

pub async fn an_end_hints_at_a_transition(store: TestStore) {
    let lease = store.running(task("k")).await;
    let mut changes = store.inner().changes();
    let before = changes.hint();
    store.complete(lease).await;
    assert!(hinted(&mut changes).await.is_some_and(|hint| hint.transitions > before.transitions));
}

pub async fn a_request_to_stop_hints_at_a_transition(store: TestStore) {
    let lease = store.running(task("k")).await;
    let mut changes = store.inner().changes();
    let before = changes.hint();
    store.cancel(lease.task).await;
    assert!(hinted(&mut changes).await.is_some_and(|hint| hint.transitions > before.transitions));
}

pub async fn a_resumption_hints_at_work(store: TestStore) {
    store.pause(onward_store::Scope::All, None).await;
    let mut changes = store.inner().changes();
    let before = changes.hint();
    store.done(Write::Resume { scope: onward_store::Scope::All }).await;
    assert!(hinted(&mut changes).await.is_some_and(|hint| hint.work > before.work));
}

pub async fn a_released_task_hints_at_work(store: TestStore) {
    let lease = store.running(task("k")).await;
    let mut changes = store.inner().changes();
    let before = changes.hint();
    store.release(lease, SECOND).await;
    assert!(hinted(&mut changes).await.is_some_and(|hint| hint.work > before.work));
}
