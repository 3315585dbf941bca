//! Stores of earlier schemas are upgraded in place, and unsupported schemas are rejected.
//!
//! There is one schema so far. The later version is made up: this version with one more script.

use std::sync::Arc;
use std::time::Duration;

use onward_store::{
    ManualClock, Outcome, PostgresOptions, PostgresStore, Store, StoreReads, Submitted, TaskFilter, TaskId, Timestamp,
    Write,
};
use tokio_postgres::Client;

use super::fixture::options;
use super::schemas::new_name;
use super::server::{open, url};
use super::trouble::connect;
use crate::old_store::{LEASE, apply, fill, key, new, submit, tasks, work_off};

/// The changes of the later version. Roles that may write tasks may write to its new table, too.
const LATER: &[&str] = &["ALTER TABLE {schema}.task ADD COLUMN remark text; \
     ALTER TABLE {schema}.history ADD COLUMN remark text; \
     CREATE TABLE {schema}.remarked (task bigint PRIMARY KEY); \
     INSERT INTO {schema}.remarked SELECT id FROM {schema}.task UNION ALL SELECT id FROM {schema}.history; \
     DO $$ DECLARE held record; BEGIN \
       FOR held IN SELECT h.grantee FROM pg_class c CROSS JOIN LATERAL aclexplode(c.relacl) h \
         WHERE c.oid = '{schema}.task'::regclass AND h.privilege_type = 'INSERT' AND h.grantee <> c.relowner \
       LOOP EXECUTE format('GRANT INSERT ON {schema}.remarked TO %s', held.grantee::regrole); END LOOP; END $$"];

/// An upgrade that fails after its first changes.
const MISTAKEN: &[&str] =
    &["ALTER TABLE {schema}.task ADD COLUMN remark text; DELETE FROM {schema}.history; INSERT INTO nowhere VALUES (1)"];

/// An upgrade during which the server process dies after its first changes.
const KILLED: &[&str] = &["ALTER TABLE {schema}.task ADD COLUMN remark text; DELETE FROM {schema}.history; \
     SELECT pg_terminate_backend(pg_backend_pid())"];

/// A store that this version made, in a schema of its own.
struct Old {
    url: String,
    schema: String,
    clock: Arc<ManualClock>,
    client: Client,
}

impl Old {
    async fn new() -> Option<Self> {
        let url = url()?;
        let clock = Arc::new(ManualClock::starting_at(Timestamp::from_microseconds(1_700_000_000_000_000)));
        let client = connect(&url).await;
        let old = Self { url, schema: new_name(), clock, client };
        fill(&old.open().await).await;
        Some(old)
    }

    fn options(&self) -> PostgresOptions {
        options().schema(&self.schema).clock(Arc::clone(&self.clock) as _)
    }

    fn later(&self) -> PostgresOptions {
        self.options().added_migrations(LATER)
    }

    async fn open(&self) -> PostgresStore {
        open(&self.url, self.options()).await
    }

    /// Opens the store with the later version.
    async fn upgrade(&self) -> PostgresStore {
        open(&self.url, self.later()).await
    }

    async fn number(&self, sql: &str) -> i64 {
        self.client.query_one(&sql.replace("{s}", &self.schema), &[]).await.unwrap().get(0)
    }

    /// Returns the number of tasks that the later version's script found.
    async fn remarked(&self) -> i64 {
        self.number("SELECT count(*) FROM {s}.remarked").await
    }

    async fn version(&self) -> i64 {
        self.number("SELECT max(version)::bigint FROM {s}.version").await
    }

    /// Makes a role that may write, and returns the URL with which it connects.
    async fn role(&self, name: &str) -> String {
        let (schema, role) = (&self.schema, format!("{name}_{}", self.schema));
        let grants = format!(
            "CREATE ROLE {role} LOGIN; GRANT USAGE ON SCHEMA {schema} TO {role}; \
             GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema} TO {role}; \
             GRANT SELECT, UPDATE ON ALL SEQUENCES IN SCHEMA {schema} TO {role}"
        );
        self.client.batch_execute(&grants).await.unwrap();
        self.url.replace("onward@", &format!("{role}@"))
    }
}

