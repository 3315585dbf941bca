//! What it costs to submit, claim and complete a task while many others wait.

use std::time::Duration;

use onward_store::{
    Claim, Clock, Durability, NewTask, OpenSession, Outcome, Priority, SessionId, SqliteStore, Store, SystemClock,
    When, Write,
};

/// So many tasks wait where the backlog is deep: more than are kept in memory.
const DEEP: usize = 30_000;
/// And so many where it is not.
const SHALLOW: usize = 30;
/// The best of so many lives counts, so that nothing else on the machine does.
const LIVES: usize = 40;
/// A cost that grew with the backlog would grow a thousandfold.
const FACTOR: u32 = 10;

/// Beats: slow-backlog
#[tokio::test]
async fn a_life_beside_a_deep_backlog_costs_about_what_it_costs_beside_a_shallow_one() {
    let (shallow, deep) = (life_beside(SHALLOW, When::Now).await, life_beside(DEEP, When::Now).await);
    assert!(deep < shallow * FACTOR, "{deep:?} beside {DEEP}, {shallow:?} beside {SHALLOW}");
}

/// Beats: slow-backlog
#[tokio::test]
async fn a_life_beside_many_delayed_tasks_costs_about_what_it_costs_beside_few() {
    let later = When::After(Duration::from_secs(3600));
    let (few, many) = (life_beside(SHALLOW, later).await, life_beside(DEEP, later).await);
    assert!(many < few * FACTOR, "{many:?} beside {DEEP}, {few:?} beside {SHALLOW}");
}

/// The shortest life of an urgent task, from its submit to its end, while so many others wait.
async fn life_beside(backlog: usize, when: When) -> Duration {
    let directory = tempfile::tempdir().unwrap();
    let options = SqliteStore::options().durability(Durability::Normal);
    let store = options.open(directory.path().join("onward.db")).await.unwrap();
    let others = |_| Write::Submit(Box::new(NewTask { when, ..NewTask::new("other").unwrap() }));
    for part in 0..backlog.div_ceil(10_000) {
        let tasks = (backlog - part * 10_000).min(10_000);
        store.apply((0..tasks).map(others).collect()).await.unwrap();
    }
    let open = OpenSession { name: "test".into(), lease: Duration::from_secs(3600) };
    let outcomes = store.apply(vec![Write::OpenSession(open)]).await.unwrap();
    let Outcome::SessionOpened(session) = outcomes[0] else { panic!("no session: {outcomes:?}") };
    let mut shortest = Duration::MAX;
    for _ in 0..LIVES {
        let began = SystemClock.steady();
        live(&store, session).await;
        shortest = shortest.min(SystemClock.steady().saturating_sub(began));
    }
    shortest
}

async fn live(store: &SqliteStore, session: SessionId) {
    let urgent = NewTask { priority: Priority::URGENT, ..NewTask::new("mail").unwrap() };
    store.apply(vec![Write::Submit(Box::new(urgent))]).await.unwrap();
    let claim = Claim::any(session, 1);
    let outcomes = store.apply(vec![Write::Claim(claim)]).await.unwrap();
    let Outcome::Claimed(claimed) = &outcomes[0] else { panic!("no claim: {outcomes:?}") };
    assert_eq!(claimed.tasks[0].kind.as_str(), "mail");
    store.apply(vec![Write::Complete { lease: claimed.tasks[0].lease, result: None }]).await.unwrap();
}
