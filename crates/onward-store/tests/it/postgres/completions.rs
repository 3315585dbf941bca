//! Completions of tasks with the function `onward_complete`, in transactions of any driver.

use std::sync::Arc;
use std::time::Duration;

use onward_store::{
    Claim, CompletionStatement, Dependency, Lease, ManualClock, NewTask, OpenSession, Outcome, PostgresOptions,
    PostgresStore, Refusal, Store, StoreReads, TaskId, TaskState, Write,
};
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, GenericClient, IsolationLevel};

use super::fixture::options;
use super::schemas::new_name;
use super::server::{open, url};
use super::trouble::{connect, in_time};

/// A store, and a connection that does not belong to it.
struct Shop {
    schema: String,
    store: PostgresStore,
    client: Client,
}

impl Shop {
    async fn open(options: PostgresOptions) -> Option<Self> {
        let url = url()?;
        let schema = new_name();
        let store = open(&url, options.schema(&schema)).await;
        Some(Self { schema, store, client: connect(&url).await })
    }

    /// Opens a store that gets no notifications and polls only once an hour.
    async fn deaf(options: PostgresOptions) -> Option<Self> {
        Self::open(options.listen(false).poll(Duration::from_secs(3600))).await
    }

    async fn claimed(&self, tasks: Vec<NewTask>, lease: Duration) -> Vec<Lease> {
        let mut writes: Vec<Write> = tasks.into_iter().map(|task| Write::Submit(Box::new(task))).collect();
        writes.push(Write::OpenSession(OpenSession::new("worker", lease)));
        let outcomes = self.store.apply(writes).await.unwrap();
        let Some(Outcome::SessionOpened(session)) = outcomes.last() else { panic!("{outcomes:?}") };
        let claimed = self.store.apply(vec![Write::Claim(Claim::any(*session, 100))]).await.unwrap().remove(0);
        let Outcome::Claimed(claimed) = claimed else { panic!("{claimed:?}") };
        claimed.tasks.iter().map(|task| task.lease).collect()
    }

    async fn claimed_one(&self, lease: Duration) -> Lease {
        self.claimed(vec![mail()], lease).await.remove(0)
    }

    fn completion(&self, lease: Lease) -> CompletionStatement {
        self.store.completion_statement(lease, Some("paid".into()))
    }

    async fn state(&self, task: TaskId) -> TaskState {
        self.store.task(task).await.unwrap().unwrap().state
    }

    /// Waits until the task has ended.
    async fn ended(&self, task: TaskId) {
        let mut changes = self.store.changes();
        in_time("the task has ended", async {
            while !self.state(task).await.is_ended() {
                changes.changed().await.unwrap();
            }
        })
        .await;
    }
}

fn mail() -> NewTask {
    NewTask::new("mail").unwrap()
}

const LONG: Duration = Duration::from_secs(600);

async fn run(client: &impl GenericClient, statement: &CompletionStatement) -> Result<(), tokio_postgres::Error> {
    let (task, session, claim) = (statement.task(), statement.session(), statement.claim());
    client.query(statement.text(), &[&task, &session, &claim, &statement.result()]).await.map(drop)
}

fn code(error: &tokio_postgres::Error) -> &SqlState {
    error.code().expect("the server says so")
}

/// Shows: T22
#[tokio::test]
async fn a_task_ends_with_the_commit_of_the_transaction_in_which_the_function_completed_it() {
    let Some(mut shop) = Shop::open(options()).await else { return };
    let lease = shop.claimed_one(LONG).await;
    let statement = shop.completion(lease);
    let transaction = shop.client.transaction().await.unwrap();
    run(&transaction, &statement).await.unwrap();
    transaction.rollback().await.unwrap();
    assert_eq!(shop.store.apply(vec![Write::Sweep]).await.unwrap().len(), 1);
    assert_eq!(shop.state(lease.task).await, TaskState::Running);
    let transaction = shop.client.transaction().await.unwrap();
    run(&transaction, &statement).await.unwrap();
    transaction.commit().await.unwrap();
    shop.ended(lease.task).await;
    let task = shop.store.task(lease.task).await.unwrap().unwrap();
    assert_eq!((task.state, task.result.as_deref()), (TaskState::Completed, Some(&b"paid"[..])));
}

