//! Effects of processes on one file on each other: they wake each other, take over tasks, and
//! reject ends that come too late.

use std::path::Path;
use std::time::Duration;

use onward_store::{
    Changes, Claim, ClaimedTask, Name, NewTask, OpenSession, Outcome, Refusal, SessionId, SetQueue, SqliteStore, Store,
    StoreReads, TaskId, TaskState, WaitReason, Write,
};
use tokio::time::timeout;

use crate::child::{self, Process, Speech};

const PATH: &str = "ONWARD_TAKEOVER_PATH";
const LEASE: &str = "ONWARD_TAKEOVER_LEASE_MS";

/// A lease so long that its end cannot explain anything here.
const LONG: Duration = Duration::from_secs(3600);
/// The time limit of a wait. A longer wait is a failure.
const PATIENCE: Duration = Duration::from_secs(30);

/// Shows: T21, B4
#[tokio::test]
async fn a_killed_processs_task_goes_to_a_living_process_long_before_its_lease_ends() {
    let here = Here::open().await;
    let task = here.submit().await;
    let mut there = There::start(&here.path, LONG);
    there.claims(task);
    let session = here.session(LONG).await;
    let changes = here.store.changes();
    assert!(here.claim(session).await.is_empty(), "it is held elsewhere");
    there.process.kill();
    let taken = timeout(PATIENCE, here.claim_on_order(session, changes)).await.expect("it was noticed in time");
    assert_eq!(taken.lease.task, task);
}

/// Shows: T21, B4
#[tokio::test]
async fn a_killed_processs_task_goes_at_once_to_the_next_process_that_opens_the_file() {
    let here = Here::open().await;
    let task = here.submit().await;
    let here = here.close();
    let mut there = There::start(&here, LONG);
    there.claims(task);
    there.process.kill();
    let here = Here::open_at(here).await;
    let session = here.session(LONG).await;
    let taken = here.claim(session).await;
    assert_eq!(taken.iter().map(|taken| taken.lease.task).collect::<Vec<_>>(), [task]);
}

/// Shows: T21, B4
#[tokio::test]
async fn a_stopped_process_that_wakes_after_its_lease_cannot_complete_what_another_took_over() {
    let here = Here::open().await;
    let task = here.submit().await;
    let session = here.session(LONG).await;
    let mut there = There::start(&here.path, Duration::from_millis(200));
    there.claims(task);
    there.process.stop();
    there.process.send("complete");
    let taken = timeout(PATIENCE, here.claim_when_due(session)).await.expect("the lease ends");
    there.process.go_on();
    let answer = there.next();
    assert!(answer == "LeaseLost" || answer == "SessionLost", "the late completion answered {answer}");
    let complete = Write::Complete { lease: taken.lease, result: Some("mine".into()) };
    assert_eq!(here.store.apply(vec![complete]).await.unwrap(), [Outcome::Done]);
    let record = here.store.task(task).await.unwrap().unwrap();
    assert_eq!((record.state, record.result.as_deref()), (TaskState::Completed, Some(&b"mine"[..])));
}

/// Shows: T21, B4
#[tokio::test]
async fn a_process_that_is_alive_keeps_its_task_while_another_comes_and_goes() {
    let here = Here::open().await;
    let task = here.submit().await;
    let session = here.session(LONG).await;
    let mine = here.claim(session).await;
    let mut there = There::start(&here.path, LONG);
    there.process.send("claim");
    assert_eq!(there.next(), "claimed nothing");
    there.process.kill();
    let complete = Write::Complete { lease: mine[0].lease, result: None };
    assert_eq!(here.store.apply(vec![complete]).await.unwrap(), [Outcome::Done]);
    assert_eq!(here.store.task(task).await.unwrap().unwrap().attempts, 1);
}

/// Shows: B6
#[tokio::test]
async fn a_killed_process_is_no_longer_listed_as_a_worker_though_none_replaces_it() {
    let here = Here::open().await;
    let held = here.submit().await;
    let mut there = There::start(&here.path, LONG);
    there.claims(held);
    let waits = here.submit().await;
    let serving = async || here.store.sessions().await.unwrap().len();
    let busy = WaitReason::Slot { workers: 1, running: 1 };
    assert_eq!((serving().await, here.store.why(waits).await.unwrap()), (1, Some(vec![busy])));
    there.process.kill();
    assert_eq!((serving().await, here.store.why(waits).await.unwrap()), (0, Some(vec![WaitReason::NoWorker])));
}

