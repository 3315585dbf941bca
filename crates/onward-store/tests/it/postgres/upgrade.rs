//! Stores of earlier schemas: they open, keep every task, and are as good as new.

use std::time::Duration;

use onward_store::{
    Claim, NewTask, OpenSession, Outcome, PostgresStore, Prune, Scope, Store, Submitted, TaskFilter, TaskId, TaskState,
    UniqueKey, Write,
};
use tokio_postgres::{Client, NoTls};

use super::fixture::options;
use super::schemas::new_name;
use super::server::{open, url};

/// Each released schema's script and a store of it, oldest first. Never changed; a released schema adds one.
const SCHEMA_1: [&str; 2] =
    [include_str!("../../../src/postgres/migrations/0001.sql"), include_str!("../fixtures/postgres_schema_1.sql")];

/// The same store, as a program of schema 4 has it: it has no orchestrations, which alone changed.
const SCHEMA_4: [&str; 5] = [
    include_str!("../../../src/postgres/migrations/0001.sql"),
    include_str!("../../../src/postgres/migrations/0002.sql"),
    include_str!("../../../src/postgres/migrations/0003.sql"),
    include_str!("../../../src/postgres/migrations/0004.sql"),
    include_str!("../fixtures/postgres_schema_1.sql"),
];

/// What schema 8 has beside schema 4.
const SCHEMA_5_TO_8: [&str; 4] = [
    include_str!("../../../src/postgres/migrations/0005.sql"),
    include_str!("../../../src/postgres/migrations/0006.sql"),
    include_str!("../../../src/postgres/migrations/0007.sql"),
    include_str!("../../../src/postgres/migrations/0008.sql"),
];

const SCHEMA_3: [&str; 4] = [
    include_str!("../../../src/postgres/migrations/0001.sql"),
    include_str!("../../../src/postgres/migrations/0002.sql"),
    include_str!("../../../src/postgres/migrations/0003.sql"),
    include_str!("../fixtures/postgres_schema_3.sql"),
];

/// The script that makes a store of schema 3.
pub(crate) fn schema_3(schema: &str) -> String {
    let [one, two, three, store] = SCHEMA_3;
    store.replace("{tables}", &[one, two, three].join("\n")).replace("{schema}", schema)
}

struct Old {
    url: String,
    schema: String,
    client: Client,
}

impl Old {
    async fn schema_1() -> Option<Self> {
        let [tables, store] = SCHEMA_1;
        Self::made(tables, store).await
    }

    async fn made(tables: &str, store: &str) -> Option<Self> {
        let url = url()?;
        let (client, connection) = tokio_postgres::connect(&url, NoTls).await.unwrap();
        tokio::spawn(connection);
        let schema = new_name();
        let script = store.replace("{tables}", tables).replace("{schema}", &schema);
        client.batch_execute(&script).await.unwrap();
        Some(Self { url, schema, client })
    }

    async fn schema_4() -> Option<Self> {
        let [one, two, three, four, store] = SCHEMA_4;
        let store = format!("{store} UPDATE {{schema}}.version SET version = 4;");
        Self::made(&[one, two, three, four].join("\n"), &store).await
    }

    async fn schema_8() -> Option<Self> {
        let [one, two, three, four, store] = SCHEMA_4;
        let store = format!("{store} UPDATE {{schema}}.version SET version = 8;");
        let tables = [&[one, two, three, four][..], &SCHEMA_5_TO_8].concat();
        Self::made(&tables.join("\n"), &store).await
    }

    async fn open(&self) -> PostgresStore {
        open(&self.url, options().schema(&self.schema)).await
    }
}

async fn apply(store: &PostgresStore, write: Write) -> Outcome {
    store.apply(vec![write]).await.unwrap().remove(0)
}