/// The lease is the fence.
///
/// Shows: T22, B4
#[tokio::test]
async fn an_attempt_that_lost_its_lease_cannot_complete_by_the_function() {
    let clock = Arc::new(ManualClock::default());
    let Some(shop) = Shop::open(options().clock(clock.clone())).await else { return };
    let lease = shop.claimed_one(Duration::from_secs(2)).await;
    clock.advance(Duration::from_secs(3));
    shop.store.apply(vec![Write::Sweep]).await.unwrap();
    let error = run(&shop.client, &shop.completion(lease)).await.unwrap_err();
    assert_eq!(*code(&error), SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, "{error:?}");
    assert_eq!(shop.state(lease.task).await, TaskState::Waiting);
}

/// Shows: T22
#[tokio::test]
async fn the_claim_of_before_cannot_complete_what_its_session_has_claimed_again() {
    let Some(shop) = Shop::open(options()).await else { return };
    let lease = shop.claimed_one(LONG).await;
    let release = Write::Release { lease, after: Duration::ZERO };
    let again = Write::Claim(Claim::any(lease.session, 1));
    let outcomes = shop.store.apply(vec![release, again]).await.unwrap();
    let Some(Outcome::Claimed(claimed)) = outcomes.last() else { panic!("{outcomes:?}") };
    let now = claimed.tasks[0].lease;
    assert_eq!((now.task, now.session), (lease.task, lease.session));
    run(&shop.client, &shop.completion(lease)).await.unwrap_err();
    run(&shop.client, &shop.completion(now)).await.unwrap();
}

/// A sweep that would take the lease away processes the completion first.
///
/// Shows: T22
#[tokio::test]
async fn no_process_takes_the_lease_of_a_task_that_the_function_has_completed() {
    let clock = Arc::new(ManualClock::default());
    let Some(shop) = Shop::deaf(options().clock(clock.clone())).await else { return };
    let lease = shop.claimed_one(Duration::from_secs(2)).await;
    run(&shop.client, &shop.completion(lease)).await.unwrap();
    clock.advance(Duration::from_secs(3));
    shop.store.apply(vec![Write::Sweep]).await.unwrap();
    assert_eq!(shop.state(lease.task).await, TaskState::Completed);
}

/// The transaction that processes the completion fails once and is retried.
///
/// Shows: T22, B4
#[tokio::test]
async fn no_process_takes_the_lease_of_a_completed_task_when_consuming_the_completion_fails() {
    let clock = Arc::new(ManualClock::default());
    let Some(shop) = Shop::deaf(options().clock(clock.clone())).await else { return };
    let Shop { schema, store, client, .. } = &shop;
    let lease = shop.claimed_one(Duration::from_secs(2)).await;
    let trouble = format!(
        "CREATE SEQUENCE {schema}.troubles; \
         CREATE FUNCTION {schema}.trouble() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
           IF nextval('{schema}.troubles') <= 1 THEN RAISE EXCEPTION 'on purpose' USING ERRCODE = '40001'; END IF; RETURN NULL; END $$; \
         CREATE CONSTRAINT TRIGGER trouble AFTER INSERT ON {schema}.history DEFERRABLE INITIALLY DEFERRED \
           FOR EACH ROW EXECUTE FUNCTION {schema}.trouble()"
    );
    client.batch_execute(&trouble).await.unwrap();
    run(client, &shop.completion(lease)).await.unwrap();
    clock.advance(Duration::from_secs(3));
    store.apply(vec![Write::Sweep]).await.unwrap();
    assert_eq!(shop.state(lease.task).await, TaskState::Completed);
    let troubles = client.query_one(&format!("SELECT last_value FROM {schema}.troubles"), &[]).await.unwrap();
    assert_eq!(troubles.get::<_, i64>(0), 2, "it failed, and was tried again");
}

