//! Errors of the server and their handling: retried, or reported with the server's name and the
//! remedy. Nothing is lost, and nothing happens twice.

use std::sync::Arc;
use std::time::Duration;

use onward_store::{
    Claim, Error, KindSelection, Name, NewTask, OpenSession, Outcome, PostgresStore, SessionId, SetQueue, Store,
    StoreReads, TaskFilter, Write,
};
use onward_testkit::mount::Mount;
use onward_testkit::postgres::Server;

use super::server::url;
use super::trouble::{Moment, Troubled, connect, in_time, submit, with_settings};

/// The number of times that the server fails before it succeeds.
const TIMES: u32 = 3;

/// Checks that an error which passes on a retry is not reported to the caller.
async fn assert_is_tried_again(code: &str) {
    for moment in [Moment::Change, Moment::Commit] {
        let Some(url) = url() else { return };
        let troubled = Troubled::new(&url, &[]).await;
        troubled.fail(moment, TIMES, code).await;
        troubled.assert_submits().await;
        assert_eq!(troubled.troubles().await, i64::from(TIMES) + 1, "{moment:?}");
    }
}

/// Checks that an error is reported to the caller, that the call had no effect, and that the next
/// call may succeed.
async fn assert_is_reported(code: &str, remedy: &str) -> Option<Error> {
    let url = url()?;
    let mut reported = None;
    for moment in [Moment::Change, Moment::Commit] {
        let troubled = Troubled::new(&url, &[]).await;
        troubled.fail(moment, 1, code).await;
        let error = troubled.submit().await.unwrap_err();
        assert_names_server_and_remedy(&error, remedy);
        assert!(error.is_transient(), "an engine would give up: {error:?}");
        assert_eq!(troubled.count().await, 0);
        troubled.assert_submits().await;
        reported = Some(error);
    }
    reported
}

fn assert_names_server_and_remedy(error: &Error, remedy: &str) {
    let text = error.to_string();
    assert!(text.contains("postgres://127.0.0.1") && text.contains(remedy), "{text}");
}

/// Shows: T21, B4
#[tokio::test]
async fn a_serialization_failure_is_tried_again() {
    assert_is_tried_again("40001").await;
}

/// Shows: T21, B4
#[tokio::test]
async fn a_deadlock_is_tried_again() {
    assert_is_tried_again("40P01").await;
}

/// Shows: T21, B4
#[tokio::test]
async fn a_lock_that_is_not_to_be_had_in_time_is_tried_again() {
    assert_is_tried_again("55P03").await;
}

/// Shows: T21, B4
#[tokio::test]
async fn a_connection_that_the_server_says_is_broken_is_made_again() {
    for code in ["08000", "08003", "08006", "08P01"] {
        assert_is_tried_again(code).await;
    }
}

/// Shows: T21, B4
#[tokio::test]
async fn a_connection_that_an_administrator_ends_within_a_write_is_made_again() {
    let Some(url) = url() else { return };
    for moment in [Moment::Change, Moment::Commit] {
        let troubled = Troubled::new(&url, &[]).await;
        troubled.prepare(moment, TIMES, "PERFORM pg_terminate_backend(pg_backend_pid()); PERFORM pg_sleep(60)").await;
        troubled.assert_submits().await;
        assert_eq!(troubled.troubles().await, i64::from(TIMES) + 1, "{moment:?}");
    }
}

/// Shows: T21, B4
#[tokio::test]
async fn a_server_that_runs_out_of_memory_is_reported() {
    assert_is_reported("53200", "memory").await;
}

/// Shows: T21, B4
#[tokio::test]
async fn a_server_that_says_that_its_disk_is_full_is_reported() {
    let Some(error) = assert_is_reported("53100", "make room").await else { return };
    assert!(error.is_full(), "{error:?}");
}

/// A pooler that cannot reach its server reports such an error, which is no reason to give up the
/// store.
///
/// Shows: T21, B4
#[tokio::test]
async fn an_internal_error_of_the_server_is_reported_and_no_damage_of_the_store() {
    let Some(error) = assert_is_reported("XX000", "XX000").await else { return };
    assert!(!error.is_corrupt(), "{error:?}");
}