/// Shows: T21
/// Beats: lost-upgrade
#[tokio::test]
async fn an_upgraded_store_has_every_task_as_it_was() {
    let Some(old) = Old::new().await else { return };
    let before = tasks(&old.open().await).await;
    let store = old.upgrade().await;
    assert_eq!((store.info().schema, old.version().await), (2, 2));
    assert_eq!(tasks(&store).await, before);
    assert_eq!(store.pauses().await.unwrap().len(), 1);
    assert_eq!(old.remarked().await, 6, "the script found every task");
}

/// Shows: T21, B4
/// Beats: lost-upgrade
#[tokio::test]
async fn what_waited_or_ran_before_an_upgrade_is_claimed_and_completed_after_it() {
    let Some(old) = Old::new().await else { return };
    let store = old.upgrade().await;
    old.clock.advance(LEASE * 2);
    apply(&store, Write::Sweep).await;
    assert_eq!(work_off(&store).await, [4, 3, 6]);
}

#[tokio::test]
async fn keys_and_numbers_stay_taken_after_an_upgrade() {
    let Some(old) = Old::new().await else { return };
    let store = old.upgrade().await;
    let mut again = new("again");
    again.unique = Some(key("grace"));
    assert_eq!(submit(&store, again).await, Outcome::Submitted(Submitted::Duplicate { id: TaskId(4) }));
    assert_eq!(submit(&store, new("seventh")).await, Outcome::Submitted(Submitted::Inserted { id: TaskId(7) }));
}

/// Shows: T21
/// Beats: lost-upgrade
#[tokio::test]
async fn an_upgrade_that_fails_or_is_killed_half_way_leaves_the_store_as_it_was() {
    let Some(old) = Old::new().await else { return };
    let before = tasks(&old.open().await).await;
    for script in [MISTAKEN, KILLED] {
        old.options().added_migrations(script).open(&old.url).await.unwrap_err();
        assert_eq!(old.version().await, 1);
        assert_eq!(tasks(&old.open().await).await, before);
    }
    drop(old.upgrade().await);
}

/// All nodes start at the same moment, while a process of the earlier version keeps writing.
///
/// Shows: T21
#[tokio::test]
async fn nodes_that_start_at_once_on_an_old_schema_upgrade_it_once_under_load() {
    let Some(old) = Old::new().await else { return };
    let before = old.open().await;
    let writes = async {
        let mut done = 0;
        loop {
            match before.apply(vec![Write::Submit(Box::new(new("load")))]).await {
                Ok(_) => done += 1,
                Err(error) => return (done, error),
            }
        }
    };
    let ((done, error), stores) = tokio::join!(writes, opened([(); 4].map(|()| old.upgrade())));
    assert!(error.is_version() && error.to_string().contains("schema 2"), "{error}");
    for store in &stores {
        assert_eq!(store.count(TaskFilter::default()).await.unwrap(), 6 + done, "what was acknowledged is there");
    }
    assert_eq!(old.number("SELECT count(*) FROM {s}.version").await, 1);
    assert_eq!(old.version().await, 2);
}

async fn opened<F: Future<Output = PostgresStore>>(nodes: [F; 4]) -> [PostgresStore; 4] {
    let [one, two, three, four] = nodes;
    tokio::join!(one, two, three, four).into()
}

/// This version does not touch a newer store, wherever that keeps its data.
///
/// Shows: T21
#[tokio::test]
async fn a_store_of_a_later_schema_is_refused_untouched() {
    let Some(old) = Old::new().await else { return };
    drop(old.upgrade().await);
    let schema = &old.schema;
    old.client.batch_execute(&format!("DROP TABLE {schema}.small_state; DROP TABLE {schema}.writer")).await.unwrap();
    let tables = format!("SELECT count(*) FROM information_schema.tables WHERE table_schema = '{schema}'");
    let before = old.number(&tables).await;
    let error = old.options().open(&old.url).await.unwrap_err();
    let expected = format!("the schema `{schema}` has schema 2 and this program supports schema 1");
    assert!(error.is_version() && error.to_string().contains(&expected), "{error}");
    assert_eq!(old.number(&tables).await, before, "nothing was made");
}

