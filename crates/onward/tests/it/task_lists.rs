//! Listings of tasks by an engine.

use futures_util::TryStreamExt as _;
use onward::task::TaskResult;
use onward::{Failure, NewTask, Priority, TaskId, TaskRecord, TaskState};

use crate::fixture::{HOUR, TestStore, submit, task};

on_every_store! {
    conditions_of_a_listing_combine,
    a_stream_reads_page_after_page,
    a_name_that_is_none_is_an_error_of_the_read,
    a_result_that_was_not_read_differs_from_none,
}

fn ids(tasks: &[TaskRecord]) -> Vec<TaskId> {
    tasks.iter().map(|task| task.id).collect()
}

/// Shows: T17, T10
async fn conditions_of_a_listing_combine(store: TestStore) {
    let engine = store.engine().await;
    let old = submit(&engine, "mail").await;
    store.advance(HOUR).await;
    let mut tagged = NewTask { group: Some("a".parse().unwrap()), priority: Priority::HIGH, ..task("mail") };
    tagged.tags.set("to", "ada");
    let tagged = engine.submit_task(tagged).await.unwrap().id();
    let other = submit(&engine, "image").await;
    let now = store.clock().now();
    let tasks = |query: onward::observe::TaskQuery| async move { ids(&query.collect().await.unwrap()) };
    assert_eq!(tasks(engine.tasks()).await, [other, tagged, old]);
    assert_eq!(tasks(engine.tasks().kind("mail")).await, [tagged, old]);
    assert_eq!(tasks(engine.tasks().kind("mail").submitted_before(now)).await, [old]);
    assert_eq!(tasks(engine.tasks().submitted_from(now).queue("default")).await, [other, tagged]);
    assert_eq!(tasks(engine.tasks().tag("to", "ada").group("a").priority_from(Priority::HIGH)).await, [tagged]);
    assert_eq!(tasks(engine.tasks().state(TaskState::Completed)).await, []);
    assert_eq!(engine.tasks().states([TaskState::Waiting, TaskState::Dead]).count().await.unwrap(), 3);
    assert_eq!(engine.tasks().kind("mail").first().await.unwrap().unwrap().id, tagged);
    let cancelled = engine.cancel_all(engine.tasks().kind("mail").filter().unwrap()).await.unwrap();
    assert_eq!(cancelled.tasks, 2);
    assert_eq!(tasks(engine.tasks().finished_from(now)).await, [tagged, old]);
}

/// Shows: T17
async fn a_stream_reads_page_after_page(store: TestStore) {
    let engine = store.engine().await;
    let submitted = engine.submit_all(vec![task("any"); 7]).await.unwrap();
    let mut expected: Vec<TaskId> = submitted.iter().map(|submitted| submitted.id()).collect();
    expected.reverse();
    let query = || engine.tasks().page_size(3);
    let mut stream = query().stream();
    let first = stream.next().await.unwrap().unwrap();
    // A task that is submitted during the listing is not listed.
    submit(&engine, "any").await;
    let mut read = vec![first.id];
    while let Some(task) = stream.next().await.unwrap() {
        read.push(task.id);
    }
    assert_eq!(read, expected);
    assert!(stream.next().await.unwrap().is_none());
    let streamed: Vec<TaskRecord> = query().stream().into_stream().try_collect().await.unwrap();
    assert_eq!(streamed.len(), 8);
    let page = query().page(Some(expected[0])).await.unwrap();
    assert_eq!((ids(&page.tasks), page.next), (expected[1..4].to_vec(), Some(expected[3])));
}

/// Shows: T1
async fn a_name_that_is_none_is_an_error_of_the_read(store: TestStore) {
    let engine = store.engine().await;
    let error = engine.tasks().kind("a\u{200b}b").key("k").queue("").count().await.unwrap_err();
    assert!(error.is_invalid() && error.to_string().contains("U+200B"), "{error}");
}

/// Shows: T17
async fn a_result_that_was_not_read_differs_from_none(store: TestStore) {
    let engine = store.engine().await;
    engine.handle("some", |_| async { Ok::<_, Failure>("result") });
    engine.handle("none", |_| async { Ok::<(), Failure>(()) });
    for (kind, expected) in [("some", TaskResult::Value("result".into())), ("none", TaskResult::None)] {
        let id = submit(&engine, kind).await;
        engine.drain().await.unwrap();
        let listed = engine.tasks().kind(kind).first().await.unwrap().unwrap();
        assert_eq!((listed.result, listed.payload), (TaskResult::NotRead, None), "{kind}");
        let listed = engine.tasks().kind(kind).with_payload().first().await.unwrap().unwrap();
        assert_eq!(listed.result, expected, "{kind}");
        assert_eq!(engine.wait(id).await.unwrap().result, expected, "{kind}");
    }
}
