//! Handlers that complete their tasks in transactions of their own.

use onward_store::StoreReads;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use onward::handlers::Finished;
use onward::store::SqliteStore;
use onward::{
    Backoff, Context, Engine, EngineBuilder, Failure, Output, RetryPolicy, Task, TaskId, TaskRecord, TaskState,
};
use onward_store::rusqlite::{Connection, Transaction};
use serde::{Deserialize, Serialize};

use crate::fixture::{start, stop, submit, task};

/// A shop that keeps its payments in the file of the engine's store.
struct Shop {
    directory: tempfile::TempDir,
    store: Arc<SqliteStore>,
}

impl Shop {
    async fn open() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let store = Arc::new(SqliteStore::open(directory.path().join("shop.db")).await.unwrap());
        store.connect().unwrap().execute_batch("CREATE TABLE shop_payment (task INTEGER NOT NULL)").unwrap();
        Self { directory, store }
    }

    fn builder(&self) -> EngineBuilder {
        let policy = RetryPolicy { attempts: 3, backoff: Backoff::Constant { delay: Duration::ZERO } };
        Engine::builder().store(self.store.clone()).concurrency(4).retry(policy)
    }

    async fn engine(&self) -> Engine {
        self.builder().open().await.unwrap()
    }

    fn payments(&self) -> usize {
        let connection = Connection::open(self.directory.path().join("shop.db")).unwrap();
        connection.query_row("SELECT count(*) FROM shop_payment", [], |row| row.get(0)).unwrap()
    }
}

fn pay(transaction: &Transaction<'_>, task: TaskId) -> Result<(), Failure> {
    transaction.execute("INSERT INTO shop_payment VALUES (?)", [task.0])?;
    Ok(())
}

async fn paid(context: Context) -> Result<Finished, Failure> {
    let id = context.id();
    context.finish(move |transaction| pay(transaction, id).map(|()| "paid")).await
}

async fn drained(engine: &Engine, id: TaskId) -> TaskRecord {
    engine.drain().await.unwrap();
    engine.wait(id).await.unwrap()
}

/// Shows: T22
#[tokio::test]
async fn a_task_is_finished_with_what_its_handler_wrote_and_counts_as_completed() {
    let shop = Shop::open().await;
    let engine = shop.engine().await;
    engine.handle("pay", paid);
    let id = submit(&engine, "pay").await;
    let summary = engine.drain().await.unwrap();
    assert_eq!((summary.completed, summary.lost, shop.payments()), (1, 0, 1));
    assert_eq!(engine.wait(id).await.unwrap().result.as_deref(), Some(b"paid".as_slice()));
}

/// Shows: T22
#[tokio::test]
async fn attempts_that_fail_leave_no_effect_and_the_last_one_leaves_one() {
    let shop = Shop::open().await;
    let engine = shop.engine().await;
    engine.handle("pay", |context: Context| async move {
        let (id, attempt) = (context.id(), context.attempt());
        context
            .finish(move |transaction| {
                pay(transaction, id)?;
                if attempt < 3 { Err(Failure::retryable("not yet")) } else { Ok(()) }
            })
            .await
    });
    let id = submit(&engine, "pay").await;
    let record = drained(&engine, id).await;
    assert_eq!((record.state, record.attempts, shop.payments()), (TaskState::Completed, 3, 1));
}

/// Shows: T22
#[tokio::test]
async fn a_panic_after_the_commit_does_not_undo_the_end() {
    let shop = Shop::open().await;
    let engine = shop.engine().await;
    engine.handle("pay", |context: Context| async move {
        let _finished = paid(context).await?;
        if std::hint::black_box(true) {
            panic!("too late to matter");
        }
        Ok(())
    });
    let id = submit(&engine, "pay").await;
    let record = drained(&engine, id).await;
    assert_eq!((record.state, record.errors.len(), shop.payments()), (TaskState::Completed, 0, 1));
}

