//! Handlers that complete their tasks in transactions on the store's server, and tasks that other
//! programs submit there. `cargo xtask test` starts a server.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use onward::handlers::Finished;
use onward::store::{PostgresStore, SqliteStore};
use onward::{Backoff, Context, Engine, EngineBuilder, Failure, NewTask, RetryPolicy, TaskState};
use onward_store::Durability;
use onward_store::tokio_postgres::types::ToSql;
use onward_store::tokio_postgres::{Client, NoTls, connect};

use crate::fixture::{start, stop, submit};

/// A shop that keeps its payments in the database of the engine's store.
#[derive(Clone)]
struct Shop {
    url: String,
    schema: String,
    store: Arc<PostgresStore>,
}

impl Shop {
    async fn open() -> Option<Self> {
        static SCHEMAS: AtomicU64 = AtomicU64::new(0);
        let url = std::env::var("ONWARD_POSTGRES_URL").ok();
        let required = std::env::var("ONWARD_REQUIRE_BACKENDS").unwrap_or_default();
        let is_required = required.split(',').any(|name| matches!(name.trim(), "all" | "postgres"));
        assert!(url.is_some() || !is_required, "PostgreSQL is required; run the tests with `cargo xtask test`");
        if url.is_none() {
            println!("not tested: ONWARD_POSTGRES_URL is not set; `cargo xtask test` starts PostgreSQL");
        }
        let url = url?;
        let schema = format!("f{}_{}", std::process::id(), SCHEMAS.fetch_add(1, Ordering::Relaxed));
        let options = PostgresStore::options().schema(&schema).durability(Durability::Normal);
        let store = Arc::new(options.open(&url).await.unwrap());
        let shop = Self { url, schema, store };
        let table = format!("CREATE TABLE {}.shop_payment (task bigint NOT NULL)", shop.schema);
        shop.client().await.batch_execute(&table).await.unwrap();
        Some(shop)
    }

    async fn client(&self) -> Client {
        let (client, connection) = connect(&self.url, NoTls).await.unwrap();
        tokio::spawn(connection);
        client
    }

    fn builder(&self) -> EngineBuilder {
        let policy = RetryPolicy { attempts: 3, backoff: Backoff::Constant { delay: Duration::ZERO } };
        Engine::builder().store(self.store.clone()).concurrency(4).retry(policy)
    }

    async fn payments(&self) -> i64 {
        let text = format!("SELECT count(*) FROM {}.shop_payment", self.schema);
        self.client().await.query_one(&text, &[]).await.unwrap().get(0)
    }

    /// Pays and completes the task. Fails after both in every attempt before the last.
    async fn pay(self, context: Context, last: u32) -> Result<Finished, Failure> {
        let mut client = self.client().await;
        let transaction = client.transaction().await?;
        let insert = format!("INSERT INTO {}.shop_payment VALUES ($1)", self.schema);
        transaction.execute(&insert, &[&context.id().0]).await?;
        let finishing = context.finish_on(&transaction, "paid").await?;
        if context.attempt() < last {
            return Err(Failure::retryable("it did not come to the commit"));
        }
        transaction.commit().await?;
        Ok(finishing.committed())
    }

    /// Pays and completes the task with only the statement, as any driver can. Fails after both in
    /// every attempt before the last.
    async fn pay_by_statement(self, context: Context, last: u32) -> Result<Finished, Failure> {
        let mut client = self.client().await;
        let transaction = client.transaction().await?;
        let insert = format!("INSERT INTO {}.shop_payment VALUES ($1)", self.schema);
        transaction.execute(&insert, &[&context.id().0]).await?;
        let finishing = context.finish_by_statement("paid").await?;
        let statement = finishing.statement();
        let values: [&(dyn ToSql + Sync); 4] =
            [&statement.task(), &statement.session(), &statement.claim(), &statement.result()];
        transaction.execute(statement.text(), &values).await?;
        if context.attempt() < last {
            return Err(Failure::retryable("it did not come to the commit"));
        }
        transaction.commit().await?;
        Ok(finishing.committed())
    }
}

/// Shows: T22
#[tokio::test]
async fn a_task_on_the_server_is_finished_with_what_its_handler_wrote() {
    let Some(shop) = Shop::open().await else { return };
    let engine = shop.builder().open().await.unwrap();
    let paying = shop.clone();
    engine.handle("pay", move |context| paying.clone().pay(context, 1));
    let id = submit(&engine, "pay").await;
    let summary = engine.drain().await.unwrap();
    assert_eq!((summary.completed, summary.lost, shop.payments().await), (1, 0, 1));
    assert_eq!(engine.wait(id).await.unwrap().result.as_deref(), Some(b"paid".as_slice()));
}

/// Shows: T22
#[tokio::test]
async fn attempts_that_do_not_commit_leave_no_effect_on_the_server_and_the_last_one_leaves_one() {
    let Some(shop) = Shop::open().await else { return };
    let engine = shop.builder().open().await.unwrap();
    let paying = shop.clone();
    engine.handle("pay", move |context| paying.clone().pay(context, 3));
    let id = submit(&engine, "pay").await;
    engine.drain().await.unwrap();
    let record = engine.wait(id).await.unwrap();
    assert_eq!((record.state, record.attempts, shop.payments().await), (TaskState::Completed, 3, 1));
}

