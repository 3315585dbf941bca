//! Turns that only append events, which are written without reading the store.

use std::sync::Arc;
use std::time::Duration;

use onward_store::{
    AfterTurn, Claim, Durability, Lease, NewTask, OpenSession, Outcome, PostgresStore, Refusal, Store, StoreReads,
    TaskFilter, TaskState, Turn, Write,
};
use onward_testkit::postgres::Server;

use super::server::url;
use super::trouble::{Moment, Troubled, connect, in_time};

/// A lease far longer than a test takes on a busy machine.
const LONG: Duration = Duration::from_secs(600);

/// The number of steps that are counted.
const STEPS: u64 = 10;

/// Starts and claims orchestrations.
async fn claimed(store: &PostgresStore, count: usize) -> Vec<Lease> {
    let new = || NewTask { orchestration: true, ..NewTask::new("order").unwrap() };
    store.apply((0..count).map(|_| Write::Submit(Box::new(new()))).collect()).await.unwrap();
    let open = Write::OpenSession(OpenSession::new("node", LONG));
    let Outcome::SessionOpened(session) = store.apply(vec![open]).await.unwrap()[0] else { panic!("no session") };
    let claim = Write::Claim(Claim::any(session, count));
    let Outcome::Claimed(claimed) = store.apply(vec![claim]).await.unwrap().remove(0) else { panic!("no claim") };
    claimed.tasks.iter().map(|task| task.lease).collect()
}

/// Returns the write of a step that follows `length` events in the history.
fn step(lease: Lease, length: u64) -> Write {
    let turn = Turn { events: 1, chunk: vec![7; 20].into(), ..Turn::new(lease, length, AfterTurn::Continue) };
    Write::Turn(Box::new(turn))
}

/// Applies a step, and returns whether the store accepted it.
async fn takes(store: &PostgresStore, lease: Lease, length: u64) -> bool {
    match &store.apply(vec![step(lease, length)]).await.unwrap()[0] {
        Outcome::Turned(turned) => turned.state == TaskState::Running,
        Outcome::Refused(_) => false,
        outcome => panic!("{outcome:?}"),
    }
}

/// Starts and claims an orchestration, and applies three steps, so that the writer has it in its
/// row cache.
async fn begun(store: &PostgresStore) -> Lease {
    let lease = claimed(store, 1).await[0];
    for before in 0..3 {
        assert!(takes(store, lease, before).await);
    }
    lease
}

/// Returns the number of events of a history, according to its record and according to its chunks.
async fn length(store: &PostgresStore, lease: Lease) -> (u64, u64) {
    let record = store.instance(lease.task).await.unwrap().unwrap();
    let chunks = store.instance_history(lease.task, 0, 1000).await.unwrap();
    (record.length, chunks.iter().map(|chunk| chunk.events).sum())
}

/// Shows: D1
#[tokio::test]
async fn a_step_behind_another_is_one_statement() {
    let Some(server) = Server::with_settings(&["shared_preload_libraries=pg_stat_statements"]) else { return };
    let store = PostgresStore::options().durability(Durability::Normal).open(&server.url()).await.unwrap();
    let client = connect(&server.url()).await;
    client.batch_execute("CREATE EXTENSION pg_stat_statements").await.unwrap();
    let lease = begun(&store).await;
    client.batch_execute("SELECT pg_stat_statements_reset()").await.unwrap();
    for before in 3..3 + STEPS {
        assert!(takes(&store, lease, before).await);
    }
    let asked = "SELECT query, calls FROM pg_stat_statements WHERE query NOT LIKE '%pg_stat_statements%'";
    let asked = client.query(asked, &[]).await.unwrap();
    let asked: Vec<(String, i64)> = asked.iter().map(|row| (row.get(0), row.get(1))).collect();
    assert_eq!(asked.len(), 1, "{asked:#?}");
    assert_eq!(asked[0].1, STEPS.cast_signed(), "{asked:#?}");
    assert_eq!(length(&store, lease).await, (3 + STEPS, 3 + STEPS));
}

#[tokio::test]
async fn a_step_is_refused_if_another_node_has_ended_its_session_meanwhile() {
    let Some(url) = url() else { return };
    let troubled = Troubled::new(&url, &[]).await;
    let (store, other) = (&troubled.store, troubled.another().await);
    let lease = begun(store).await;
    other.apply(vec![Write::CloseSession { session: lease.session }]).await.unwrap();
    let outcomes = store.apply(vec![step(lease, 3)]).await.unwrap();
    assert!(matches!(outcomes[..], [Outcome::Refused(Refusal::SessionLost(_))]), "{outcomes:?}");
    assert_eq!(length(store, lease).await, (3, 3));
}

#[tokio::test]
async fn a_step_sees_what_another_node_has_written_meanwhile() {
    let Some(url) = url() else { return };
    let troubled = Troubled::new(&url, &[]).await;
    let (store, other) = (&troubled.store, troubled.another().await);
    let lease = begun(store).await;
    // The other node may use the lease as well, because a lease does not tell which node writes.
    assert!(takes(&other, lease, 3).await);
    assert!(!takes(store, lease, 3).await);
    assert!(takes(store, lease, 4).await);
    assert_eq!(length(store, lease).await, (5, 5));
}

