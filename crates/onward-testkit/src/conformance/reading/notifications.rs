//! Notification of tasks that end.

use std::time::Duration;

use onward_store::{
    AfterFailure, NewTask, Notification, NotificationReceiver, TaskId, TaskNotification, TaskState, Ttl, TtlFrom, Write,
};

use crate::test_store::{TestStore, keyed, name, task};

const SECOND: Duration = Duration::from_secs(1);
const FIRST: TaskId = TaskId(1);

/// Returns the next notifications of this process. A timeout fails the case, instead of hanging it,
/// if the store sends none.
async fn received(notifications: &mut NotificationReceiver) -> Vec<TaskNotification> {
    match tokio::time::timeout(Duration::from_secs(10), notifications.next()).await {
        Ok(Some(Notification::Tasks(notifications))) => notifications.to_vec(),
        other => unreachable!("no notification: {other:?}"),
    }
}

pub async fn a_completion_notifies_with_its_result(store: TestStore) {
    let lease = store.running(task("k")).await;
    let mut notifications = store.inner().notifications();
    store.done(Write::Complete { lease, result: Some("42".into()) }).await;
    assert_eq!(
        received(&mut notifications).await,
        [TaskNotification::Completed { task: FIRST, result: Some("42".into()) }]
    );
}

pub async fn a_completion_with_a_key_notifies_with_its_result(store: TestStore) {
    let lease = store.running(keyed("key", onward_store::OnDuplicate::Skip)).await;
    let mut notifications = store.inner().notifications();
    store.done(Write::Complete { lease, result: Some("42".into()) }).await;
    assert_eq!(
        received(&mut notifications).await,
        [TaskNotification::Completed { task: FIRST, result: Some("42".into()) }]
    );
}

pub async fn a_permanent_failure_notifies(store: TestStore) {
    let lease = store.running(task("k")).await;
    let mut notifications = store.inner().notifications();
    store.fail(lease, AfterFailure::Dead).await;
    assert_eq!(received(&mut notifications).await, [TaskNotification::Ended { task: FIRST }]);
}

pub async fn a_cancellation_notifies(store: TestStore) {
    store.submit("k").await;
    let mut notifications = store.inner().notifications();
    store.cancel(FIRST).await;
    assert_eq!(received(&mut notifications).await, [TaskNotification::Ended { task: FIRST }]);
}

pub async fn an_expiry_notifies(store: TestStore) {
    let ttl = Some(Ttl { duration: SECOND, from: TtlFrom::Submission });
    store.submit_new(NewTask { ttl, ..task("k") }).await;
    let mut notifications = store.inner().notifications();
    store.advance(SECOND);
    store.sweep().await;
    assert_eq!(received(&mut notifications).await, [TaskNotification::Ended { task: FIRST }]);
}

pub async fn a_purge_notifies(store: TestStore) {
    store.submit_new(NewTask { queue: name("q"), ..task("k") }).await;
    let mut notifications = store.inner().notifications();
    store.removed(Write::Purge { queue: name("q"), states: vec![TaskState::Waiting], limit: 1 }).await;
    assert_eq!(received(&mut notifications).await, [TaskNotification::Ended { task: FIRST }]);
}

pub async fn a_retry_after_the_end_notifies(store: TestStore) {
    store.completed(task("k")).await;
    let mut notifications = store.inner().notifications();
    store.retry(FIRST).await;
    assert_eq!(received(&mut notifications).await, [TaskNotification::Retried { task: FIRST }]);
}

pub async fn notifications_come_in_the_order_of_the_ends(store: TestStore) {
    let leases = [store.running(task("a")).await, store.running(task("b")).await];
    let mut notifications = store.inner().notifications();
    store.apply(leases.map(|lease| Write::Complete { lease, result: None }).into_iter().rev().collect()).await;
    let ends = received(&mut notifications).await;
    assert_eq!(ends, [2, 1].map(|id| TaskNotification::Completed { task: TaskId(id), result: None }));
}

pub async fn a_retried_attempt_does_not_notify(store: TestStore) {
    let leases = [store.running(task("a")).await, store.running(task("b")).await];
    let mut notifications = store.inner().notifications();
    store.release(leases[0], Duration::ZERO).await;
    store.complete(leases[1]).await;
    assert_eq!(received(&mut notifications).await, [TaskNotification::Completed { task: TaskId(2), result: None }]);
}

pub async fn a_refused_all_does_not_notify(store: TestStore) {
    let lease = store.running(task("a")).await;
    store.submit("b").await;
    let mut notifications = store.inner().notifications();
    let unknown = Write::Cancel { task: TaskId(99) };
    store.refused(Write::All(vec![Write::Complete { lease, result: None }, unknown])).await;
    store.cancel(TaskId(2)).await;
    assert_eq!(received(&mut notifications).await, [TaskNotification::Ended { task: TaskId(2) }]);
}
