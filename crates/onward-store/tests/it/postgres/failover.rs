//! The loss of a primary, and its standby.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use onward_store::{
    Claim, Lease, ManualClock, OpenSession, Outcome, PostgresStore, SessionId, Store, StoreReads, Write,
};
use onward_testkit::postgres::Server;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::trouble::submit;

/// The number of callers.
const CALLERS: usize = 4;
/// The number of tasks that each submits, one after another.
const TASKS: usize = 50;
/// The number of tasks after which the primary is lost.
const BEFORE: u32 = 40;
/// The lease of a session.
const LEASE: Duration = Duration::from_secs(10);

/// Returns the URL of both servers, which selects the one that accepts writes.
fn url(primary: &Server, standby: &Server) -> String {
    let (one, other) = (primary.port(), standby.port());
    format!("postgres://onward@127.0.0.1:{one},127.0.0.1:{other}/postgres?target_session_attrs=read-write#onward")
}

async fn open(primary: &Server, standby: &Server) -> PostgresStore {
    PostgresStore::open(&url(primary, standby)).await.expect("a store opens")
}

async fn submit_all(store: Arc<PostgresStore>, acknowledged: Arc<Semaphore>) -> Vec<i64> {
    let mut tasks = Vec::new();
    for _ in 0..TASKS {
        let outcomes = store.apply(vec![submit()]).await.expect("no caller hears of it");
        let [Outcome::Submitted(submitted)] = &outcomes[..] else { panic!("a submit answered {outcomes:?}") };
        tasks.push(submitted.id().0);
        acknowledged.add_permits(1);
    }
    tasks
}

/// Shows: T21, B4, W10
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_standby_that_becomes_the_primary_is_found_and_has_all_that_was_acknowledged() {
    let Some(primary) = Server::with_settings(&["synchronous_standby_names=*"]) else { return };
    let standby = primary.standby();
    let store = Arc::new(open(&primary, &standby).await);
    let acknowledged = Arc::new(Semaphore::new(0));
    let mut callers = JoinSet::new();
    for _ in 0..CALLERS {
        callers.spawn(submit_all(Arc::clone(&store), Arc::clone(&acknowledged)));
    }
    acknowledged.acquire_many(BEFORE).await.unwrap().forget();
    primary.stop("immediate");
    standby.promote();
    let tasks: Vec<i64> = callers.join_all().await.concat();
    let distinct: HashSet<i64> = tasks.iter().copied().collect();
    assert_eq!((tasks.len(), distinct.len()), (CALLERS * TASKS, CALLERS * TASKS));
    assert_eq!(store.queues().await.unwrap()[0].waiting, (CALLERS * TASKS) as u64);
}

/// Shows: B4
#[tokio::test]
async fn a_standby_is_refused_with_the_remedy() {
    let Some(primary) = Server::start() else { return };
    drop(PostgresStore::open(&primary.url()).await.unwrap());
    let standby = primary.standby();
    let error = PostgresStore::open(&standby.url()).await.unwrap_err();
    assert!(error.is_read_only(), "{error:?}");
    let text = error.to_string();
    assert!(text.contains(&standby.port().to_string()) && text.contains("name the primary"), "{text}");
}

/// Running tasks keep their leases, because leases are in the store.
///
/// Shows: T21, B4
#[tokio::test]
async fn what_runs_when_the_primary_is_lost_ends_once_under_its_lease_or_after_it() {
    let Some(primary) = Server::with_settings(&["synchronous_standby_names=*"]) else { return };
    let standby = primary.standby();
    let clock = Arc::new(ManualClock::default());
    let [holder, other] = [open_at(&primary, &standby, &clock).await, open_at(&primary, &standby, &clock).await];
    holder.apply(vec![submit(); 3]).await.unwrap();
    let session = session(&holder, LEASE).await;
    let leases = claim(&holder, session, 3).await;
    primary.stop("immediate");
    standby.promote();
    assert_eq!(complete(&holder, leases[0]).await, Outcome::Done, "it has its lease on the new primary");
    clock.advance(LEASE + Duration::from_secs(1));
    let theirs = claim(&other, self::session(&other, LEASE).await, 3).await;
    assert_eq!(theirs.len(), 2);
    for (late, lease) in leases[1..].iter().zip(&theirs) {
        assert!(matches!(complete(&holder, *late).await, Outcome::Refused(_)), "another runs it");
        assert_eq!(complete(&other, *lease).await, Outcome::Done);
    }
    let completed: u64 = other.statistics().await.unwrap().iter().map(|kind| kind.ended.completed).sum();
    assert_eq!(completed, 3);
}

async fn open_at(primary: &Server, standby: &Server, clock: &Arc<ManualClock>) -> PostgresStore {
    PostgresStore::options().clock(clock.clone()).open(&url(primary, standby)).await.expect("a store opens")
}

async fn session(store: &PostgresStore, lease: Duration) -> SessionId {
    let outcomes = store.apply(vec![Write::OpenSession(OpenSession::new("worker", lease))]).await.unwrap();
    let [Outcome::SessionOpened(session)] = outcomes[..] else { panic!("{outcomes:?}") };
    session
}

/// Sweeps lapsed leases, and claims.
async fn claim(store: &PostgresStore, session: SessionId, limit: usize) -> Vec<Lease> {
    let mut outcomes = store.apply(vec![Write::Sweep, Write::Claim(Claim::any(session, limit))]).await.unwrap();
    let Some(Outcome::Claimed(claimed)) = outcomes.pop() else { panic!("no claim") };
    claimed.tasks.iter().map(|task| task.lease).collect()
}

async fn complete(store: &PostgresStore, lease: Lease) -> Outcome {
    store.apply(vec![Write::Complete { lease, result: None }]).await.unwrap().remove(0)
}