/// Shows: T21
/// Beats: lost-upgrade
#[tokio::test]
async fn a_store_of_schema_1_opens_and_every_task_is_as_it_was() {
    let Some(old) = Old::schema_1().await else { return };
    let store = old.open().await;
    let expected = [
        (1, TaskState::Completed, "first", None, 0),
        (2, TaskState::Dead, "second", Some("ada"), 2),
        (3, TaskState::Waiting, "third", Some("grace"), 0),
        (4, TaskState::Scheduled, "fourth", None, 0),
        (5, TaskState::Running, "fifth", None, 0),
        (6, TaskState::Blocked, "sixth", None, 0),
    ];
    for (id, state, payload, key, errors) in expected {
        let task = store.task(TaskId(id)).await.unwrap().unwrap();
        assert_eq!((task.id.0, task.state, task.key.as_deref(), task.errors.len()), (id, state, key, errors));
        assert_eq!(task.payload.as_deref(), Some(payload.as_bytes()));
    }
    assert_eq!(store.task(TaskId(1)).await.unwrap().unwrap().result.as_deref(), Some(&b"sent"[..]));
    assert_eq!(store.task(TaskId(3)).await.unwrap().unwrap().tags.get("customer"), Some("42"));
    assert_eq!(store.pauses().await.unwrap()[0].scope, Scope::Queue("slow".parse().unwrap()));
    assert_eq!(store.limits().await.unwrap().len(), 1);
}

/// Shows: T21, B4
/// Beats: lost-upgrade
#[tokio::test]
async fn what_was_waiting_or_running_in_a_store_of_schema_1_is_claimed_and_completed() {
    let Some(old) = Old::schema_1().await else { return };
    let store = old.open().await;
    let open = OpenSession::new("new", Duration::from_secs(600));
    let Outcome::SessionOpened(session) = apply(&store, Write::OpenSession(open)).await else { panic!("no session") };
    let mut done = Vec::new();
    for _ in 0..2 {
        let Outcome::Claimed(claimed) = apply(&store, Write::Claim(Claim::any(session, 10))).await else {
            panic!("no claim")
        };
        for task in claimed.tasks {
            assert_eq!(apply(&store, Write::Complete { lease: task.lease, result: None }).await, Outcome::Done);
            done.push(task.lease.task.0);
        }
    }
    assert_eq!(
        done,
        [3, 5, 6],
        "the urgent one, the one whose process is gone, and then the one that waited for the first"
    );
}

/// Shows: T21
/// Beats: lost-upgrade
#[tokio::test]
async fn a_store_of_schema_4_opens_and_counts_from_then_on_how_many_transactions_write() {
    let Some(old) = Old::schema_4().await else { return };
    let store = old.open().await;
    assert_eq!(store.count(TaskFilter::default()).await.unwrap(), 6);
    let count = format!("SELECT last_value FROM {}.last_write", old.schema);
    let before: i64 = old.client.query_one(&count, &[]).await.unwrap().get(0);
    apply(&store, Write::Submit(Box::new(NewTask::new("mail").unwrap()))).await;
    let after: i64 = old.client.query_one(&count, &[]).await.unwrap().get(0);
    assert_eq!(after, before + 1);
}

