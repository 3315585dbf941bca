//! An engine whose server is down for longer than its calls wait. `cargo xtask test` sets the
//! location of PostgreSQL.

use std::sync::Arc;
use std::time::Duration;

use onward::store::PostgresStore;
use onward::{Engine, Error, Failure, Store, TaskState};
use onward_testkit::postgres::Server;
use tokio::task::JoinHandle;

use crate::fixture::{start, stop, submit, task};

/// An engine at work on a server, with a very short retry budget.
struct Impatient {
    server: Server,
    engine: Engine,
    run: JoinHandle<()>,
}

impl Impatient {
    async fn start() -> Option<Self> {
        let server = Server::start()?;
        let options = PostgresStore::options().retry_for(Duration::from_millis(20));
        let store: Arc<dyn Store> = Arc::new(options.open(&server.url()).await.unwrap());
        let engine = Engine::builder().store(store).open().await.unwrap();
        engine.handle("work", |_| async { Ok::<(), Failure>(()) });
        let run = start(&engine);
        let works = Self { server, engine, run };
        works.assert_works().await;
        Some(works)
    }

    /// Waits until a submit is accepted, and then until its task is done.
    async fn assert_works(&self) {
        while self.engine.submit_task(task("work")).await.is_err() {
            tokio::task::yield_now().await;
        }
        let record = self.engine.wait(submit(&self.engine, "work").await).await.unwrap();
        assert_eq!(record.state, TaskState::Completed);
    }

    /// Returns the error of callers when the server accepts no more calls.
    async fn error(&self) -> Error {
        loop {
            if let Err(error) = self.engine.submit_task(task("work")).await {
                return error;
            }
        }
    }
}

/// Shows: T21, B4
#[tokio::test]
async fn an_engine_goes_on_by_itself_when_its_server_is_back() {
    let Some(works) = Impatient::start().await else { return };
    works.server.stop("immediate");
    let error = works.error().await;
    assert!(error.is_transient(), "{error:?}");
    works.server.start_stopped();
    works.assert_works().await;
    stop(&works.engine, works.run).await;
}

/// Shows: T21, B4
#[tokio::test]
async fn an_engine_goes_on_by_itself_when_its_server_takes_writes_again() {
    let Some(works) = Impatient::start().await else { return };
    works.server.configure("default_transaction_read_only = on\n");
    works.server.reload();
    let error = works.error().await;
    assert!(error.is_read_only(), "{error:?}");
    works.server.configure("default_transaction_read_only = off\n");
    works.server.reload();
    works.assert_works().await;
    stop(&works.engine, works.run).await;
}
