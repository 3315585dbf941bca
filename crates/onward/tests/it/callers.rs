//! Tasks from transactions of a caller that keeps tables in the store's file.

use std::sync::Arc;

use onward::{Engine, TaskState};
use onward_store::SqliteStore;
use onward_store::rusqlite::Connection;

use crate::fixture::{Gate, start, stop, task};

/// Shows: T1
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_idle_engine_runs_what_a_caller_has_committed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("onward.db");
    let store = Arc::new(SqliteStore::open(&path).await.unwrap());
    let engine = Engine::builder().store(store.clone()).open().await.unwrap();
    let gate = Gate::new();
    engine.handle("mail", gate.handler());
    let run = start(&engine);
    let connection = Connection::open(&path).unwrap();
    for _ in 0..10 {
        gate.open(1);
        connection.execute_batch("BEGIN IMMEDIATE").unwrap();
        let submitted = store.submit_in(&connection, &[task("mail")]).unwrap();
        connection.execute_batch("COMMIT").unwrap();
        let id = submitted.committed()[0].id();
        gate.entered(1).await;
        assert_eq!(engine.wait(id).await.unwrap().state, TaskState::Completed);
    }
    stop(&engine, run).await;
}
