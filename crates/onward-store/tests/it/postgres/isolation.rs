//! Writes that fail, and servers that end connections.

use onward_store::{NewTask, Outcome, PostgresStore, Store, StoreReads, Submitted, TaskFilter, Write};

use super::fixture::options;
use super::server::{open, url};

fn submit(kind: &str) -> Vec<Write> {
    vec![Write::Submit(Box::new(NewTask::new(kind).unwrap()))]
}

async fn count(store: &PostgresStore) -> u64 {
    store.count(TaskFilter::default()).await.unwrap()
}

/// The store opens its connections again.
#[tokio::test]
async fn a_store_goes_on_after_the_server_has_ended_its_connections() {
    let Some(url) = url() else { return };
    let options = options();
    let store = open(&url, options.clone()).await;
    store.apply(submit("before")).await.unwrap();
    let (client, connection) = tokio_postgres::connect(&url, tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() \
               AND query LIKE '%' || $1 || '.%'";
    client.query(end, &[&store.info().location.rsplit_once('#').unwrap().1]).await.unwrap();
    let outcomes = store.apply(submit("after")).await.unwrap();
    assert!(matches!(outcomes[..], [Outcome::Submitted(Submitted::Inserted { .. })]), "{outcomes:?}");
    assert_eq!(count(&store).await, 2);
}

#[tokio::test]
async fn a_write_that_the_server_does_not_take_leaves_no_trace() {
    let Some(url) = url() else { return };
    let store = open(&url, options()).await;
    let schema = store.info().location.rsplit_once('#').unwrap().1.to_owned();
    let (client, connection) = tokio_postgres::connect(&url, tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    let refuse = format!("ALTER TABLE {schema}.task ADD CONSTRAINT no_bad CHECK (kind <> 'bad')");
    client.batch_execute(&refuse).await.unwrap();
    let (good, bad, also_good) =
        tokio::join!(store.apply(submit("good")), store.apply(submit("bad")), store.apply(submit("good")));
    assert!(good.is_ok() && also_good.is_ok(), "neighbours are disturbed: {good:?} {also_good:?}");
    assert!(bad.is_err(), "{bad:?}");
    assert_eq!(count(&store).await, 2);
}

#[tokio::test]
async fn two_stores_in_one_database_know_nothing_of_one_another() {
    let Some(url) = url() else { return };
    let (one, other) = (open(&url, options()).await, open(&url, options()).await);
    one.apply(submit("mail")).await.unwrap();
    assert_eq!((count(&one).await, count(&other).await), (1, 0));
}

#[tokio::test]
async fn a_schema_that_cannot_be_is_refused_with_the_remedy() {
    let error = options().schema("Bad; schema").open("postgres://localhost/none").await.unwrap_err();
    assert!(error.is_invalid() && error.to_string().contains("a–z"), "{error}");
}
