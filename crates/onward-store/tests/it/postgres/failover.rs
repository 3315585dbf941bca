//! A primary that is lost, and its standby.

use std::collections::HashSet;
use std::sync::Arc;

use onward_store::{Outcome, PostgresStore, Store};
use onward_testkit::postgres::Server;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::trouble::submit;

/// How many callers there are.
const CALLERS: usize = 4;
/// How many tasks each submits, one after another.
const TASKS: usize = 50;
/// After how many the primary is lost.
const BEFORE: u32 = 40;

/// Of both servers, the one that takes writes.
async fn open(primary: &Server, standby: &Server) -> PostgresStore {
    let (one, other) = (primary.port(), standby.port());
    let url =
        format!("postgres://onward@127.0.0.1:{one},127.0.0.1:{other}/postgres?target_session_attrs=read-write#onward");
    PostgresStore::open(&url).await.expect("a store opens")
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