/// The first attempt loses its session before it completes. Its writes are rolled back, and only
/// the second attempt counts.
///
/// Shows: T22
#[tokio::test]
async fn an_attempt_that_lost_its_lease_leaves_no_effect() {
    let shop = Shop::open().await;
    let engine = shop.engine().await;
    let held_up = Arc::new(AtomicBool::new(false));
    let refused = Arc::new(AtomicU32::new(0));
    let count = refused.clone();
    engine.handle("pay", move |context: Context| {
        let (held_up, count) = (held_up.clone(), count.clone());
        async move {
            // Another attempt may have started before this one is rejected.
            if held_up.swap(true, Ordering::Relaxed) {
                return paid(context).await;
            }
            close_sessions(&context.engine()).await;
            let failure = paid(context).await.unwrap_err();
            count.fetch_add(1, Ordering::Relaxed);
            Err(failure)
        }
    });
    let id = submit(&engine, "pay").await;
    let run = start(&engine);
    assert_eq!(engine.wait(id).await.unwrap().state, TaskState::Completed);
    stop(&engine, run).await;
    assert_eq!((refused.load(Ordering::Relaxed), shop.payments()), (1, 1));
}

/// Closes all sessions, as if the process had been stopped for longer than its lease.
async fn close_sessions(engine: &Engine) {
    for session in engine.store().sessions().await.unwrap() {
        let close = onward_store::Write::CloseSession { session: session.id };
        engine.store().apply(vec![close]).await.unwrap();
    }
}

/// Shows: T22
#[tokio::test]
async fn what_is_spawned_is_submitted_with_the_end() {
    let shop = Shop::open().await;
    let engine = shop.engine().await;
    engine.handle("pay", |context: Context| async move {
        context.spawn_task(task("ship"));
        context.progress_message(0.9, "paying");
        paid(context).await
    });
    engine.handle("ship", |_| async { Ok(()) });
    let id = submit(&engine, "pay").await;
    let record = drained(&engine, id).await;
    assert_eq!(record.progress.and_then(|progress| progress.message).as_deref(), Some("paying"));
    assert_eq!(engine.store().task(TaskId(2)).await.unwrap().unwrap().parent, Some(id));
}

/// Shows: T22
#[tokio::test]
async fn a_handler_may_finish_in_a_transaction_on_a_connection_of_its_own() {
    let shop = Shop::open().await;
    let engine = shop.engine().await;
    let store = shop.store.clone();
    engine.handle("pay", move |context: Context| {
        let store = store.clone();
        async move {
            let mut connection = store.connect()?;
            let transaction = connection.transaction()?;
            pay(&transaction, context.id())?;
            let finishing = context.finish_in(&transaction, "paid")?;
            transaction.commit()?;
            Ok(finishing.committed())
        }
    });
    let id = submit(&engine, "pay").await;
    assert_eq!((drained(&engine, id).await.state, shop.payments()), (TaskState::Completed, 1));
}

/// Shows: T22
#[tokio::test]
async fn a_caller_that_rolls_back_ends_the_attempt_as_its_handler_answers() {
    let shop = Shop::open().await;
    let engine = shop.engine().await;
    let store = shop.store.clone();
    engine.handle("pay", move |context: Context| {
        let store = store.clone();
        async move {
            let mut connection = store.connect()?;
            let transaction = connection.transaction()?;
            pay(&transaction, context.id())?;
            drop(context.finish_in(&transaction, "paid")?);
            transaction.rollback()?;
            Err::<(), _>(Failure::permanent("declined"))
        }
    });
    let id = submit(&engine, "pay").await;
    let record = drained(&engine, id).await;
    assert_eq!((record.state, &*record.errors[0].message), (TaskState::Failed, "declined"));
    assert_eq!(shop.payments(), 0);
}

#[derive(Serialize, Deserialize)]
struct Payment {
    amount: u32,
}

impl Task for Payment {
    const KIND: &'static str = "payment";
    type Output = u32;
}

/// Shows: T22, T20
#[tokio::test]
async fn a_typed_task_is_finished_with_a_typed_result() {
    let shop = Shop::open().await;
    let engine = shop.engine().await;
    engine.register(|payment: Payment, context: Context| async move {
        let (id, amount) = (context.id(), payment.amount);
        let _finished =
            context.finish(move |transaction| pay(transaction, id).and_then(|()| Output::json(&amount))).await?;
        Ok(amount)
    });
    let handle = engine.submit(Payment { amount: 7 }).await.unwrap();
    engine.drain().await.unwrap();
    assert_eq!((handle.wait().await.unwrap(), shop.payments()), (7, 1));
}

/// Shows: T22
#[tokio::test]
async fn a_store_that_is_in_no_file_says_so() {
    let engine = Engine::builder().memory().open().await.unwrap();
    engine.handle("pay", paid);
    let id = submit(&engine, "pay").await;
    let record = drained(&engine, id).await;
    assert_eq!(record.state, TaskState::Failed);
    assert!(record.errors[0].message.contains("a SQLite file"), "{}", record.errors[0].message);
}
