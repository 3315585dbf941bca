//! Notification of tasks that end.

use std::time::Duration;

use onward_store::{AfterFailure, Heard, NewTask, NewsReceiver, TaskId, TaskNews, TaskState, Ttl, TtlFrom, Write};

use crate::test_store::{TestStore, keyed, name, task};

const SECOND: Duration = Duration::from_secs(1);
const FIRST: TaskId = TaskId(1);

/// Returns the next notifications of this process. A timeout fails the case, instead of hanging it,
/// if the store sends none.
async fn heard(news: &mut NewsReceiver) -> Vec<TaskNews> {
    match tokio::time::timeout(Duration::from_secs(10), news.next()).await {
        Ok(Some(Heard::News(news))) => news.to_vec(),
        other => unreachable!("no news: {other:?}"),
    }
}

pub async fn a_completion_is_told_with_its_result(store: TestStore) {
    let lease = store.running(task("k")).await;
    let mut news = store.inner().news();
    store.done(Write::Complete { lease, result: Some("42".into()) }).await;
    assert_eq!(heard(&mut news).await, [TaskNews::Completed { task: FIRST, result: Some("42".into()) }]);
}

pub async fn a_completion_with_a_key_is_told_with_its_result(store: TestStore) {
    let lease = store.running(keyed("key", onward_store::OnDuplicate::Skip)).await;
    let mut news = store.inner().news();
    store.done(Write::Complete { lease, result: Some("42".into()) }).await;
    assert_eq!(heard(&mut news).await, [TaskNews::Completed { task: FIRST, result: Some("42".into()) }]);
}

pub async fn a_failure_for_good_is_told(store: TestStore) {
    let lease = store.running(task("k")).await;
    let mut news = store.inner().news();
    store.fail(lease, AfterFailure::Dead).await;
    assert_eq!(heard(&mut news).await, [TaskNews::Ended { task: FIRST }]);
}

pub async fn a_cancellation_is_told(store: TestStore) {
    store.submit("k").await;
    let mut news = store.inner().news();
    store.cancel(FIRST).await;
    assert_eq!(heard(&mut news).await, [TaskNews::Ended { task: FIRST }]);
}

pub async fn an_expiry_is_told(store: TestStore) {
    let ttl = Some(Ttl { duration: SECOND, from: TtlFrom::Submission });
    store.submit_new(NewTask { ttl, ..task("k") }).await;
    let mut news = store.inner().news();
    store.advance(SECOND);
    store.sweep().await;
    assert_eq!(heard(&mut news).await, [TaskNews::Ended { task: FIRST }]);
}

pub async fn a_purge_is_told(store: TestStore) {
    store.submit_new(NewTask { queue: name("q"), ..task("k") }).await;
    let mut news = store.inner().news();
    store.removed(Write::Purge { queue: name("q"), states: vec![TaskState::Waiting], limit: 1 }).await;
    assert_eq!(heard(&mut news).await, [TaskNews::Ended { task: FIRST }]);
}

pub async fn a_new_life_is_told(store: TestStore) {
    store.completed(task("k")).await;
    let mut news = store.inner().news();
    store.retry(FIRST).await;
    assert_eq!(heard(&mut news).await, [TaskNews::Retried { task: FIRST }]);
}

pub async fn news_come_in_the_order_of_the_ends(store: TestStore) {
    let leases = [store.running(task("a")).await, store.running(task("b")).await];
    let mut news = store.inner().news();
    store.apply(leases.map(|lease| Write::Complete { lease, result: None }).into_iter().rev().collect()).await;
    let told = heard(&mut news).await;
    assert_eq!(told, [2, 1].map(|id| TaskNews::Completed { task: TaskId(id), result: None }));
}

pub async fn an_attempt_that_is_tried_again_is_no_news(store: TestStore) {
    let leases = [store.running(task("a")).await, store.running(task("b")).await];
    let mut news = store.inner().news();
    store.release(leases[0], Duration::ZERO).await;
    store.complete(leases[1]).await;
    assert_eq!(heard(&mut news).await, [TaskNews::Completed { task: TaskId(2), result: None }]);
}

pub async fn a_refused_all_tells_nothing(store: TestStore) {
    let lease = store.running(task("a")).await;
    store.submit("b").await;
    let mut news = store.inner().news();
    let unknown = Write::Cancel { task: TaskId(99) };
    store.refused(Write::All(vec![Write::Complete { lease, result: None }, unknown])).await;
    store.cancel(TaskId(2)).await;
    assert_eq!(heard(&mut news).await, [TaskNews::Ended { task: TaskId(2) }]);
}