/// Shows: Q12
#[tokio::test]
async fn the_affinity_key_of_an_idle_killed_process_is_free_at_once() {
    let here = Here::open().await;
    let wait = SetQueue::new(Name::default_queue()).affinity_wait(LONG);
    here.store.apply(vec![Write::SetQueue(wait)]).await.unwrap();
    let mut affinity_key = NewTask::new("work").unwrap();
    affinity_key.affinity = Some(Name::new("affinity_key").unwrap());
    let first = submit_new(&here.store, affinity_key.clone()).await;
    let mut there = There::start(&here.path, LONG);
    there.claims(first);
    there.process.send("complete");
    assert_eq!(there.next(), "Done");
    let second = submit_new(&here.store, affinity_key).await;
    let session = here.session(LONG).await;
    let changes = here.store.changes();
    assert!(here.claim(session).await.is_empty(), "it is reserved");
    there.process.kill();
    let taken = timeout(PATIENCE, here.claim_on_order(session, changes)).await.expect("it was noticed in time");
    assert_eq!(taken.lease.task, second);
}

/// Shows: Q5
#[tokio::test]
async fn a_submit_by_another_process_wakes_this_one() {
    let here = Here::open().await;
    let session = here.session(LONG).await;
    let mut there = There::start(&here.path, LONG);
    there.process.send("claim");
    assert_eq!(there.next(), "claimed nothing");
    let mut changes = here.store.changes();
    changes.hint();
    there.process.send("submit");
    let taken = timeout(PATIENCE, here.claim_on_order(session, changes)).await.expect("this process was woken");
    assert_eq!(there.next(), format!("submitted {}", taken.lease.task));
}

/// Polling once a second, which the store also does, would take half a second on average.
///
/// Shows: Q5
/// Beats: slow-producer
#[tokio::test]
async fn ten_submits_by_another_process_one_after_the_other_wake_this_one_without_delay() {
    let here = Here::open().await;
    let session = here.session(LONG).await;
    let mut there = There::start(&here.path, LONG);
    let taken = async {
        for _ in 0..10 {
            let mut changes = here.store.changes();
            changes.hint();
            there.process.send("submit");
            here.claim_on_order(session, changes).await;
            there.next();
        }
    };
    timeout(Duration::from_millis(2500), taken).await.expect("it takes milliseconds each");
}

/// The store in this process.
struct Here {
    store: SqliteStore,
    path: std::path::PathBuf,
    directory: tempfile::TempDir,
}

/// A directory that is kept while its store is closed.
struct Closed {
    path: std::path::PathBuf,
    directory: tempfile::TempDir,
}

impl std::ops::Deref for Closed {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.path
    }
}

impl Here {
    async fn open() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("onward.db");
        Self::open_at(Closed { path, directory }).await
    }

    async fn open_at(Closed { path, directory }: Closed) -> Self {
        Self { store: SqliteStore::open(&path).await.unwrap(), path, directory }
    }

    fn close(self) -> Closed {
        Closed { path: self.path, directory: self.directory }
    }

    async fn submit(&self) -> TaskId {
        submit(&self.store).await
    }

    async fn session(&self, lease: Duration) -> SessionId {
        open_session(&self.store, lease).await
    }

    async fn claim(&self, session: SessionId) -> Vec<ClaimedTask> {
        claim(&self.store, session).await.0
    }

    /// Claims after each hint until there is a task.
    async fn claim_on_order(&self, session: SessionId, mut changes: Changes) -> ClaimedTask {
        loop {
            changes.changed().await.expect("the store is open");
            if let Some(task) = self.claim(session).await.pop() {
                return task;
            }
        }
    }

    /// Claims after each hint, and at each time that the store named, until there is a task.
    async fn claim_when_due(&self, session: SessionId) -> ClaimedTask {
        let mut changes = self.store.changes();
        loop {
            let (mut tasks, next_due) = claim(&self.store, session).await;
            if let Some(task) = tasks.pop() {
                return task;
            }
            // Both a hint and a timeout are a reason to claim again.
            let _ = timeout(next_due.unwrap_or(PATIENCE), changes.changed()).await;
        }
    }
}

