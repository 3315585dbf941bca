//! The stream of events.

use std::time::Duration;

use onward_store::{
    AfterFailure, Change, Changes, Event, EventCursor, Hint, NewTask, Prune, StoreReads, TaskId, Write,
};

use crate::bench::{Bench, after, name, task};

const SECOND: Duration = Duration::from_secs(1);
const FIRST: TaskId = TaskId(1);

async fn page(bench: &Bench, cursor: EventCursor, limit: usize) -> Vec<Event> {
    let page = bench.store().events(cursor, limit).await.unwrap_or_else(|error| unreachable!("{error}"));
    assert_eq!(page.next, page.events.last().map_or(cursor, |event| event.cursor));
    page.events
}

/// Reads a page. Returns up to where events behind the cursor are forgotten, and the events.
async fn page_behind(bench: &Bench, cursor: EventCursor, limit: usize) -> (Option<EventCursor>, Vec<Event>) {
    let page = bench.store().events(cursor, limit).await.unwrap_or_else(|error| unreachable!("{error}"));
    (page.forgotten_up_to, page.events)
}

/// Takes some tasks through every kind of change.
async fn lead_some_lives(bench: &Bench) {
    let lease = bench.running(task("k")).await;
    bench.fail(lease, AfterFailure::Retry { after: Duration::ZERO, uses_attempt: true, hold: true }).await;
    bench.apply(vec![Write::Submit(Box::new(task("a"))), Write::Submit(Box::new(task("b")))]).await;
    bench.cancel(TaskId(2)).await;
    bench.lapse().await;
    bench.complete_next().await;
    bench.submit("c").await;
    bench.retry(TaskId(2)).await;
}

pub async fn an_empty_store_has_no_events(bench: Bench) {
    assert_eq!(page(&bench, EventCursor::START, 10).await, []);
}

pub async fn an_event_says_what_happened_to_what_and_when(bench: Bench) {
    bench.submit_new(NewTask { queue: name("q"), ..task("k") }).await;
    let submitted_at = bench.now();
    bench.advance(SECOND);
    bench.cancel(FIRST).await;
    let events = bench.events().await;
    let told: Vec<_> = events.iter().map(|event| (event.at, event.task, event.change)).collect();
    assert_eq!(told, [(submitted_at, FIRST, Change::Submitted), (bench.now(), FIRST, Change::Cancelled)]);
    assert!(events.iter().all(|event| event.kind == name("k") && event.queue == name("q")));
}

/// Shows: T16
pub async fn a_good_life_is_told(bench: Bench) {
    bench.completed(task("k")).await;
    let expected = [Change::Submitted, Change::Started { attempt: 1 }, Change::Completed].map(|change| (FIRST, change));
    assert_eq!(bench.changes().await, expected);
}

/// Shows: T16
pub async fn a_retry_is_told_with_its_delay(bench: Bench) {
    let lease = bench.running(task("k")).await;
    bench.fail(lease, after(SECOND)).await;
    assert_eq!(bench.changes().await.last(), Some(&(FIRST, Change::Retrying { attempt: 1, after: SECOND })));
}

pub async fn holding_on_is_told_as_a_retry_and_a_start(bench: Bench) {
    let lease = bench.running(task("k")).await;
    bench.fail(lease, AfterFailure::Retry { after: Duration::ZERO, uses_attempt: true, hold: true }).await;
    let retrying = Change::Retrying { attempt: 1, after: Duration::ZERO };
    assert_eq!(bench.changes().await[2..], [(FIRST, retrying), (FIRST, Change::Started { attempt: 2 })]);
}

/// Shows: T16
pub async fn each_bad_end_is_told_as_what_it_is(bench: Bench) {
    for (next, change) in [(AfterFailure::Fail, Change::Failed), (AfterFailure::Dead, Change::Dead)] {
        let lease = bench.running(task("k")).await;
        bench.fail(lease, next).await;
        assert_eq!(bench.changes().await.last(), Some(&(lease.task, change)));
    }
}

/// Shows: T16
pub async fn giving_back_and_trying_again_are_told(bench: Bench) {
    let lease = bench.running(task("k")).await;
    bench.release(lease, SECOND).await;
    bench.cancel(FIRST).await;
    bench.retry(FIRST).await;
    let told = [Change::Released, Change::Cancelled, Change::Retried].map(|change| (FIRST, change));
    assert_eq!(bench.changes().await[2..], told);
}

pub async fn submissions_come_before_the_changes_of_their_call(bench: Bench) {
    let submit = || Write::Submit(Box::new(task("k")));
    bench.apply(vec![submit(), Write::Cancel { task: FIRST }, submit()]).await;
    bench.submit("k").await;
    let submitted = |id| (TaskId(id), Change::Submitted);
    assert_eq!(bench.changes().await, [submitted(1), submitted(2), (FIRST, Change::Cancelled), submitted(3)]);
}