/// Shows: T21
#[tokio::test]
async fn a_store_of_a_development_version_is_refused_untouched_whatever_its_number() {
    let Some(url) = url() else { return };
    let client = connect(&url).await;
    for number in [1, 10] {
        let schema = new_name();
        let make = format!(
            "CREATE SCHEMA {schema}; CREATE TABLE {schema}.version (version integer NOT NULL); \
             INSERT INTO {schema}.version VALUES ({number}); CREATE TABLE {schema}.task (id bigint PRIMARY KEY)"
        );
        client.batch_execute(&make).await.unwrap();
        let error = options().schema(&schema).open(&url).await.unwrap_err();
        let expected = format!("the schema `{schema}` has schema {number} of a development version of Onward");
        assert!(error.is_version() && error.to_string().contains(&expected), "{error}");
        assert!(error.to_string().contains("start a new store"), "{error}");
        let tables = format!("SELECT count(*) FROM information_schema.tables WHERE table_schema = '{schema}'");
        let tables: i64 = client.query_one(&tables, &[]).await.unwrap().get(0);
        assert_eq!(tables, 2, "nothing was made");
    }
}

/// Shows: T22
#[tokio::test]
async fn a_role_that_might_write_before_an_upgrade_may_do_so_after_it() {
    let Some(old) = Old::new().await else { return };
    let url = old.role("worker").await;
    drop(old.upgrade().await);
    let store = open(&url, old.later()).await;
    submit(&store, new("seventh")).await;
    assert_eq!(old.later().missing_rights(&url).await.unwrap(), [""; 0]);
    let connection = connect(&url).await;
    connection.batch_execute(&format!("INSERT INTO {}.remarked VALUES (7)", old.schema)).await.unwrap();
}

/// Shows: T21
#[tokio::test]
async fn a_role_that_might_submit_in_a_transaction_before_an_upgrade_may_do_so_after_it() {
    let Some(old) = Old::new().await else { return };
    let schema = &old.schema;
    let roles = format!(
        "CREATE ROLE shop_{schema}; CREATE ROLE passer_by_{schema}; GRANT USAGE ON SCHEMA {schema} TO shop_{schema}, passer_by_{schema}; \
         GRANT EXECUTE ON FUNCTION {schema}.onward_submit TO shop_{schema}"
    );
    old.client.batch_execute(&roles).await.unwrap();
    let store = old.upgrade().await;
    let submit_as = async |role: &str| {
        let submit = format!("SET ROLE {role}_{schema}; SELECT {schema}.onward_submit('mail', 'new', key => 'new')");
        let submitted = old.client.batch_execute(&submit).await;
        old.client.batch_execute("RESET ROLE").await.unwrap();
        submitted
    };
    let mut changes = store.changes();
    submit_as("passer_by").await.unwrap_err();
    submit_as("shop").await.unwrap();
    let of_key = TaskFilter { key: Some("new".into()), ..TaskFilter::default() };
    let there = async {
        while store.count(of_key.clone()).await.unwrap() == 0 {
            changes.changed().await.unwrap();
        }
    };
    tokio::time::timeout(Duration::from_secs(20), there).await.expect("it becomes a task");
}

/// Shows: B11
#[tokio::test]
async fn a_role_that_does_not_own_earlier_tables_gets_an_error_that_says_so() {
    let Some(old) = Old::new().await else { return };
    let as_clerk = old.role("clerk").await;
    assert_eq!(old.options().missing_rights(&as_clerk).await.unwrap(), [""; 0]);
    let missing = old.later().missing_rights(&as_clerk).await.unwrap();
    assert_eq!(missing, [format!("GRANT onward TO clerk_{}", old.schema)]);
    let error = old.later().open(&as_clerk).await.unwrap_err();
    assert!(error.to_string().contains("must be owner"), "{error}");
    assert_eq!(old.version().await, 1);
}