/// This error is not simulated: a tablespace runs full.
///
/// Shows: T21, B4
#[test]
fn a_disk_of_the_server_that_is_full_is_reported_and_the_store_goes_on_when_there_is_room() {
    let (Some(url), Some(mount)) = (url(), Mount::new("8m")) else { return };
    mount.give_to("postgres");
    let place = format!("small{}", std::process::id());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let administrator = connect(&url).await;
        let make = format!("CREATE TABLESPACE {place} LOCATION '{}'", mount.path().display());
        administrator.batch_execute(&make).await.unwrap();
        let troubled = Troubled::new(&url, &[&format!("default_tablespace={place}")]).await;
        troubled.assert_submits().await;
        mount.fill_but(0);
        let mut acknowledged = 1;
        let error = loop {
            match troubled.store.apply(vec![submit(); 100]).await {
                Ok(_) => acknowledged += 100,
                Err(error) => break error,
            }
        };
        assert!(error.is_full(), "{error:?}");
        assert_names_server_and_remedy(&error, "make room");
        assert_eq!(troubled.count().await, acknowledged);
        mount.make_room();
        troubled.assert_submits().await;
        administrator.batch_execute(&format!("DROP SCHEMA {} CASCADE", troubled.schema())).await.unwrap();
        administrator.batch_execute(&format!("DROP TABLESPACE {place}")).await.unwrap();
    });
}

/// A server that cannot write its log panics, and cannot recover either.
///
/// Shows: T21, B4
#[test]
fn a_server_whose_log_has_no_room_loses_nothing_and_callers_go_on_when_it_has() {
    let Some(mount) = Mount::new("24m") else { return };
    mount.give_to("postgres");
    let sizes = ["min_wal_size=2MB", "max_wal_size=4MB"];
    let place = mount.path().join("log");
    let Some(server) = Server::with_log_in(&place, &sizes) else { return };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let store = Arc::new(PostgresStore::open(&server.url()).await.unwrap());
        mount.fill_but(0);
        let submitter = Arc::clone(&store);
        let submitting = tokio::spawn(async move {
            for _ in 0..BATCHES {
                submitter.apply(large_submits()).await.expect("no caller hears of it");
            }
        });
        in_time("the server panics", async {
            while !server.log().contains("PANIC") {
                tokio::task::yield_now().await;
            }
        })
        .await;
        mount.make_room();
        server.start_again();
        in_time("all are submitted", submitting).await.unwrap();
        assert_eq!(store.count(TaskFilter::default()).await.unwrap(), (BATCHES * BATCH) as u64);
    });
}

/// The size of a batch. All batches together need more than the log keeps.
const BATCHES: usize = 40;
const BATCH: usize = 16;

/// Returns submits with payloads that the server cannot compress.
fn large_submits() -> Vec<Write> {
    let payload: Vec<u8> =
        (0..32 * 1024_u32).map(|at| at.wrapping_mul(at).wrapping_mul(0x9E37_79B1).to_be_bytes()[0]).collect();
    let new = NewTask { payload: payload.into(), ..NewTask::new("mail").unwrap() };
    vec![Write::Submit(Box::new(new)); BATCH]
}

/// Shows: T21, B4
#[tokio::test]
async fn a_statement_that_takes_too_long_is_reported() {
    let Some(url) = url() else { return };
    let troubled = Troubled::new(&url, &["statement_timeout=1s"]).await;
    troubled.prepare(Moment::Change, 1, "PERFORM pg_sleep(60)").await;
    let error = troubled.submit().await.unwrap_err();
    assert_names_server_and_remedy(&error, "statement_timeout");
    assert!(error.is_transient(), "{error:?}");
    assert_eq!(troubled.count().await, 0);
    troubled.assert_submits().await;
}

/// Each caller alone is fast enough.
///
/// Shows: T21, B4
#[tokio::test]
async fn callers_who_together_take_too_long_for_one_statement_are_served_one_by_one() {
    let Some(url) = url() else { return };
    let troubled = Troubled::new(&url, &["statement_timeout=1s"]).await;
    troubled.prepare(Moment::Change, 1000, "PERFORM pg_sleep(0.2)").await;
    let calls = futures_util::future::join_all((0..8).map(|_| troubled.submit())).await;
    assert!(calls.iter().all(Result::is_ok), "{calls:?}");
    assert_eq!(troubled.count().await, 8);
}

