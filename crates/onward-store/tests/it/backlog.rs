//! The cost of submitting, claiming and completing a task while many others wait.

use std::time::Duration;

use onward_store::{
    Claim, ClaimedTask, Clock, Durability, LimitScope, Name, NewTask, OpenSession, Outcome, Priority, SessionId,
    SetLimit, SetQueue, SqliteStore, Store, StoreReads, SystemClock, When, Write,
};

/// The number of waiting tasks in a deep backlog: more than are kept in memory.
const DEEP: usize = 30_000;
/// The number of waiting tasks in a shallow backlog.
const SHALLOW: usize = 30;
/// The number of round trips of which the best counts, so that other load on the machine does not.
const LIVES: usize = 40;
/// The most by which the cost may grow. A cost proportional to the backlog would grow a
/// thousandfold.
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

/// Shows: Q10
#[tokio::test]
async fn a_look_at_the_queues_over_a_deep_backlog_costs_about_what_it_costs_over_a_shallow_one() {
    let (shallow, deep) = (look_over(SHALLOW).await, look_over(DEEP).await);
    assert!(deep < shallow * FACTOR, "{deep:?} over {DEEP}, {shallow:?} over {SHALLOW}");
}

/// Returns the shortest time of reading the sizes of the queues. `backlog` tasks wait and as many
/// are scheduled, all of them in the tables.
async fn look_over(backlog: usize) -> Duration {
    let directory = tempfile::tempdir().unwrap();
    let options = SqliteStore::options().durability(Durability::Normal).memory_tasks(0);
    let store = options.open(directory.path().join("onward.db")).await.unwrap();
    for when in [When::Now, When::After(Duration::from_secs(3600))] {
        let others = |_| Write::Submit(Box::new(NewTask { when, ..NewTask::new("other").unwrap() }));
        store.apply((0..backlog).map(others).collect()).await.unwrap();
    }
    let mut shortest = Duration::MAX;
    for _ in 0..LIVES {
        let began = SystemClock.steady();
        let queues = store.queues().await.unwrap();
        shortest = shortest.min(SystemClock.steady().saturating_sub(began));
        assert_eq!((queues[0].waiting, queues[0].scheduled), (backlog as u64, backlog as u64));
    }
    shortest
}

/// Returns the shortest round trip of an urgent task, from its submit to its end, while `backlog`
/// others wait.
async fn life_beside(backlog: usize, when: When) -> Duration {
    let directory = tempfile::tempdir().unwrap();
    let options = SqliteStore::options().durability(Durability::Normal);
    let store = options.open(directory.path().join("onward.db")).await.unwrap();
    let others = |_| Write::Submit(Box::new(NewTask { when, ..NewTask::new("other").unwrap() }));
    for part in 0..backlog.div_ceil(10_000) {
        let tasks = (backlog - part * 10_000).min(10_000);
        store.apply((0..tasks).map(others).collect()).await.unwrap();
    }
    let session = session(&store).await;
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
    let claimed = claim(store, session, 1).await;
    assert_eq!(claimed[0].kind.as_str(), "mail");
    store.apply(vec![Write::Complete { lease: claimed[0].lease, result: None }]).await.unwrap();
}

/// The number of groups that are held back, where they are many.
const GROUPS: usize = 10_000;

/// Shows: T9
/// Beats: saturated-group
#[tokio::test]
async fn a_claim_behind_ten_thousand_groups_that_are_held_back_costs_about_what_it_costs_behind_few() {
    let (few, many) = (life_behind(SHALLOW, 1).await, life_behind(GROUPS, 1).await);
    assert!(many < few * FACTOR, "{many:?} behind {GROUPS}, {few:?} behind {SHALLOW}");
}

/// Another store on the file makes this store read again what it may have changed. That must not be
/// every group.
///
/// Shows: T9
#[tokio::test]
async fn the_same_holds_where_two_stores_share_the_file() {
    let (few, many) = (life_behind(SHALLOW, 2).await, life_behind(GROUPS, 2).await);
    assert!(many < few * FACTOR, "{many:?} behind {GROUPS}, {few:?} behind {SHALLOW}");
}

/// Returns the shortest round trip of a task behind `groups` groups that have used up their limit,
/// each with a waiting task in front. The stores on the file take turns.
async fn life_behind(groups: usize, stores: usize) -> Duration {
    let directory = tempfile::tempdir().unwrap();
    let open_stores = open_stores(&directory, stores).await;
    let store = &open_stores[0];
    let limit = SetLimit::new(LimitScope::Groups("tenant-".to_owned())).concurrency(1);
    store.apply(vec![Write::SetLimit(limit)]).await.unwrap();
    let session = session(store).await;
    for _ in 0..2 {
        let tasks = (0..groups).map(|group| {
            let group = Some(Name::new(format!("tenant-{group}")).unwrap());
            Write::Submit(Box::new(NewTask { group, ..NewTask::new("other").unwrap() }))
        });
        store.apply(tasks.collect()).await.unwrap();
        while !claim(store, session, 4096).await.is_empty() {}
    }
    let mut shortest = Duration::MAX;
    for turn in 0..LIVES {
        let store = &open_stores[turn % stores];
        let began = SystemClock.steady();
        let mail = NewTask { group: Some(Name::new("mail").unwrap()), ..NewTask::new("mail").unwrap() };
        store.apply(vec![Write::Submit(Box::new(mail))]).await.unwrap();
        let claimed = claim(store, session, 1).await;
        assert_eq!(claimed[0].kind.as_str(), "mail");
        store.apply(vec![Write::Complete { lease: claimed[0].lease, result: None }]).await.unwrap();
        shortest = shortest.min(SystemClock.steady().saturating_sub(began));
    }
    shortest
}