pub async fn a_page_holds_no_more_than_was_asked_for(bench: Bench) {
    lead_some_lives(&bench).await;
    assert_eq!(page(&bench, EventCursor::START, 3).await.len(), 3);
    assert_eq!(page(&bench, EventCursor::START, 0).await, []);
}

pub async fn a_page_holds_at_most_a_thousand_events(bench: Bench) {
    bench.apply((0..1200).map(|_| Write::Submit(Box::new(task("k")))).collect()).await;
    assert_eq!(page(&bench, EventCursor::START, usize::MAX).await.len(), 1000);
}

/// Shows: T16
/// Beats: lost-events
pub async fn pages_of_any_size_lose_nothing_and_repeat_nothing(bench: Bench) {
    lead_some_lives(&bench).await;
    let all = bench.events().await;
    for size in 1..=all.len() {
        let (mut cursor, mut read) = (EventCursor::START, Vec::new());
        while let Some(last) = extend(&mut read, page(&bench, cursor, size).await) {
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
pub async fn whoever_follows_sees_what_whoever_reads_later_sees(bench: Bench) {
    let (mut followed, mut cursor) = (Vec::new(), EventCursor::START);
    let submit = || Write::Submit(Box::new(task("k")));
    let cancel = |id| Write::Cancel { task: TaskId(id) };
    for writes in [vec![submit()], vec![cancel(1), submit(), cancel(2)], vec![submit(), submit()], vec![cancel(4)]] {
        bench.apply(writes).await;
        while let Some(last) = extend(&mut followed, page(&bench, cursor, 1).await) {
            cursor = last;
        }
    }
    assert_eq!(followed, bench.events().await);
}

pub async fn a_cursor_at_the_end_sees_only_what_comes(bench: Bench) {
    lead_some_lives(&bench).await;
    let end = bench.events().await.last().map(|event| event.cursor).unwrap_or_default();
    assert_eq!(page(&bench, end, 10).await, []);
    let id = bench.submit("later").await;
    let later: Vec<_> = page(&bench, end, 10).await.into_iter().map(|event| (event.task, event.change)).collect();
    assert_eq!(later, [(id, Change::Submitted)]);
}

/// Shows: T16
pub async fn a_cursor_survives_its_text_form(bench: Bench) {
    lead_some_lives(&bench).await;
    let all = bench.events().await;
    let cursor: EventCursor = all[4].cursor.to_string().parse().unwrap_or_default();
    assert_eq!(page(&bench, cursor, 1000).await, all[5..]);
}

fn prune(keep: u64, limit: usize) -> Write {
    Write::Prune(Prune { keep: Some(keep), older_than: None, limit })
}

pub async fn a_pruned_tasks_submission_is_left_out(bench: Bench) {
    bench.completed(task("k")).await;
    bench.removed(prune(0, 9)).await;
    assert!(bench.changes().await.iter().all(|(_, change)| *change != Change::Submitted));
}

pub async fn a_prune_forgets_the_events_up_to_the_last_end_it_forgets(bench: Bench) {
    bench.completed(task("k")).await;
    bench.completed(task("k")).await;
    let kept = bench.submit("k").await;
    bench.cancel(kept).await;
    bench.removed(prune(1, 9)).await;
    assert_eq!(bench.changes().await, [(kept, Change::Submitted), (kept, Change::Cancelled)]);
}

pub async fn the_newest_calls_events_stay(bench: Bench) {
    bench.completed(task("k")).await;
    bench.removed(prune(0, 9)).await;
    assert_eq!(bench.changes().await, [(FIRST, Change::Completed)]);
}

pub async fn a_calls_events_stay_while_a_task_that_ended_in_it_is_kept(bench: Bench) {
    for _ in 0..3 {
        bench.submit("k").await;
    }
    let cancel = |id| Write::Cancel { task: TaskId(id) };
    bench.apply(vec![cancel(1), cancel(2)]).await;
    bench.cancel(TaskId(3)).await;
    assert_eq!(bench.removed(prune(0, 1)).await, (1, true));
    let cancelled = bench.changes().await.into_iter().filter(|(_, change)| *change == Change::Cancelled);
    assert_eq!(cancelled.map(|(id, _)| id.0).collect::<Vec<_>>(), [1, 2, 3]);
}

pub async fn a_cursor_into_forgotten_events_goes_on_with_the_oldest_there_are(bench: Bench) {
    bench.completed(task("k")).await;
    let cursor = bench.events().await[1].cursor;
    let kept = bench.submit("k").await;
    bench.cancel(kept).await;
    bench.removed(prune(1, 9)).await;
    let told: Vec<_> = page(&bench, cursor, 9).await.into_iter().map(|event| (event.task, event.change)).collect();
    assert_eq!(told, [(kept, Change::Submitted), (kept, Change::Cancelled)]);
}

/// Shows: T16
/// Beats: lost-events
pub async fn a_reader_is_told_once_that_events_it_had_not_read_are_forgotten(bench: Bench) {
    bench.completed(task("k")).await;
    let cursor = bench.events().await[1].cursor;
    let kept = bench.submit("k").await;
    bench.cancel(kept).await;
    bench.removed(prune(1, 9)).await;
    let (forgotten, events) = page_behind(&bench, cursor, 1).await;
    assert!(forgotten.is_some(), "an end was forgotten");
    let oldest = forgotten.unwrap_or_default();
    assert_eq!(page_behind(&bench, oldest, 1).await, (None, events.clone()));
    let (forgotten, rest) = page_behind(&bench, events[0].cursor, 9).await;
    assert_eq!((forgotten, rest.len()), (None, 1));
}

/// Shows: T16
pub async fn a_reader_within_a_call_whose_events_are_forgotten_is_told_so(bench: Bench) {
    bench.submit("k").await;
    bench.submit("k").await;
    bench.apply(vec![Write::Cancel { task: FIRST }, Write::Cancel { task: TaskId(2) }]).await;
    let within = bench.events().await[2].cursor;
    let kept = bench.submit("k").await;
    bench.cancel(kept).await;
    bench.removed(prune(1, 9)).await;
    let (forgotten, events) = page_behind(&bench, within, 9).await;
    assert!(forgotten.is_some() && events.iter().all(|event| event.task == kept), "{events:?}");
}

/// Shows: T16
pub async fn a_reader_that_has_read_all_that_is_forgotten_lacks_nothing(bench: Bench) {
    bench.completed(task("k")).await;
    let cursor = bench.events().await.last().map(|event| event.cursor).unwrap_or_default();
    let kept = bench.submit("k").await;
    bench.cancel(kept).await;
    bench.removed(prune(1, 9)).await;
    let (forgotten, events) = page_behind(&bench, cursor, 9).await;
    assert_eq!((forgotten, events.len()), (None, 2));
}

pub async fn whoever_begins_at_the_start_takes_what_there_is(bench: Bench) {
    bench.completed(task("k")).await;
    let kept = bench.submit("k").await;
    bench.cancel(kept).await;
    bench.removed(prune(1, 9)).await;
    let (forgotten, events) = page_behind(&bench, EventCursor::START, 1).await;
    assert_eq!((forgotten, events.len()), (None, 1));
    assert_eq!(page_behind(&bench, events[0].cursor, 9).await.0, None);
}

pub async fn a_report_and_a_refusal_are_no_events(bench: Bench) {
    let lease = bench.running(task("k")).await;
    let before = bench.events().await;
    bench.done(Write::Report { lease, fraction: Some(0.1), message: None, bytes: None }).await;
    bench.refused(Write::Retry { task: FIRST }).await;
    assert_eq!(bench.events().await, before);
}

/// Returns the next hint. A timeout fails the case, instead of hanging it, if the store gives none.
async fn hinted(changes: &mut Changes) -> Option<Hint> {
    tokio::time::timeout(Duration::from_secs(10), changes.changed()).await.ok()?
}

pub async fn a_change_hints_at_work(bench: Bench) {
    let mut changes = bench.store().changes();
    let before = changes.hint();
    bench.submit("k").await;
    assert!(hinted(&mut changes).await.is_some_and(|hint| hint.work > before.work));
}

pub async fn an_end_hints_at_a_transition(bench: Bench) {
    let lease = bench.running(task("k")).await;
    let mut changes = bench.store().changes();
    let before = changes.hint();
    bench.complete(lease).await;
    assert!(hinted(&mut changes).await.is_some_and(|hint| hint.transitions > before.transitions));
}

pub async fn a_request_to_stop_hints_at_a_transition(bench: Bench) {
    let lease = bench.running(task("k")).await;
    let mut changes = bench.store().changes();
    let before = changes.hint();
    bench.cancel(lease.task).await;
    assert!(hinted(&mut changes).await.is_some_and(|hint| hint.transitions > before.transitions));
}

pub async fn a_resumption_hints_at_work(bench: Bench) {
    bench.pause(onward_store::Scope::All, None).await;
    let mut changes = bench.store().changes();
    let before = changes.hint();
    bench.done(Write::Resume { scope: onward_store::Scope::All }).await;
    assert!(hinted(&mut changes).await.is_some_and(|hint| hint.work > before.work));
}

pub async fn a_task_given_back_hints_at_work(bench: Bench) {
    let lease = bench.running(task("k")).await;
    let mut changes = bench.store().changes();
    let before = changes.hint();
    bench.release(lease, SECOND).await;
    assert!(hinted(&mut changes).await.is_some_and(|hint| hint.work > before.work));
}
