//! Roles that do not own the store. The error names the missing right, and granting it is enough.

use std::time::Duration;

use onward_store::{
    Claim, NewTask, OpenSession, Outcome, PostgresStore, Prune, SessionId, Store, StoreReads, TaskFilter, TaskState,
    Write,
};
use tokio_postgres::{Client, NoTls};

use super::fixture::options;
use super::schemas::new_name;
use super::server::{open, url};

/// A role with no right except to log in, and a schema.
struct Stranger {
    schema: String,
    role: String,
    /// The URL for the role.
    url: String,
    owner: Client,
    owner_url: String,
}

impl Stranger {
    async fn new() -> Option<Self> {
        let owner_url = url()?;
        let (owner, connection) = tokio_postgres::connect(&owner_url, NoTls).await.unwrap();
        tokio::spawn(connection);
        let schema = new_name();
        let role = format!("role_{schema}");
        owner.batch_execute(&format!("CREATE ROLE {role} LOGIN")).await.unwrap();
        let url = owner_url.replace("onward@", &format!("{role}@"));
        Some(Self { schema, role, url, owner, owner_url })
    }

    async fn owned_store(&self) -> PostgresStore {
        open(&self.owner_url, options().schema(&self.schema)).await
    }

    async fn missing(&self) -> Vec<String> {
        options().schema(&self.schema).missing_rights(&self.url).await.unwrap()
    }

    async fn give(&self, statements: &[String]) {
        for statement in statements {
            self.owner.batch_execute(statement).await.unwrap();
        }
    }

    async fn store(&self) -> PostgresStore {
        open(&self.url, options().schema(&self.schema)).await
    }
}

async fn session(store: &PostgresStore) -> SessionId {
    let open = Write::OpenSession(OpenSession::new("worker", Duration::from_secs(600)));
    let Outcome::SessionOpened(session) = store.apply(vec![open]).await.unwrap()[0] else { panic!("no session") };
    session
}

/// Uses every table and sequence: tasks are submitted, one of them through the inbox, run, end, and
/// are pruned.
async fn work(store: &PostgresStore) {
    let session = session(store).await;
    let claim = Write::Claim(Claim::any(session, 10));
    let Outcome::Claimed(claimed) = store.apply(vec![claim]).await.unwrap().remove(0) else { panic!("no claim") };
    let complete = |task: &onward_store::ClaimedTask| Write::Complete { lease: task.lease, result: None };
    let mut writes: Vec<Write> = claimed.tasks.iter().map(complete).collect();
    writes.push(Write::Prune(Prune { older_than: None, keep: Some(1), limit: 10 }));
    let outcomes = store.apply(writes).await.unwrap();
    assert_eq!(outcomes, [Outcome::Done, Outcome::Done, Outcome::Removed { tasks: 1, more: false }]);
    let ended = TaskFilter { states: vec![TaskState::Completed], ..TaskFilter::default() };
    assert_eq!(store.count(ended).await.unwrap(), 1);
}

/// Shows: B11
#[tokio::test]
async fn what_a_role_lacks_is_said_as_statements_and_when_they_have_run_it_can_do_everything() {
    let Some(stranger) = Stranger::new().await else { return };
    let Stranger { schema, role, .. } = &stranger;
    let owned = stranger.owned_store().await;
    owned.apply(vec![Write::Submit(Box::new(NewTask::new("mail").unwrap()))]).await.unwrap();
    drop(owned);
    let missing = stranger.missing().await;
    assert_eq!(missing[0], format!("GRANT USAGE ON SCHEMA {schema} TO {role}"));
    assert!(missing.contains(&format!("GRANT SELECT, INSERT, UPDATE, DELETE ON TABLE {schema}.task TO {role}")));
    assert!(missing.contains(&format!("GRANT SELECT, UPDATE ON SEQUENCE {schema}.last_task TO {role}")));
    stranger.give(&missing).await;
    assert_eq!(stranger.missing().await, [""; 0]);
    stranger.owner.batch_execute(&format!("SELECT {schema}.onward_submit('mail')")).await.unwrap();
    work(&stranger.store().await).await;
}

/// Shows: B11
#[tokio::test]
async fn a_role_that_may_not_create_a_schema_gets_the_statements_that_do() {
    let Some(stranger) = Stranger::new().await else { return };
    let Stranger { schema, role, .. } = &stranger;
    let made = format!("CREATE SCHEMA {schema} AUTHORIZATION {role}");
    assert_eq!(stranger.missing().await, std::slice::from_ref(&made));
    assert!(options().schema(schema).open(&stranger.url).await.is_err());
    stranger.give(&[made]).await;
    assert_eq!(stranger.missing().await, [""; 0]);
    session(&stranger.store().await).await;
    assert_eq!(stranger.missing().await, [""; 0]);
}

/// A shop may keep tables of its own in the same schema.
#[tokio::test]
async fn foreign_tables_in_the_schema_are_left_alone() {
    let Some(stranger) = Stranger::new().await else { return };
    let schema = &stranger.schema;
    drop(stranger.owned_store().await);
    stranger.owner.batch_execute(&format!("CREATE TABLE {schema}.payment (task bigint)")).await.unwrap();
    assert!(!stranger.missing().await.iter().any(|statement| statement.contains("payment")));
}

/// Shows: B11
#[tokio::test]
async fn a_role_that_may_not_read_the_inbox_gets_the_missing_privilege() {
    let Some(stranger) = Stranger::new().await else { return };
    let Stranger { schema, role, .. } = &stranger;
    drop(stranger.owned_store().await);
    let all = stranger.missing().await;
    stranger.give(&all).await;
    let store = stranger.store().await;
    stranger.owner.batch_execute(&format!("REVOKE ALL ON {schema}.inbox FROM {role}")).await.unwrap();
    let report = store.check().await.unwrap();
    let missing = format!("GRANT SELECT, UPDATE, DELETE ON TABLE {schema}.inbox TO {role}");
    assert_eq!((report.missing_rights, report.inbox_refused), (vec![missing], 0));
}