/// Shows: T9
#[tokio::test]
async fn a_claim_among_ten_thousand_groups_that_share_costs_about_what_it_costs_among_few() {
    for stores in [1, 2] {
        let (few, many) = (life_among(SHALLOW, stores).await, life_among(GROUPS, stores).await);
        assert!(many < few * FACTOR, "{many:?} among {GROUPS}, {few:?} among {SHALLOW}, of {stores} stores");
    }
}

/// Returns the shortest time from claim to end of a task while `groups` groups with two tasks each
/// share the queue by weight. The stores on the file take turns.
async fn life_among(groups: usize, stores: usize) -> Duration {
    let directory = tempfile::tempdir().unwrap();
    let open_stores = open_stores(&directory, stores).await;
    let limit = SetLimit::new(LimitScope::Groups("tenant-".to_owned())).weight(2);
    open_stores[0].apply(vec![Write::SetLimit(limit)]).await.unwrap();
    let session = session(&open_stores[0]).await;
    let tasks = (0..groups * 2).map(|task| {
        let group = Some(Name::new(format!("tenant-{}", task % groups)).unwrap());
        Write::Submit(Box::new(NewTask { group, ..NewTask::new("mail").unwrap() }))
    });
    open_stores[0].apply(tasks.collect()).await.unwrap();
    let mut shortest = Duration::MAX;
    for turn in 0..LIVES {
        let store = &open_stores[turn % stores];
        let began = SystemClock.steady();
        let claimed = claim(store, session, 1).await;
        store.apply(vec![Write::Complete { lease: claimed[0].lease, result: None }]).await.unwrap();
        shortest = shortest.min(SystemClock.steady().saturating_sub(began));
    }
    shortest
}

/// Shows: Q12
#[tokio::test]
async fn a_claim_beside_ten_thousand_affinity_keys_of_another_session_costs_about_what_it_costs_beside_few() {
    for stores in [1, 2] {
        let (few, many) = (
            round_trip_beside_affinity_keys(SHALLOW, stores).await,
            round_trip_beside_affinity_keys(GROUPS, stores).await,
        );
        assert!(many < few * FACTOR, "{many:?} beside {GROUPS}, {few:?} beside {SHALLOW}, of {stores} stores");
    }
}

/// Returns the shortest round trip of a task behind tasks of `affinity_key` affinity keys that are
/// reserved for another session. The stores on the file take turns.
async fn round_trip_beside_affinity_keys(affinity_key: usize, stores: usize) -> Duration {
    let directory = tempfile::tempdir().unwrap();
    let open_stores = open_stores(&directory, stores).await;
    let store = &open_stores[0];
    let wait = SetQueue::new(Name::default_queue()).affinity_wait(Duration::from_secs(3600));
    store.apply(vec![Write::SetQueue(wait)]).await.unwrap();
    let (preferred, other) = (session(store).await, session(store).await);
    for is_reserved in [false, true] {
        let tasks = (0..affinity_key).map(|affinity_key| {
            let affinity = Some(Name::new(format!("affinity_key-{affinity_key}")).unwrap());
            Write::Submit(Box::new(NewTask { affinity, ..NewTask::new("train").unwrap() }))
        });
        store.apply(tasks.collect()).await.unwrap();
        while !is_reserved && !claim(store, preferred, 4096).await.is_empty() {}
    }
    let mut shortest = Duration::MAX;
    for turn in 0..LIVES {
        let store = &open_stores[turn % stores];
        let began = SystemClock.steady();
        store.apply(vec![Write::Submit(Box::new(NewTask::new("train").unwrap()))]).await.unwrap();
        let claimed = claim(store, other, 1).await;
        store.apply(vec![Write::Complete { lease: claimed[0].lease, result: None }]).await.unwrap();
        shortest = shortest.min(SystemClock.steady().saturating_sub(began));
    }
    shortest
}

/// Opens `count` stores on one file.
async fn open_stores(directory: &tempfile::TempDir, count: usize) -> Vec<SqliteStore> {
    let path = directory.path().join("onward.db");
    let mut stores = Vec::new();
    for _ in 0..count {
        stores.push(SqliteStore::options().durability(Durability::Normal).open(&path).await.unwrap());
    }
    stores
}

async fn session(store: &SqliteStore) -> SessionId {
    let open = OpenSession::new("test", Duration::from_secs(3600));
    match store.apply(vec![Write::OpenSession(open)]).await.unwrap()[..] {
        [Outcome::SessionOpened(session)] => session,
        ref outcomes => panic!("no session: {outcomes:?}"),
    }
}

async fn claim(store: &SqliteStore, session: SessionId, limit: usize) -> Vec<ClaimedTask> {
    match &mut store.apply(vec![Write::Claim(Claim::any(session, limit))]).await.unwrap()[..] {
        [Outcome::Claimed(claimed)] => std::mem::take(&mut claimed.tasks),
        outcomes => panic!("no claim: {outcomes:?}"),
    }
}
