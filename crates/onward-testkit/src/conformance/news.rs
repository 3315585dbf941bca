//! Notification of tasks that end.

use std::time::Duration;

use onward_store::{AfterFailure, Heard, NewTask, NewsReceiver, TaskId, TaskNews, TaskState, Ttl, TtlFrom, Write};

use crate::bench::{Bench, keyed, name, task};

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

pub async fn a_completion_is_told_with_its_result(bench: Bench) {
    let lease = bench.running(task("k")).await;
    let mut news = bench.store().news();
    bench.done(Write::Complete { lease, result: Some("42".into()) }).await;
    assert_eq!(heard(&mut news).await, [TaskNews::Completed { task: FIRST, result: Some("42".into()) }]);
}

pub async fn a_completion_with_a_key_is_told_with_its_result(bench: Bench) {
    let lease = bench.running(keyed("key", onward_store::OnDuplicate::Skip)).await;
    let mut news = bench.store().news();
    bench.done(Write::Complete { lease, result: Some("42".into()) }).await;
    assert_eq!(heard(&mut news).await, [TaskNews::Completed { task: FIRST, result: Some("42".into()) }]);
}

pub async fn a_failure_for_good_is_told(bench: Bench) {
    let lease = bench.running(task("k")).await;
    let mut news = bench.store().news();
    bench.fail(lease, AfterFailure::Dead).await;
    assert_eq!(heard(&mut news).await, [TaskNews::Ended { task: FIRST }]);
}

pub async fn a_cancellation_is_told(bench: Bench) {
    bench.submit("k").await;
    let mut news = bench.store().news();
    bench.cancel(FIRST).await;
    assert_eq!(heard(&mut news).await, [TaskNews::Ended { task: FIRST }]);
}

pub async fn an_expiry_is_told(bench: Bench) {
    let ttl = Some(Ttl { duration: SECOND, from: TtlFrom::Submission });
    bench.submit_new(NewTask { ttl, ..task("k") }).await;
    let mut news = bench.store().news();
    bench.advance(SECOND);
    bench.sweep().await;
    assert_eq!(heard(&mut news).await, [TaskNews::Ended { task: FIRST }]);
}

pub async fn a_purge_is_told(bench: Bench) {
    bench.submit_new(NewTask { queue: name("q"), ..task("k") }).await;
    let mut news = bench.store().news();
    bench.removed(Write::Purge { queue: name("q"), states: vec![TaskState::Waiting], limit: 1 }).await;
    assert_eq!(heard(&mut news).await, [TaskNews::Ended { task: FIRST }]);
}

pub async fn a_new_life_is_told(bench: Bench) {
    bench.completed(task("k")).await;
    let mut news = bench.store().news();
    bench.retry(FIRST).await;
    assert_eq!(heard(&mut news).await, [TaskNews::Retried { task: FIRST }]);
}

pub async fn news_come_in_the_order_of_the_ends(bench: Bench) {
    let leases = [bench.running(task("a")).await, bench.running(task("b")).await];
    let mut news = bench.store().news();
    bench.apply(leases.map(|lease| Write::Complete { lease, result: None }).into_iter().rev().collect()).await;
    let told = heard(&mut news).await;
    assert_eq!(told, [2, 1].map(|id| TaskNews::Completed { task: TaskId(id), result: None }));
}

pub async fn an_attempt_that_is_tried_again_is_no_news(bench: Bench) {
    let leases = [bench.running(task("a")).await, bench.running(task("b")).await];
    let mut news = bench.store().news();
    bench.release(leases[0], Duration::ZERO).await;
    bench.complete(leases[1]).await;
    assert_eq!(heard(&mut news).await, [TaskNews::Completed { task: TaskId(2), result: None }]);
}

pub async fn a_refused_all_tells_nothing(bench: Bench) {
    let lease = bench.running(task("a")).await;
    bench.submit("b").await;
    let mut news = bench.store().news();
    let unknown = Write::Cancel { task: TaskId(99) };
    bench.refused(Write::All(vec![Write::Complete { lease, result: None }, unknown])).await;
    bench.cancel(TaskId(2)).await;
    assert_eq!(heard(&mut news).await, [TaskNews::Ended { task: TaskId(2) }]);
}