/// Shows: T21, B4
#[tokio::test]
async fn connections_that_the_server_ends_for_being_idle_are_made_again() {
    let Some(url) = url() else { return };
    // The first store creates the tables, so that no connection is idle for long while the second
    // store opens.
    let troubled = Troubled::new(&url, &[]).await;
    let name = format!("{}_idle", troubled.schema());
    let idle = format!("{}&application_name={name}", with_settings(&url, &["idle_session_timeout=1s"]));
    let store = troubled.try_another(&idle).await.unwrap();
    in_time("the server ends idle connections", async { while troubled.connections(&name).await > 0 {} }).await;
    store.apply(vec![submit()]).await.unwrap();
    assert_eq!(troubled.count().await, 1);
}

/// A snapshot from before the lock would show the store as it was before the writes of other nodes.
///
/// Shows: B4, W10
#[tokio::test]
async fn nodes_together_never_exceed_a_limit_where_transactions_are_serializable_by_default() {
    for level in ["serializable", "repeatable\\%20read"] {
        let Some(url) = url() else { return };
        let troubled = Troubled::new(&url, &[&format!("default_transaction_isolation={level}")]).await;
        let another = troubled.another().await;
        let queue = SetQueue::new(Name::default_queue()).concurrency(3);
        troubled.store.apply(vec![Write::SetQueue(queue)]).await.unwrap();
        let kinds = ["mail", "image"];
        let submits = (0..120).map(|number| Write::Submit(Box::new(NewTask::new(kinds[number % 2]).unwrap())));
        troubled.store.apply(submits.collect()).await.unwrap();
        let sessions = [open_session(&troubled.store).await, open_session(&another).await];
        for _ in 0..20 {
            let (mut one, other) =
                tokio::join!(claim(&troubled.store, sessions[0], kinds[0]), claim(&another, sessions[1], kinds[1]));
            one.extend(other);
            assert_eq!(one.len(), 3, "{level}");
            troubled.store.apply(one).await.unwrap();
        }
    }
}

async fn open_session(store: &dyn Store) -> SessionId {
    let open = OpenSession::new("node", Duration::from_secs(600));
    let outcomes = store.apply(vec![Write::OpenSession(open)]).await.unwrap();
    let Outcome::SessionOpened(session) = outcomes[0] else { panic!("no session: {outcomes:?}") };
    session
}

/// Claims the tasks of a kind that may start. Returns the writes that complete them.
async fn claim(store: &dyn Store, session: SessionId, kind: &str) -> Vec<Write> {
    let kinds = KindSelection::Only([Name::new(kind).unwrap()].into());
    let outcomes = store.apply(vec![Write::Claim(Claim { kinds, ..Claim::any(session, 10) })]).await.unwrap();
    let [Outcome::Claimed(claimed)] = &outcomes[..] else { panic!("a claim answered {outcomes:?}") };
    claimed.tasks.iter().map(|task| Write::Complete { lease: task.lease, result: None }).collect()
}

/// Shows: T21, B4
#[tokio::test]
async fn a_server_that_takes_no_more_connections_is_waited_for() {
    let Some(server) = Server::with_settings(&["max_connections=12", "superuser_reserved_connections=0"]) else {
        return;
    };
    let troubled = Troubled::new(&server.url(), &[]).await;
    let mut others = Vec::new();
    while let Ok((client, connection)) = tokio_postgres::connect(&server.url(), tokio_postgres::NoTls).await {
        others.push((client, tokio::spawn(connection)));
    }
    // The place of an ended connection becomes free a little later, and the store may take it
    // first. One place is the connection of the test itself.
    while others.len() < 12 - 1 {
        troubled.end_connections().await;
        if let Ok((client, connection)) = tokio_postgres::connect(&server.url(), tokio_postgres::NoTls).await {
            others.push((client, tokio::spawn(connection)));
        }
    }
    let mut submitted = std::pin::pin!(troubled.assert_submits());
    let early = tokio::time::timeout(Duration::from_millis(100), &mut submitted).await;
    assert!(early.is_err(), "there was a place after all");
    others.iter().for_each(|(_, connection)| connection.abort());
    submitted.await;
}

