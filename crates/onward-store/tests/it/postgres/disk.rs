//! Reads return nothing that a crash of the server could undo.

use futures_util::FutureExt as _;
use onward_store::{
    Claim, EventCursor, NewTask, OpenSession, Outcome, Page, PendingBatchSelection, PostgresStore, Store, StoreReads,
    TagPage, TaskFilter, TaskId, Write,
};
use onward_testkit::postgres::Server;
use tokio_postgres::Client;

use super::trouble::connect;

/// Opens a store with an orchestration that has a tag, and a session.
async fn store(server: &Server) -> (PostgresStore, Claim) {
    let store = PostgresStore::open(&server.url()).await.unwrap();
    let new = NewTask {
        orchestration: true,
        tags: [("customer", "42")].into_iter().collect(),
        ..NewTask::new("order").unwrap()
    };
    let open = OpenSession::new("worker", std::time::Duration::from_secs(600));
    let outcomes = store.apply(vec![Write::Submit(Box::new(new)), Write::OpenSession(open)]).await.unwrap();
    let Outcome::SessionOpened(session) = outcomes[1] else { panic!("{outcomes:?}") };
    (store, Claim::any(session, 1))
}

/// Commits without waiting for the disk. Returns a query that tells whether the commit is on the
/// disk by then.
async fn commit(client: &Client) -> String {
    client.batch_execute("SELECT pg_logical_emit_message(true, 'test', 'something')").await.unwrap();
    let place: String = client.query_one("SELECT pg_current_wal_insert_lsn()::text", &[]).await.unwrap().get(0);
    format!("SELECT pg_current_wal_flush_lsn() >= '{place}'::pg_lsn")
}

/// Shows: T21
#[tokio::test]
async fn no_read_answers_before_what_it_saw_is_on_disk() {
    // The long delay ensures that no background process writes the commit to the disk.
    let Some(server) = Server::with_settings(&["wal_writer_delay=10s"]) else { return };
    let (store, claim) = store(&server).await;
    let client = connect(&server.url()).await;
    client.batch_execute("SET synchronous_commit = off").await.unwrap();
    let (task, filter) = (TaskId(1), TaskFilter::default);
    let (page, tags) = (Page { before: None, limit: 10 }, || TagPage { after: None, limit: 10 });
    let reads = [
        ("task", store.task(task).map(|read| read.map(drop)).boxed()),
        ("tasks", store.tasks(filter(), page).map(|read| read.map(drop)).boxed()),
        ("task_ids", store.task_ids(filter(), page).map(|read| read.map(drop)).boxed()),
        ("count", store.count(filter()).map(|read| read.map(drop)).boxed()),
        ("why", store.why(task).map(|read| read.map(drop)).boxed()),
        ("peek", store.peek(claim).map(|read| read.map(drop)).boxed()),
        ("queues", store.queues().map(|read| read.map(drop)).boxed()),
        ("pending_batches", store.pending_batches(PendingBatchSelection::default()).map(|read| read.map(drop)).boxed()),
        ("sessions", store.sessions().map(|read| read.map(drop)).boxed()),
        ("statistics", store.statistics().map(|read| read.map(drop)).boxed()),
        ("history", store.history(7).map(|read| read.map(drop)).boxed()),
        ("instance", store.instance(task).map(|read| read.map(drop)).boxed()),
        ("instance_history", store.instance_history(task, 0, 10).map(|read| read.map(drop)).boxed()),
        ("tag_values", store.tag_values("customer".into(), filter(), tags()).map(|read| read.map(drop)).boxed()),
        ("tag_keys", store.tag_keys(String::new(), tags()).map(|read| read.map(drop)).boxed()),
        ("events", store.events(EventCursor::default(), 10).map(|read| read.map(drop)).boxed()),
    ];
    for (name, read) in reads {
        let is_there = commit(&client).await;
        read.await.unwrap();
        assert!(client.query_one(&is_there, &[]).await.unwrap().get::<_, bool>(0), "{name}");
    }
}
