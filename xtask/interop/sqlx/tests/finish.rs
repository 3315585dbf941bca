//! Tests a handler that pays and completes its task in one transaction of sqlx. `cargo xtask test
//! --all` starts the server.

use std::sync::Arc;
use std::time::Duration;

use onward::handlers::Finished;
use onward::store::PostgresStore;
use onward::{Backoff, Context, Engine, Failure, NewTask, RetryPolicy, TaskState};
use sqlx::{Connection as _, Executor as _, PgConnection};

const SCHEMA: &str = "interop_sqlx";

fn url() -> String {
    std::env::var("ONWARD_POSTGRES_URL").expect("ONWARD_POSTGRES_URL; run this with `cargo xtask test --all`")
}

/// Pays and completes the task in one transaction. Fails after both, before the commit, in the
/// first two attempts.
async fn pay(context: Context) -> Result<Finished, Failure> {
    let mut connection = PgConnection::connect(&url()).await?;
    let mut transaction = connection.begin().await?;
    let insert = format!("INSERT INTO {SCHEMA}.shop_payment VALUES ($1)");
    sqlx::query(&insert).bind(context.id().0).execute(&mut *transaction).await?;
    let finishing = context.finish_by_statement("paid").await?;
    let statement = finishing.statement();
    sqlx::query(statement.text())
        .bind(statement.task())
        .bind(statement.session())
        .bind(statement.claim())
        .bind(statement.result())
        .execute(&mut *transaction)
        .await?;
    if context.attempt() < 3 {
        return Err(Failure::retryable("the first attempts do not commit"));
    }
    transaction.commit().await?;
    Ok(finishing.committed())
}

/// Shows: T22
#[tokio::test]
async fn a_task_is_finished_with_what_its_handler_wrote_through_sqlx() {
    let store = Arc::new(PostgresStore::options().schema(SCHEMA).open(&url()).await.unwrap());
    let mut connection = PgConnection::connect(&url()).await.unwrap();
    let table = format!("CREATE TABLE {SCHEMA}.shop_payment (task bigint NOT NULL)");
    connection.execute(table.as_str()).await.unwrap();
    let policy = RetryPolicy { attempts: 3, backoff: Backoff::Constant { delay: Duration::ZERO } };
    let engine = Engine::builder().store(store).retry(policy).open().await.unwrap();
    engine.handle("pay", pay);
    let id = engine.submit_task(NewTask::new("pay").unwrap()).await.unwrap().id();
    let summary = engine.drain().await.unwrap();
    let record = engine.wait(id).await.unwrap();
    assert_eq!((record.state, record.result.as_deref()), (TaskState::Completed, Some(&b"paid"[..])));
    let count = format!("SELECT count(*) FROM {SCHEMA}.shop_payment");
    let payments: i64 = sqlx::query_scalar(&count).fetch_one(&mut connection).await.unwrap();
    assert_eq!((summary.completed, record.attempts, payments), (1, 3, 1));
}