/// The store's writer has the claimed task in its row cache, and reads it again.
///
/// Shows: T22
#[tokio::test]
async fn the_process_that_has_the_lease_cannot_use_it_any_more_either() {
    let Some(shop) = Shop::deaf(options()).await else { return };
    let lease = shop.claimed_one(LONG).await;
    run(&shop.client, &shop.completion(lease)).await.unwrap();
    let outcomes = shop.store.apply(vec![Write::Complete { lease, result: None }]).await.unwrap();
    assert_eq!(outcomes, [Outcome::Refused(Refusal::LeaseLost(lease))]);
    let task = shop.store.task(lease.task).await.unwrap().unwrap();
    assert_eq!(task.result.as_deref(), Some(&b"paid"[..]));
}

/// Shows: T22
#[tokio::test]
async fn a_callers_transaction_consumes_completions_and_its_rollback_restores_them() {
    let Some(mut shop) = Shop::deaf(options()).await else { return };
    let lease = shop.claimed_one(LONG).await;
    run(&shop.client, &shop.completion(lease)).await.unwrap();
    let transaction = shop.client.transaction().await.unwrap();
    let applied = shop.store.submit_in(&transaction, vec![mail()]).await.unwrap();
    let ended = format!("SELECT count(*) FROM {}.history WHERE id = $1", shop.schema);
    assert_eq!(transaction.query_one(&ended, &[&lease.task.0]).await.unwrap().get::<_, i64>(0), 1);
    drop(applied);
    transaction.rollback().await.unwrap();
    shop.store.apply(vec![Write::Sweep]).await.unwrap();
    assert_eq!(shop.state(lease.task).await, TaskState::Completed);
}

/// Shows: T22
#[tokio::test]
async fn a_task_is_completed_by_the_function_once() {
    let Some(mut shop) = Shop::deaf(options()).await else { return };
    let statement = shop.completion(shop.claimed_one(LONG).await);
    let transaction = shop.client.transaction().await.unwrap();
    run(&transaction, &statement).await.unwrap();
    run(&transaction, &statement).await.unwrap_err();
    transaction.rollback().await.unwrap();
    run(&shop.client, &statement).await.unwrap();
    let error = run(&shop.client, &statement).await.unwrap_err();
    assert_eq!(*code(&error), SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, "{error:?}");
}

/// The number of completions is larger than the number processed at a time in a build for tests.
///
/// Shows: T22
#[tokio::test]
async fn whatever_many_a_transaction_completes_ends_before_anything_else_happens() {
    let Some(mut shop) = Shop::deaf(options()).await else { return };
    let leases = shop.claimed(vec![mail(); 5], LONG).await;
    let statements: Vec<CompletionStatement> = leases.iter().map(|lease| shop.completion(*lease)).collect();
    let transaction = shop.client.transaction().await.unwrap();
    for statement in &statements {
        run(&transaction, statement).await.unwrap();
    }
    transaction.commit().await.unwrap();
    let writes = leases.iter().map(|lease| Write::Release { lease: *lease, after: Duration::ZERO }).collect();
    let outcomes = shop.store.apply(writes).await.unwrap();
    assert!(outcomes.iter().all(|outcome| matches!(outcome, Outcome::Refused(Refusal::LeaseLost(_)))), "{outcomes:?}");
}

/// Shows: T22
#[tokio::test]
async fn what_depends_on_a_task_that_the_function_completed_can_begin() {
    let Some(shop) = Shop::open(options()).await else { return };
    let lease = shop.claimed_one(LONG).await;
    let mut after = mail();
    after.depends_on.tasks = vec![Dependency::Task(lease.task)];
    shop.store.apply(vec![Write::Submit(Box::new(after))]).await.unwrap();
    let mut changes = shop.store.changes();
    run(&shop.client, &shop.completion(lease)).await.unwrap();
    let claim = Claim::any(lease.session, 1);
    in_time("the other can begin", async {
        while shop.store.peek(claim.clone()).await.unwrap().is_none() {
            changes.changed().await.unwrap();
        }
    })
    .await;
}