/// Shows: T22
#[tokio::test]
async fn a_task_is_finished_by_the_statement_with_what_its_handler_wrote() {
    let Some(shop) = Shop::open().await else { return };
    let engine = shop.builder().open().await.unwrap();
    let paying = shop.clone();
    engine.handle("pay", move |context| paying.clone().pay_by_statement(context, 3));
    let id = submit(&engine, "pay").await;
    let summary = engine.drain().await.unwrap();
    let record = engine.wait(id).await.unwrap();
    assert_eq!((record.state, record.result.as_deref()), (TaskState::Completed, Some(&b"paid"[..])));
    assert_eq!((summary.completed, record.attempts, shop.payments().await), (1, 3, 1));
}

/// Shows: T22
#[tokio::test]
async fn the_progress_of_an_attempt_that_is_finished_by_the_statement_is_kept() {
    let Some(shop) = Shop::open().await else { return };
    let engine = shop.builder().open().await.unwrap();
    let paying = shop.clone();
    engine.handle("pay", move |context: Context| {
        context.progress_message(0.5, "at the till");
        paying.clone().pay_by_statement(context, 1)
    });
    let id = submit(&engine, "pay").await;
    engine.drain().await.unwrap();
    let record = engine.wait(id).await.unwrap();
    assert_eq!(record.progress.and_then(|progress| progress.message).as_deref(), Some("at the till"));
}

/// The spawned tasks would be separated from the end of the attempt.
///
/// Shows: T22
#[tokio::test]
async fn an_attempt_that_has_spawned_tasks_is_not_finished_by_the_statement() {
    let Some(shop) = Shop::open().await else { return };
    let engine = shop.builder().open().await.unwrap();
    let paying = shop.clone();
    engine.handle("pay", move |context: Context| {
        let paying = paying.clone();
        async move {
            context.spawn_task(NewTask::new("mail")?);
            paying.pay_by_statement(context, 1).await
        }
    });
    let id = submit(&engine, "pay").await;
    engine.drain().await.unwrap();
    let record = engine.wait(id).await.unwrap();
    assert_eq!((record.state, shop.payments().await), (TaskState::Failed, 0));
    assert!(record.errors[0].message.contains("onward_submit"), "{record:?}");
}

/// Shows: T22
#[tokio::test]
async fn a_panic_after_the_commit_on_the_server_does_not_undo_the_end() {
    let Some(shop) = Shop::open().await else { return };
    let engine = shop.builder().open().await.unwrap();
    let paying = shop.clone();
    let panics = Arc::new(AtomicBool::new(true));
    engine.handle("pay", move |context| {
        let (paying, panics) = (paying.clone(), panics.clone());
        async move {
            let finished = paying.pay(context, 1).await?;
            assert!(!panics.load(Ordering::Relaxed), "too late to matter");
            Ok::<_, Failure>(finished)
        }
    });
    let id = submit(&engine, "pay").await;
    engine.drain().await.unwrap();
    let record = engine.wait(id).await.unwrap();
    assert_eq!((record.state, record.errors.len(), shop.payments().await), (TaskState::Completed, 0, 1));
}

/// Shows: T22
#[tokio::test]
async fn a_task_of_a_file_cannot_be_finished_on_a_server() {
    let Some(shop) = Shop::open().await else { return };
    let store = Arc::new(SqliteStore::options().open_in_memory().await.unwrap());
    let engine = Engine::builder().store(store).open().await.unwrap();
    let paying = shop.clone();
    engine.handle("pay", move |context| paying.clone().pay(context, 1));
    let id = submit(&engine, "pay").await;
    engine.drain().await.unwrap();
    let record = engine.wait(id).await.unwrap();
    assert_eq!((record.state, shop.payments().await), (TaskState::Failed, 0));
    assert!(record.errors[0].message.contains("on PostgreSQL"), "{record:?}");
}

/// The notification of the commit starts the task. The store itself would poll only half a minute
/// later.
///
/// Shows: T1, Q5
#[tokio::test]
async fn a_task_submitted_by_sql_starts_on_an_idle_engine_at_its_commit() {
    let Some(shop) = Shop::open().await else { return };
    let engine = shop.builder().open().await.unwrap();
    let (began, mut begins) = tokio::sync::mpsc::unbounded_channel();
    engine.handle("mail", move |context: Context| {
        let began = began.clone();
        async move { began.send(context.payload().to_vec()).map_err(|_| Failure::permanent("nobody listens")) }
    });
    let run = start(&engine);
    let mut client = shop.client().await;
    let submit = format!("SELECT {}.onward_submit('mail', $1)", shop.schema);
    for number in 0..5 {
        let transaction = client.transaction().await.unwrap();
        transaction.execute(&submit, &[&number.to_string()]).await.unwrap();
        transaction.commit().await.unwrap();
        let begun = tokio::time::timeout(Duration::from_secs(10), begins.recv()).await.expect("it starts by itself");
        assert_eq!(begun.unwrap(), number.to_string().into_bytes());
    }
    stop(&engine, run).await;
}
