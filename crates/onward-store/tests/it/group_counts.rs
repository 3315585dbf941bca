//! The running tasks and the tokens of a group, while the only process on a file defers writing
//! these counters.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use onward_store::{
    Claim, ClaimedTask, Clock as _, LimitScope, ManualClock, Name, NewTask, OpenSession, Outcome, Prune, Rate,
    SessionId, SetLimit, SqliteStore, Store, StoreReads, TaskId, Timestamp, Write,
};
use rusqlite::Connection;
use tempfile::TempDir;

const HOUR: Duration = Duration::from_secs(3600);

fn tenant() -> Name {
    Name::new("tenant").unwrap()
}

/// A file with a limit on a group: four running tasks, a burst of ten, and then one an hour.
struct File {
    directory: TempDir,
    clock: Arc<ManualClock>,
}

impl File {
    async fn new() -> (Self, SqliteStore) {
        let file = Self { directory: tempfile::tempdir().unwrap(), clock: Arc::default() };
        let store = file.open(&file.path()).await;
        let rate = Rate { tasks: 1, per: HOUR, burst: 10 };
        store.apply(vec![Write::SetLimit(SetLimit::group(tenant()).concurrency(4).rate(rate))]).await.unwrap();
        (file, store)
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("onward.db")
    }

    async fn open(&self, path: &Path) -> SqliteStore {
        SqliteStore::options().clock(self.clock.clone()).open(path).await.unwrap()
    }

    /// Opens a copy of the file as a killed process would leave it: with its log, and without the
    /// data in memory.
    async fn as_left_by_a_killed_process(&self) -> SqliteStore {
        let copy = self.directory.path().join("left.db");
        for suffix in ["", "-wal"] {
            let [from, to] = [self.path(), copy.clone()].map(|path| {
                let mut path = path.into_os_string();
                path.push(suffix);
                path
            });
            std::fs::copy(from, to).unwrap();
        }
        self.open(&copy).await
    }

    /// Returns the number of the group's running tasks in the file.
    fn written(&self) -> i64 {
        let connection = Connection::open(self.path()).unwrap();
        connection.query_row("SELECT running FROM task_group WHERE name = 'tenant'", [], |row| row.get(0)).unwrap()
    }
}

async fn session(store: &SqliteStore) -> SessionId {
    let outcomes = store.apply(vec![Write::OpenSession(OpenSession::new("worker", HOUR))]).await.unwrap();
    let Outcome::SessionOpened(session) = outcomes[0] else { panic!("{outcomes:?}") };
    session
}

/// Submits tasks of the group, and returns those that start.
async fn start(store: &SqliteStore, session: SessionId, tasks: usize) -> Vec<ClaimedTask> {
    let new = NewTask { group: Some(tenant()), ..NewTask::new("mail").unwrap() };
    store.apply((0..tasks).map(|_| Write::Submit(Box::new(new.clone()))).collect()).await.unwrap();
    let outcomes = store.apply(vec![Write::Claim(Claim::any(session, 100))]).await.unwrap();
    let Some(Outcome::Claimed(claimed)) = outcomes.into_iter().next() else { panic!("no claim") };
    claimed.tasks
}

async fn complete(store: &SqliteStore, tasks: Vec<ClaimedTask>) {
    let complete = |task: ClaimedTask| Write::Complete { lease: task.lease, result: None };
    store.apply(tasks.into_iter().map(complete).collect()).await.unwrap();
}

/// Returns the number of running tasks and of tokens of the group.
async fn usage(store: &SqliteStore) -> (Option<u64>, Option<u32>) {
    let limits = store.limits().await.unwrap();
    let record = limits.into_iter().find(|record| record.scope == LimitScope::Group(tenant())).unwrap();
    (record.running, record.tokens)
}

#[tokio::test]
async fn a_process_that_is_alone_does_not_write_counts_with_each_commit() {
    let (file, store) = File::new().await;
    let session = session(&store).await;
    start(&store, session, 3).await;
    assert_eq!((usage(&store).await, file.written()), ((Some(3), Some(7)), 0));
}

#[tokio::test]
async fn tokens_that_a_killed_process_had_not_written_are_taken() {
    let (file, store) = File::new().await;
    let worker = session(&store).await;
    complete(&store, start(&store, worker, 4).await).await;
    start(&store, worker, 4).await;
    let left = file.as_left_by_a_killed_process().await;
    assert_eq!(usage(&left).await, (Some(4), Some(2)));
    let worker = session(&left).await;
    assert_eq!(start(&left, worker, 4).await.len(), 2);
}

/// This also holds if the wall clock is set while no process has the file open.
#[tokio::test]
async fn tokens_that_a_killed_process_had_not_written_come_back_when_they_would_have() {
    let (file, store) = File::new().await;
    let worker = session(&store).await;
    start(&store, worker, 4).await;
    file.clock.advance(HOUR);
    let a_day_later = file.clock.now().as_microseconds() + 24 * 3_600_000_000;
    file.clock.set_wall(Timestamp::from_microseconds(a_day_later));
    let left = file.as_left_by_a_killed_process().await;
    assert_eq!(usage(&left).await.1, Some(7));
}

#[tokio::test]
async fn a_second_process_knows_what_the_first_has_not_written() {
    let (file, store) = File::new().await;
    let worker = session(&store).await;
    start(&store, worker, 3).await;
    let second = file.open(&file.path()).await;
    assert_eq!(usage(&second).await, (Some(3), Some(7)));
    let other = session(&second).await;
    assert_eq!(start(&second, other, 4).await.len(), 1);
    assert_eq!(usage(&store).await, (Some(4), Some(6)));
}

#[tokio::test]
async fn counts_outlive_writes_that_are_taken_back() {
    let (_file, store) = File::new().await;
    let worker = session(&store).await;
    start(&store, worker, 3).await;
    let lost = Write::Delete { task: TaskId(999) };
    let all = Write::All(vec![Write::Claim(Claim::any(worker, 1)), lost]);
    assert!(matches!(store.apply(vec![all]).await.unwrap()[..], [Outcome::Refused(_)]));
    assert_eq!(usage(&store).await, (Some(3), Some(7)));
    assert_eq!(start(&store, worker, 4).await.len(), 1);
}

#[tokio::test]
async fn counts_outlive_the_part_of_the_log_that_they_follow_from() {
    let (file, store) = File::new().await;
    let worker = session(&store).await;
    complete(&store, start(&store, worker, 3).await).await;
    complete(&store, start(&store, worker, 1).await).await;
    let prune = Prune { older_than: None, keep: Some(0), limit: 100 };
    store.apply(vec![Write::Prune(prune)]).await.unwrap();
    assert_eq!(usage(&file.as_left_by_a_killed_process().await).await, (Some(0), Some(6)));
}

#[tokio::test]
async fn a_rate_holds_no_task_back_for_the_time_before_a_restart_of_the_machine() {
    let (mut file, store) = File::new().await;
    file.clock.advance(HOUR * 24 * 30);
    let worker = session(&store).await;
    complete(&store, start(&store, worker, 4).await).await;
    drop(store);
    // Steady time begins again.
    file.clock = Arc::new(ManualClock::starting_at(file.clock.now()));
    let store = file.open(&file.path()).await;
    assert_eq!(usage(&store).await, (Some(0), Some(10)));
    let worker = session(&store).await;
    assert_eq!(start(&store, worker, 4).await.len(), 4);
}
