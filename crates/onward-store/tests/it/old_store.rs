//! A store with a task in every state. Tests of upgrades make it with this version and open it with
//! a made-up later version.

use std::time::Duration;

use onward_store::{
    AfterFailure, Claim, ClaimedTask, Dependencies, Lease, NewTask, OpenSession, Outcome, Priority, Scope, SessionId,
    Store, StoreReads, TaskId, TaskRecord, UniqueKey, When, Write,
};

/// The numbers of the tasks of [`fill`].
const TASKS: [i64; 6] = [1, 2, 3, 4, 5, 6];

/// The lease of the session of [`fill`].
pub(crate) const LEASE: Duration = Duration::from_secs(60);

/// Submits six tasks: 1 has completed, 2 is a dead letter after two attempts, 3 runs, 4 waits with
/// a key and a tag, 5 is not due, and 6 waits for 4. Pauses the queue `slow`.
pub(crate) async fn fill(store: &dyn Store) {
    let session = session(store).await;
    submit(store, new("first")).await;
    let lease = claim(store, session).await.remove(0).lease;
    apply(store, Write::Complete { lease, result: Some("sent".into()) }).await;
    submit(store, NewTask { unique: Some(key("ada")), ..new("second") }).await;
    let again = AfterFailure::Retry { after: Duration::ZERO, uses_attempt: true, hold: false };
    fail(store, claim(store, session).await.remove(0).lease, again).await;
    fail(store, claim(store, session).await.remove(0).lease, AfterFailure::Dead).await;
    submit(store, new("third")).await;
    claim(store, session).await;
    let mut fourth = NewTask { unique: Some(key("grace")), priority: Priority::URGENT, ..new("fourth") };
    fourth.tags.set("customer", "42");
    submit(store, fourth).await;
    submit(store, NewTask { when: When::After(Duration::from_secs(1_000_000_000)), ..new("fifth") }).await;
    submit(store, NewTask { depends_on: Dependencies::on([TaskId(4)]), ..new("sixth") }).await;
    apply(store, Write::Pause { scope: Scope::Queue("slow".parse().unwrap()), until: None }).await;
}

/// Returns the records of these tasks.
pub(crate) async fn tasks(store: &dyn Store) -> Vec<TaskRecord> {
    let mut tasks = Vec::new();
    for id in TASKS {
        tasks.push(store.task(TaskId(id)).await.unwrap().unwrap());
    }
    tasks
}

/// Claims and completes every task that can be claimed, in a session of its own. Returns the
/// numbers in the order of the claims.
pub(crate) async fn work_off(store: &dyn Store) -> Vec<i64> {
    let session = session(store).await;
    let mut done = Vec::new();
    loop {
        let claimed = claim(store, session).await;
        if claimed.is_empty() {
            return done;
        }
        for task in claimed {
            let lease = task.lease;
            assert_eq!(apply(store, Write::Complete { lease, result: None }).await, Outcome::Done);
            done.push(lease.task.0);
        }
    }
}

/// Returns a task of the kind `mail`.
pub(crate) fn new(payload: &'static str) -> NewTask {
    NewTask { payload: payload.into(), ..NewTask::new("mail").unwrap() }
}

/// Returns a key that is free again when its task has ended.
pub(crate) fn key(key: &str) -> UniqueKey {
    UniqueKey { key: key.into(), on_duplicate: Default::default(), keep_for: Duration::ZERO }
}

pub(crate) async fn apply(store: &dyn Store, write: Write) -> Outcome {
    store.apply(vec![write]).await.unwrap().remove(0)
}

pub(crate) async fn submit(store: &dyn Store, new: NewTask) -> Outcome {
    apply(store, Write::Submit(Box::new(new))).await
}

async fn fail(store: &dyn Store, lease: Lease, next: AfterFailure) {
    apply(store, Write::Fail { lease, error: "no route".into(), next }).await;
}

async fn session(store: &dyn Store) -> SessionId {
    let open = Write::OpenSession(OpenSession::new("worker", LEASE));
    let Outcome::SessionOpened(session) = apply(store, open).await else { panic!("no session") };
    session
}

async fn claim(store: &dyn Store, session: SessionId) -> Vec<ClaimedTask> {
    let Outcome::Claimed(claimed) = apply(store, Write::Claim(Claim::any(session, 10))).await else {
        panic!("no claim")
    };
    claimed.tasks
}
