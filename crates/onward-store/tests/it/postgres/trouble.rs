//! A server that fails within a write, on purpose.

use std::time::Duration;

use onward_store::{
    NewTask, Outcome, PostgresOptions, PostgresStore, Result, Store, StoreReads, Submitted, TaskFilter, Write,
};
use tokio_postgres::{Client, NoTls};

use super::fixture::options;
use super::schemas::new_name;

/// The moment at which the server fails.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Moment {
    /// While the change is written.
    Change,
    /// While it is committed.
    Commit,
}

/// A store, and a connection that makes its server fail.
#[derive(Debug)]
pub(crate) struct Troubled {
    pub(crate) store: PostgresStore,
    pub(crate) url: String,
    options: PostgresOptions,
    client: Client,
}

impl Troubled {
    /// Opens a store of its own on a server. `settings` apply to its connections, as with `postgres
    /// -c`.
    pub(crate) async fn new(url: &str, settings: &[&str]) -> Self {
        let name = new_name();
        let options = options().schema(&name).retry_for(Duration::from_secs(60));
        let client = connect(url).await;
        let url = format!("{}&application_name={name}", with_settings(url, settings));
        let store = options.clone().open(&url).await.expect("a store opens");
        Self { store, url, options, client }
    }

    /// Opens another node of the same store.
    pub(crate) async fn another(&self) -> PostgresStore {
        self.try_another(&self.url).await.expect("a store opens")
    }

    pub(crate) async fn try_another(&self, url: &str) -> Result<PostgresStore> {
        self.options.clone().open(url).await
    }

    /// Opens another node with a retry budget of 100 ms.
    pub(crate) async fn impatient(&self) -> PostgresStore {
        let options = self.options.clone().retry_for(Duration::from_millis(100));
        options.open(&self.url).await.expect("a store opens")
    }

    async fn execute(&self, statements: &str) {
        self.client.batch_execute(statements).await.expect("the server does as it is told");
    }

    /// Makes the server run a statement for each of the next `times` rows of tasks that are
    /// written. `what` is a statement of PL/pgSQL.
    pub(crate) async fn prepare(&self, moment: Moment, times: u32, what: &str) {
        self.prepare_for("task", moment, times, what).await;
    }

    /// Makes the server run a statement for rows of another table.
    pub(crate) async fn prepare_for(&self, table: &str, moment: Moment, times: u32, what: &str) {
        let schema = self.schema();
        let when = match moment {
            Moment::Change => "NOT DEFERRABLE",
            Moment::Commit => "DEFERRABLE INITIALLY DEFERRED",
        };
        // A sequence keeps its value when its transaction is rolled back.
        self.execute(&format!(
            "CREATE SEQUENCE IF NOT EXISTS {schema}.troubles; \
             CREATE FUNCTION {schema}.trouble() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
               IF nextval('{schema}.troubles') <= {times} THEN {what}; END IF; RETURN NULL; END $$; \
             CREATE CONSTRAINT TRIGGER trouble AFTER INSERT ON {schema}.{table} {when} \
               FOR EACH ROW EXECUTE FUNCTION {schema}.trouble()"
        ))
        .await;
    }

    /// Makes the server fail with an error for each of the next `times` rows of tasks that are
    /// written.
    pub(crate) async fn fail(&self, moment: Moment, times: u32, code: &str) {
        self.prepare(moment, times, &format!("RAISE EXCEPTION 'on purpose' USING ERRCODE = '{code}'")).await;
    }

    /// Returns the number of times that the trigger ran.
    pub(crate) async fn troubles(&self) -> i64 {
        let text = format!("SELECT last_value FROM {}.troubles", self.schema());
        self.client.query_one(&text, &[]).await.unwrap().get(0)
    }

    /// Ends the connections of the store, and no others.
    pub(crate) async fn end_connections(&self) {
        let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1";
        self.client.query(end, &[&self.schema()]).await.unwrap();
    }

    /// Returns the number of connections with this name.
    pub(crate) async fn connections(&self, name: &str) -> i64 {
        let count = "SELECT count(*) FROM pg_stat_activity WHERE application_name = $1";
        self.client.query_one(count, &[&name]).await.unwrap().get(0)
    }

    pub(crate) fn schema(&self) -> String {
        self.store.info().location.rsplit_once('#').unwrap().1.to_owned()
    }

    pub(crate) async fn submit(&self) -> Result<Vec<Outcome>> {
        self.store.apply(vec![submit()]).await
    }

    /// Checks that a submit succeeds, and takes effect once.
    pub(crate) async fn assert_submits(&self) {
        let before = self.count().await;
        let outcomes = self.submit().await.unwrap();
        assert!(matches!(outcomes[..], [Outcome::Submitted(Submitted::Inserted { .. })]), "{outcomes:?}");
        assert_eq!(self.count().await, before + 1);
    }

    pub(crate) async fn count(&self) -> u64 {
        self.store.count(TaskFilter::default()).await.unwrap()
    }
}

pub(crate) fn submit() -> Write {
    Write::Submit(Box::new(NewTask::new("mail").unwrap()))
}

/// The time limit of every wait.
const PATIENCE: Duration = Duration::from_secs(60);

/// Waits for a future. Fails with a description of it if it takes too long.
pub(crate) async fn in_time<T>(what: &str, done: impl Future<Output = T>) -> T {
    let outcome = tokio::time::timeout(PATIENCE, done).await;
    outcome.unwrap_or_else(|_| panic!("within {PATIENCE:?} it did not come to this: {what}"))
}

pub(crate) async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.expect("the server can be reached");
    tokio::spawn(connection);
    client
}

/// Returns a URL whose connections have these settings.
pub(crate) fn with_settings(url: &str, settings: &[&str]) -> String {
    let options: Vec<String> = settings.iter().map(|setting| format!("-c%20{setting}")).collect();
    format!("{url}?options={}", options.join("%20"))
}
