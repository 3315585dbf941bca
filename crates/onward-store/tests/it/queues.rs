//! Limits of queues and groups with several stores on one file.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use onward_store::{
    Claim, Durability, Lease, LimitScope, Name, NewTask, OpenSession, Outcome, Rate, SetLimit, SetQueue, SqliteStore,
    Store, StoreReads, Write,
};

/// The concurrency limit of the queue, the number of tasks, and the number of workers.
const LIMIT: usize = 3;
const TASKS: usize = 120;
const WORKERS: usize = 4;

/// The counters that all workers share.
#[derive(Default)]
struct Seen {
    running: AtomicUsize,
    most: AtomicUsize,
    done: AtomicUsize,
}

async fn open(path: &std::path::Path) -> SqliteStore {
    SqliteStore::options().durability(Durability::Normal).open(path).await.unwrap()
}

async fn apply(store: &SqliteStore, write: Write) -> Outcome {
    store.apply(vec![write]).await.unwrap().remove(0)
}

/// Claims and completes as many tasks as possible, until all are done.
async fn work(store: SqliteStore, seen: Arc<Seen>) {
    let open = OpenSession::new("worker", Duration::from_secs(3600));
    let Outcome::SessionOpened(session) = apply(&store, Write::OpenSession(open)).await else { panic!("no session") };
    while seen.done.load(Ordering::SeqCst) < TASKS {
        let Outcome::Claimed(claimed) = apply(&store, Write::Claim(Claim::any(session, 10))).await else {
            panic!("no claim")
        };
        let leases: Vec<Lease> = claimed.tasks.iter().map(|task| task.lease).collect();
        let running = seen.running.fetch_add(leases.len(), Ordering::SeqCst) + leases.len();
        seen.most.fetch_max(running, Ordering::SeqCst);
        tokio::task::yield_now().await;
        for lease in leases {
            // The counter drops before the write, because another store may claim a task as soon as
            // the write commits.
            seen.running.fetch_sub(1, Ordering::SeqCst);
            assert_eq!(apply(&store, Write::Complete { lease, result: None }).await, Outcome::Done);
            seen.done.fetch_add(1, Ordering::SeqCst);
        }
    }
}

/// Lets several stores on one file run `task` with at most [`LIMIT`] at once. `first` has set the
/// limit.
async fn work_off(first: SqliteStore, path: &std::path::Path, task: NewTask) {
    let submits = (0..TASKS).map(|_| Write::Submit(Box::new(task.clone()))).collect();
    first.apply(submits).await.unwrap();
    let seen = Arc::<Seen>::default();
    let mut workers = Vec::new();
    for _ in 0..WORKERS {
        workers.push(tokio::spawn(work(open(path).await, Arc::clone(&seen))));
    }
    for worker in workers {
        worker.await.unwrap();
    }
    assert_eq!((seen.done.load(Ordering::SeqCst), seen.most.load(Ordering::SeqCst)), (TASKS, LIMIT));
    assert_eq!(first.check().await.unwrap().consistency, Vec::<String>::new());
}

/// Shows: Q4
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn stores_on_one_file_together_run_no_more_tasks_of_a_queue_than_its_concurrency() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("onward.db");
    let first = open(&path).await;
    let queue = Name::default_queue();
    apply(&first, Write::SetQueue(SetQueue::new(queue).concurrency(LIMIT as u32))).await;
    work_off(first, &path, NewTask::new("k").unwrap()).await;
}

/// Shows: T9
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn stores_on_one_file_together_run_no_more_tasks_of_a_group_than_its_limit() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("onward.db");
    let first = open(&path).await;
    let group = Name::new("tenant").unwrap();
    apply(&first, Write::SetLimit(SetLimit::group(group.clone()).concurrency(LIMIT as u32))).await;
    work_off(first, &path, NewTask { group: Some(group), ..NewTask::new("k").unwrap() }).await;
}

/// A store reads limits again only if the configuration has changed.
#[tokio::test]
async fn the_rate_of_a_queue_is_gone_with_the_queue_for_other_stores_too() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("onward.db");
    let (one, other) = (open(&path).await, open(&path).await);
    let queue = Name::new("calls").unwrap();
    let limit = SetLimit::new(LimitScope::Queue(queue.clone())).rate(Rate::new(1, Duration::from_secs(1)));
    apply(&one, Write::SetLimit(limit)).await;
    assert_eq!(other.limits().await.unwrap().len(), 1);
    apply(&one, Write::DeleteQueue { queue }).await;
    assert_eq!(other.limits().await.unwrap(), []);
}
