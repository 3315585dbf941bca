//! The messages of orchestrations, which are stored as rows.

use onward_store::{Durability, NewTask, Outcome, PostgresStore, Recipient, Signal, Store, Submitted, TaskId, Write};
use onward_testkit::postgres::Server;
use tokio_postgres::Client;

use super::trouble::connect;

/// The number of signals in one measurement.
const SIGNALS: usize = 50;

async fn orchestration(store: &PostgresStore) -> TaskId {
    let new = NewTask { orchestration: true, ..NewTask::new("order").unwrap() };
    let outcomes = store.apply(vec![Write::Submit(Box::new(new))]).await.unwrap();
    let Outcome::Submitted(Submitted::Inserted { id }) = outcomes[0] else { panic!("{outcomes:?}") };
    id
}

fn signal(to: TaskId, number: usize) -> Write {
    let payload = format!("{number:0>1024}").into();
    Write::Signal(Box::new(Signal { to: Recipient::Task(to), name: "paid".parse().unwrap(), payload }))
}

/// Returns the number of bytes that the server writes to its log for single signals.
async fn cost(client: &Client, store: &PostgresStore, task: TaskId) -> i64 {
    let place = async || -> i64 {
        let text = "SELECT (pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::bigint";
        client.query_one(text, &[]).await.unwrap().get(0)
    };
    let before = place().await;
    for number in 0..SIGNALS {
        assert_eq!(store.apply(vec![signal(task, number)]).await.unwrap(), [Outcome::Done]);
    }
    place().await - before
}

/// If the whole mailbox were one value, each message would rewrite all of it.
///
/// Shows: D3
#[tokio::test]
async fn a_message_costs_the_same_however_many_wait() {
    let Some(server) = Server::with_settings(&["autovacuum=off", "full_page_writes=off"]) else { return };
    let store = PostgresStore::options().durability(Durability::Normal).open(&server.url()).await.unwrap();
    let (client, task) = (connect(&server.url()).await, orchestration(&store).await);
    let few = cost(&client, &store, task).await;
    store.apply((0..1000).map(|number| signal(task, number)).collect()).await.unwrap();
    let many = cost(&client, &store, task).await;
    assert!(many < few * 3 / 2, "{SIGNALS} messages cost {few} bytes at first and {many} behind 1000 others");
}