/// Shows: T21, B4
#[tokio::test]
async fn a_server_that_takes_no_more_connections_is_waited_for_when_a_store_is_opened() {
    let Some(server) = Server::with_settings(&["max_connections=12", "superuser_reserved_connections=0"]) else {
        return;
    };
    let url = server.url();
    let mut others = Vec::new();
    while let Ok((client, connection)) = tokio_postgres::connect(&url, tokio_postgres::NoTls).await {
        others.push((client, tokio::spawn(connection)));
    }
    let mut opening = std::pin::pin!(PostgresStore::open(&url));
    let early = tokio::time::timeout(Duration::from_millis(100), &mut opening).await;
    assert!(early.is_err(), "{early:?}");
    others.iter().for_each(|(_, connection)| connection.abort());
    in_time("the store is opened", opening).await.unwrap();
}

/// Connections that were opened while the database was read-only stay read-only afterwards.
///
/// Shows: T21, B4
#[tokio::test]
async fn a_database_that_is_read_only_for_a_while_is_waited_for_and_its_connections_are_made_again() {
    let Some(server) = Server::start() else { return };
    let troubled = Troubled::new(&server.url(), &[]).await;
    troubled.assert_submits().await;
    let administrator = connect(&with_settings(&server.url(), &["default_transaction_read_only=off"])).await;
    administrator.batch_execute("ALTER DATABASE postgres SET default_transaction_read_only = on").await.unwrap();
    troubled.end_connections().await;
    let error = troubled.try_another(&troubled.url).await.unwrap_err();
    assert!(error.is_read_only(), "{error:?}");
    assert_names_server_and_remedy(&error, "primary");
    let refusals = || server.log().matches("in a read-only transaction").count();
    let before = refusals();
    let refused = async {
        while refusals() == before {
            tokio::task::yield_now().await;
        }
    };
    let writable = async {
        in_time("the server refuses a write", refused).await;
        administrator.batch_execute("ALTER DATABASE postgres RESET default_transaction_read_only").await.unwrap();
    };
    tokio::join!(troubled.assert_submits(), writable);
}

/// Shows: T21, B4
#[tokio::test]
async fn a_server_that_stays_read_only_is_reported_as_such() {
    let Some(server) = Server::start() else { return };
    let troubled = Troubled::new(&server.url(), &[]).await;
    let impatient = troubled.impatient().await;
    let administrator = connect(&server.url()).await;
    administrator.batch_execute("ALTER SYSTEM SET default_transaction_read_only = on").await.unwrap();
    administrator.batch_execute("SELECT pg_reload_conf()").await.unwrap();
    let refused = async {
        loop {
            // Existing connections apply the setting a moment later.
            if let Err(error) = impatient.apply(vec![submit()]).await {
                break error;
            }
        }
    };
    let error = in_time("a server that is read-only refuses a write", refused).await;
    assert!(error.is_read_only() && error.is_transient(), "{error:?}");
    assert_names_server_and_remedy(&error, "primary");
}

/// Shows: B4
#[tokio::test]
async fn a_server_that_is_not_there_is_named_with_the_reason_and_the_remedy() {
    let Some(server) = Server::start() else { return };
    server.stop("immediate");
    let error = PostgresStore::open(&server.url()).await.unwrap_err();
    let text = error.to_string();
    for part in [&format!("127.0.0.1:{}", server.port()), "refused", "check that it runs"] {
        assert!(text.contains(part), "no `{part}`: {text}");
    }
    server.start_stopped();
}

/// Shows: B4
#[tokio::test]
async fn a_database_that_is_not_there_is_named_with_the_remedy() {
    let Some(url) = url() else { return };
    let error = PostgresStore::open(&url.replace("/postgres", "/nowhere")).await.unwrap_err();
    assert!(error.is_not_found(), "{error:?}");
    assert_names_server_and_remedy(&error, "createdb");
}

/// Shows: B4
#[tokio::test]
async fn a_user_who_may_not_connect_gets_the_remedy() {
    let Some(url) = url() else { return };
    let error = PostgresStore::open(&url.replace("onward@", "nobody@")).await.unwrap_err();
    assert!(error.is_denied() && !error.is_transient(), "{error:?}");
    assert_names_server_and_remedy(&error, "user and password");
}