/// Shows: T22
#[tokio::test]
async fn the_function_refuses_a_transaction_that_does_not_see_what_others_commit() {
    let Some(mut shop) = Shop::open(options()).await else { return };
    let lease = shop.claimed_one(LONG).await;
    let statement = shop.completion(lease);
    let builder = shop.client.build_transaction().isolation_level(IsolationLevel::RepeatableRead);
    let transaction = builder.start().await.unwrap();
    let error = run(&transaction, &statement).await.unwrap_err();
    assert_eq!(*code(&error), SqlState::INVALID_PARAMETER_VALUE, "{error:?}");
}

/// Shows: T22
#[tokio::test]
async fn the_function_refuses_a_result_above_the_limit() {
    let Some(shop) = Shop::open(options()).await else { return };
    let lease = shop.claimed_one(LONG).await;
    let statement = |bytes: usize| shop.store.completion_statement(lease, Some(vec![0; bytes].into()));
    let error = run(&shop.client, &statement(1024 * 1024 + 1)).await.unwrap_err();
    assert_eq!(*code(&error), SqlState::INVALID_PARAMETER_VALUE, "{error:?}");
    run(&shop.client, &statement(1024 * 1024)).await.unwrap();
    shop.ended(lease.task).await;
}

/// The server has already accepted the result under its own limit.
///
/// Shows: T22
#[tokio::test]
async fn a_process_with_a_smaller_limit_takes_a_result_in_that_the_function_took() {
    let Some(shop) = Shop::open(options().payload_limit(10)).await else { return };
    let lease = shop.claimed_one(LONG).await;
    run(&shop.client, &shop.store.completion_statement(lease, Some(vec![1; 100].into()))).await.unwrap();
    shop.ended(lease.task).await;
    assert_eq!(shop.store.task(lease.task).await.unwrap().unwrap().result.into_bytes().unwrap().len(), 100);
}

/// An idle transaction would keep the lock and block all others.
///
/// Shows: T22
#[tokio::test]
async fn a_transaction_may_not_stand_still_for_long_behind_the_function() {
    let Some(mut shop) = Shop::open(options()).await else { return };
    let lease = shop.claimed_one(LONG).await;
    let statement = shop.completion(lease);
    for (set, expected) in [("0", "5s"), ("1min", "5s"), ("700ms", "700ms")] {
        let transaction = shop.client.transaction().await.unwrap();
        let settings = format!("SET LOCAL idle_in_transaction_session_timeout = '{set}'");
        transaction.batch_execute(&settings).await.unwrap();
        run(&transaction, &statement).await.unwrap();
        let row = transaction.query_one("SHOW idle_in_transaction_session_timeout", &[]).await.unwrap();
        assert_eq!(row.get::<_, &str>(0), expected);
        transaction.rollback().await.unwrap();
    }
}

/// Shows: T22, B11
#[tokio::test]
async fn a_role_that_was_given_the_function_may_complete_and_another_may_not() {
    let Some(shop) = Shop::open(options()).await else { return };
    let Shop { schema, client, .. } = &shop;
    let lease = shop.claimed_one(LONG).await;
    let role = format!("cashier_{schema}");
    client
        .batch_execute(&format!("CREATE ROLE {role}; GRANT USAGE ON SCHEMA {schema} TO {role}; SET ROLE {role}"))
        .await
        .unwrap();
    let error = run(client, &shop.completion(lease)).await.unwrap_err();
    assert_eq!(*code(&error), SqlState::INSUFFICIENT_PRIVILEGE, "{error:?}");
    let grant = format!("RESET ROLE; GRANT EXECUTE ON FUNCTION {schema}.onward_complete TO {role}; SET ROLE {role}");
    client.batch_execute(&grant).await.unwrap();
    run(client, &shop.completion(lease)).await.unwrap();
    shop.ended(lease.task).await;
}