/// Shows: D10
#[tokio::test]
async fn a_step_that_changes_a_tag_is_found_by_it_and_steps_go_on_behind_it() {
    let Some(url) = url() else { return };
    let troubled = Troubled::new(&url, &[]).await;
    let (store, other) = (&troubled.store, troubled.another().await);
    let lease = begun(store).await;
    let filter = |value: &str| TaskFilter { tags: [("stage", value)].into_iter().collect(), ..TaskFilter::default() };
    for (length, value) in [(3, "picking"), (5, "packing"), (7, "packing")] {
        let Write::Turn(turn) = step(lease, length) else { panic!("no turn") };
        let turn = Turn { tags: vec![("stage".to_owned(), Some(value.to_owned()))], ..*turn };
        let outcomes = store.apply(vec![Write::Turn(Box::new(turn))]).await.unwrap();
        assert!(matches!(outcomes[..], [Outcome::Turned(_)]), "{outcomes:?}");
        assert!(takes(store, lease, length + 1).await);
        assert_eq!(other.count(filter(value)).await.unwrap(), 1);
    }
    assert_eq!(other.count(filter("picking")).await.unwrap(), 0);
    assert_eq!(length(store, lease).await, (9, 9));
}

#[tokio::test]
async fn of_several_steps_at_once_one_that_is_refused_disturbs_no_other() {
    let Some(url) = url() else { return };
    let troubled = Troubled::new(&url, &[]).await;
    let store = &troubled.store;
    let leases = claimed(store, 3).await;
    for before in 0..3 {
        let outcomes = store.apply(leases.iter().map(|lease| step(*lease, before)).collect()).await.unwrap();
        assert!(outcomes.iter().all(|outcome| matches!(outcome, Outcome::Turned(_))), "{outcomes:?}");
    }
    let batch = [(0, 3), (1, 2), (0, 4), (2, 3)];
    let batch = batch.map(|(which, length): (usize, u64)| step(leases[which], length));
    let outcomes = store.apply(batch.to_vec()).await.unwrap();
    let taken: Vec<bool> = outcomes.iter().map(|outcome| matches!(outcome, Outcome::Turned(_))).collect();
    assert_eq!(taken, [true, false, true, true]);
    for (lease, events) in leases.into_iter().zip([5, 3, 4]) {
        assert_eq!(length(store, lease).await, (events, events));
    }
}

/// The cached result of the first steps must not be written again with the next one.
#[tokio::test]
async fn a_step_whose_connection_breaks_is_done_again_once() {
    let Some(url) = url() else { return };
    for moment in [Moment::Change, Moment::Commit] {
        let troubled = Troubled::new(&url, &[]).await;
        let store = &troubled.store;
        let lease = begun(store).await;
        let end = "PERFORM pg_terminate_backend(pg_backend_pid()); PERFORM pg_sleep(60)";
        troubled.prepare_for("turn", moment, 1, end).await;
        assert!(takes(store, lease, 3).await, "{moment:?}");
        assert!(takes(store, lease, 4).await, "{moment:?}");
        assert_eq!(length(store, lease).await, (5, 5), "{moment:?}");
        assert!(troubled.troubles().await > 1, "{moment:?}");
    }
}

#[tokio::test]
async fn a_step_that_the_server_does_not_take_leaves_no_trace() {
    let Some(url) = url() else { return };
    for moment in [Moment::Change, Moment::Commit] {
        let troubled = Troubled::new(&url, &[]).await;
        let store = &troubled.store;
        let lease = begun(store).await;
        troubled.prepare_for("turn", moment, 1, "RAISE EXCEPTION 'on purpose' USING ERRCODE = '53200'").await;
        store.apply(vec![step(lease, 3)]).await.unwrap_err();
        assert_eq!(length(store, lease).await, (3, 3), "{moment:?}");
        assert!(takes(store, lease, 3).await, "{moment:?}");
        assert_eq!(length(store, lease).await, (4, 4), "{moment:?}");
    }
}

#[tokio::test]
async fn a_step_waits_for_the_holder_of_the_lock() {
    let Some(url) = url() else { return };
    let troubled = Troubled::new(&url, &[]).await;
    let lease = begun(&troubled.store).await;
    let mut client = connect(&url).await;
    let transaction = client.transaction().await.unwrap();
    let lock = format!("SELECT pg_advisory_xact_lock(hashtextextended('onward {}', 0))", troubled.schema());
    transaction.batch_execute(&lock).await.unwrap();
    let troubled = Arc::new(troubled);
    let stepping = tokio::spawn({
        let troubled = Arc::clone(&troubled);
        async move { takes(&troubled.store, lease, 3).await }
    });
    in_time("the step waits for the lock", async {
        let waits = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted";
        while transaction.query_one(waits, &[]).await.unwrap().get::<_, i64>(0) == 0 {}
    })
    .await;
    transaction.commit().await.unwrap();
    assert!(in_time("the step is done", stepping).await.unwrap());
    assert_eq!(length(&troubled.store, lease).await, (4, 4));
}