/// Shows: T21
#[tokio::test]
async fn who_might_submit_in_a_transaction_before_an_upgrade_may_do_so_afterwards_with_what_is_new() {
    let Some(old) = Old::schema_4().await else { return };
    let schema = &old.schema;
    let roles = format!(
        "CREATE ROLE shop_{schema}; CREATE ROLE passer_by_{schema}; GRANT USAGE ON SCHEMA {schema} TO shop_{schema}, passer_by_{schema}; \
         GRANT EXECUTE ON FUNCTION {schema}.onward_submit TO shop_{schema}"
    );
    old.client.batch_execute(&roles).await.unwrap();
    let store = old.open().await;
    let submit_as = async |role: &str| {
        let submit = format!(
            "SET ROLE {role}_{schema}; SELECT {schema}.onward_submit('mail', 'new', key => 'new', heartbeat_timeout => '30 s', retention => '7 days')"
        );
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

/// Every write looks into a table that is new.
///
/// Shows: T22
#[tokio::test]
async fn a_role_that_might_write_before_an_upgrade_may_do_so_afterwards() {
    let Some(old) = Old::schema_8().await else { return };
    let schema = &old.schema;
    let role = format!("worker_{schema}");
    let roles = format!(
        "CREATE ROLE {role} LOGIN; GRANT USAGE ON SCHEMA {schema} TO {role}; \
         GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema} TO {role}; \
         GRANT SELECT, UPDATE ON ALL SEQUENCES IN SCHEMA {schema} TO {role}"
    );
    old.client.batch_execute(&roles).await.unwrap();
    drop(old.open().await);
    let url = old.url.replace("onward@", &format!("{role}@"));
    let store = open(&url, options().schema(schema)).await;
    apply(&store, Write::Submit(Box::new(NewTask::new("mail").unwrap()))).await;
    assert_eq!(options().schema(schema).missing_rights(&url).await.unwrap(), [""; 0]);
}

/// Shows: Q6
#[tokio::test]
async fn what_had_ended_in_a_store_of_schema_1_is_pruned_and_what_says_how_long_it_is_kept_is_not() {
    let Some(old) = Old::schema_1().await else { return };
    let store = old.open().await;
    let ended = TaskFilter {
        states: TaskState::ALL.into_iter().filter(|state| state.is_ended()).collect(),
        ..TaskFilter::default()
    };
    let before = store.count(ended).await.unwrap();
    let kept = NewTask { retention: Some(Duration::from_secs(3600)), ..NewTask::new("mail").unwrap() };
    let Outcome::Submitted(kept) = apply(&store, Write::Submit(Box::new(kept))).await else { panic!("no task") };
    apply(&store, Write::Cancel { task: kept.id() }).await;
    let prune = Prune { older_than: None, keep: Some(0), limit: 10 };
    assert_eq!(apply(&store, Write::Prune(prune)).await, Outcome::Removed { tasks: before, more: false });
    assert!(before > 0);
    assert_eq!(store.task(kept.id()).await.unwrap().unwrap().retention, Some(Duration::from_secs(3600)));
}

#[tokio::test]
async fn keys_and_numbers_of_a_store_of_schema_1_stay_taken() {
    let Some(old) = Old::schema_1().await else { return };
    let store = old.open().await;
    let unique = UniqueKey { key: "grace".into(), on_duplicate: Default::default(), keep_for: Duration::ZERO };
    let again = NewTask { unique: Some(unique), ..NewTask::new("mail").unwrap() };
    let taken = apply(&store, Write::Submit(Box::new(again))).await;
    assert_eq!(taken, Outcome::Submitted(Submitted::Duplicate { id: TaskId(3) }));
    let new = apply(&store, Write::Submit(Box::new(NewTask::new("mail").unwrap()))).await;
    assert_eq!(new, Outcome::Submitted(Submitted::Inserted { id: TaskId(7) }));
}

/// All of them at the same moment, while somebody of before goes on writing.
#[tokio::test]
async fn nodes_that_start_at_once_on_an_old_schema_upgrade_it_once_under_load() {
    let Some(old) = Old::schema_1().await else { return };
    let nodes = [old.open(), old.open(), old.open(), old.open()];
    // What a process of schema 1 does: under the lock of the store, and with no look at the version.
    let (schema, many) = (&old.schema, 200);
    let writes = async {
        for number in 0..many {
            let write = format!(
                "BEGIN; SELECT pg_advisory_xact_lock(hashtextextended('onward {schema}', 0)); \
                 INSERT INTO {schema}.task (id, state, queue, kind, grp, series, place, priority, run_at, cancel_requested, submitted_at, payload, body) \
                 SELECT last_value + 1, 2, 'default', 'load', '', '', {number}, 128, 0, false, 0, '', '{{}}' FROM {schema}.last_task; \
                 SELECT setval('{schema}.last_task', last_value + 1) FROM {schema}.last_task; COMMIT"
            );
            old.client.batch_execute(&write).await.unwrap();
        }
    };
    let (_, stores) = tokio::join!(writes, opened(nodes));
    for store in &stores {
        assert_eq!(store.count(TaskFilter::default()).await.unwrap(), 6 + many);
    }
    let text = format!("SELECT array_agg(version) FROM {schema}.version");
    let versions: Vec<i32> = old.client.query_one(&text, &[]).await.unwrap().get(0);
    assert_eq!(versions, [i32::try_from(stores[0].info().schema).unwrap()]);
}

async fn opened<F: Future<Output = PostgresStore>>(nodes: [F; 4]) -> [PostgresStore; 4] {
    let [one, two, three, four] = nodes;
    tokio::join!(one, two, three, four).into()
}

/// Whatever a newer version keeps where, this one does not touch it.
#[tokio::test]
async fn a_store_of_a_later_schema_is_refused_untouched() {
    let Some(old) = Old::schema_1().await else { return };
    let schema = &old.schema;
    drop(old.open().await);
    let later =
        format!("UPDATE {schema}.version SET version = 1000; DROP TABLE {schema}.item; DROP TABLE {schema}.writer");
    old.client.batch_execute(&later).await.unwrap();
    let error = options().schema(schema).open(&old.url).await.unwrap_err();
    assert!(error.is_version() && error.to_string().contains("1000"), "{error}");
    let text = format!("SELECT count(*) FROM information_schema.tables WHERE table_schema = '{schema}'");
    let tables: i64 = old.client.query_one(&text, &[]).await.unwrap().get(0);
    assert_eq!(tables, 14, "nothing was made anew");
}

/// It may keep things where this one does not know of them.
#[tokio::test]
async fn a_program_that_writes_while_a_newer_one_upgrades_the_store_is_refused_from_then_on() {
    let Some(old) = Old::schema_1().await else { return };
    let (store, schema) = (old.open().await, &old.schema);
    let submit = || store.apply(vec![Write::Submit(Box::new(NewTask::new("mail").unwrap()))]);
    let before = store.count(TaskFilter::default()).await.unwrap();
    let writes = async {
        let mut done = 0;
        loop {
            match submit().await {
                Ok(_) => done += 1,
                Err(error) => return (done, error),
            }
        }
    };
    let upgrade = format!(
        "BEGIN; SELECT pg_advisory_xact_lock(hashtextextended('onward {schema}', 0)); \
         ALTER TABLE {schema}.task ADD COLUMN unheard_of integer; UPDATE {schema}.version SET version = 1000; COMMIT"
    );
    let ((done, error), upgraded) = tokio::join!(writes, old.client.batch_execute(&upgrade));
    upgraded.unwrap();
    assert!(error.is_version() && error.to_string().contains("1000"), "{error}");
    assert_eq!(store.count(TaskFilter::default()).await.unwrap(), before + done, "what was acknowledged is there");
}

/// Shows: B11
#[tokio::test]
async fn a_role_that_does_not_own_the_tables_of_before_is_told_so() {
    let Some(old) = Old::schema_1().await else { return };
    let Old { url, schema, client } = &old;
    let grants = format!(
        "CREATE ROLE clerk_{schema} LOGIN; GRANT USAGE ON SCHEMA {schema} TO clerk_{schema}; \
         GRANT ALL ON ALL TABLES IN SCHEMA {schema} TO clerk_{schema}; GRANT ALL ON ALL SEQUENCES IN SCHEMA {schema} TO clerk_{schema}"
    );
    client.batch_execute(&grants).await.unwrap();
    let as_clerk = url.replace("onward@", &format!("clerk_{schema}@"));
    let missing = options().schema(schema).missing_rights(&as_clerk).await.unwrap();
    assert_eq!(missing, [format!("GRANT onward TO clerk_{schema}")]);
    let error = options().schema(schema).open(&as_clerk).await.unwrap_err();
    assert!(error.to_string().contains("must be owner"), "{error}");
}