/// A process on the same file.
struct There {
    process: Process,
    speech: Speech,
}

impl There {
    /// Starts the process. It has the file open when this returns.
    fn start(path: &Path, lease: Duration) -> Self {
        let variables = [(PATH, path.display().to_string()), (LEASE, lease.as_millis().to_string())];
        let (process, speech) = Process::start("takeover::neighbour", &variables);
        let mut there = Self { process, speech };
        assert_eq!(there.next(), "open");
        there
    }

    fn claims(&mut self, task: TaskId) {
        self.process.send("claim");
        assert_eq!(self.next(), format!("claimed {task}"));
    }

    fn next(&mut self) -> String {
        self.speech.next().expect("the other process says something")
    }
}

/// Not a test: the process that the tests start. It obeys orders, and reports their results.
#[test]
#[ignore = "a process started by the tests of `takeover`"]
fn neighbour() {
    let Some(path) = std::env::var_os(PATH) else { return };
    child::begin();
    let lease = std::env::var(LEASE).expect("it has a lease").parse().expect("a lease is a number");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(obey(Path::new(&path), Duration::from_millis(lease)));
}

async fn obey(path: &Path, lease: Duration) {
    let store = SqliteStore::open(path).await.expect("the store opens");
    let session = open_session(&store, lease).await;
    let mut claimed = Vec::new();
    child::say("open");
    while let Some(order) = child::receive() {
        let answer = match order.as_str() {
            "claim" => {
                claimed = claim(&store, session).await.0;
                claimed.first().map_or("claimed nothing".to_owned(), |task| format!("claimed {}", task.lease.task))
            }
            "complete" => complete(&store, &claimed[0]).await,
            "submit" => format!("submitted {}", submit(&store).await),
            other => panic!("`{other}` is no order"),
        };
        child::say(&answer);
    }
}

async fn complete(store: &SqliteStore, task: &ClaimedTask) -> String {
    let complete = Write::Complete { lease: task.lease, result: Some("theirs".into()) };
    match store.apply(vec![complete]).await.expect("a completion is answered").remove(0) {
        Outcome::Refused(Refusal::LeaseLost(_)) => "LeaseLost".into(),
        Outcome::Refused(Refusal::SessionLost(_)) => "SessionLost".into(),
        other => format!("{other:?}"),
    }
}

async fn submit(store: &SqliteStore) -> TaskId {
    submit_new(store, NewTask::new("work").unwrap()).await
}

async fn submit_new(store: &SqliteStore, task: NewTask) -> TaskId {
    let outcomes = store.apply(vec![Write::Submit(Box::new(task))]).await.unwrap();
    match outcomes[0] {
        Outcome::Submitted(submitted) => submitted.id(),
        ref other => panic!("a submit answered {other:?}"),
    }
}

async fn open_session(store: &SqliteStore, lease: Duration) -> SessionId {
    let open = OpenSession::new("test", lease);
    match store.apply(vec![Write::OpenSession(open)]).await.unwrap()[0] {
        Outcome::SessionOpened(session) => session,
        ref other => panic!("a session answered {other:?}"),
    }
}

async fn claim(store: &SqliteStore, session: SessionId) -> (Vec<ClaimedTask>, Option<Duration>) {
    let claim = Claim::any(session, 16);
    match store.apply(vec![Write::Claim(claim)]).await.unwrap().remove(0) {
        Outcome::Claimed(claimed) => (claimed.tasks, claimed.next_due),
        other => panic!("a claim answered {other:?}"),
    }
}

#[test]
fn those_who_make_a_store_at_the_same_moment_all_get_it() {
    for _ in 0..50 {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("onward.db");
        let start = std::sync::Barrier::new(6);
        std::thread::scope(|scope| {
            for _ in 0..6 {
                scope.spawn(|| {
                    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
                    start.wait();
                    runtime
                        .block_on(SqliteStore::options().durability(onward_store::Durability::Normal).open(&path))
                        .unwrap();
                });
            }
        });
    }
}
