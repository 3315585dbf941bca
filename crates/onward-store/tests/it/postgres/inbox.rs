//! Submits with the function `onward_submit`, from any language or a trigger.

use std::time::Duration;

use onward_store::{
    Dependency, Durability, NewTask, OnDuplicate, Page, PostgresStore, Priority, Store, StoreReads, TaskFilter, TaskId,
    TaskRecord, TaskState, Timestamp, Ttl, TtlFrom, UniqueKey, Write,
};
use onward_testkit::postgres::Server;
use tokio_postgres::{Client, NoTls, Row};

use super::fixture::options;
use super::server::{Way, open, url};

struct Shop {
    url: String,
    schema: String,
    client: Client,
    store: PostgresStore,
}

impl Shop {
    async fn open() -> Option<Self> {
        Some(Self::on(url()?).await)
    }

    async fn on(url: String) -> Self {
        let store = open(&url, options()).await;
        let schema = store.info().location.rsplit_once('#').unwrap().1.to_owned();
        let (client, connection) = tokio_postgres::connect(&url, NoTls).await.unwrap();
        tokio::spawn(connection);
        Self { url, schema, client, store }
    }

    /// Calls the function with these arguments.
    async fn submit(&self, arguments: &str) -> Result<i64, tokio_postgres::Error> {
        let text = format!("SELECT {}.onward_submit({arguments})", self.schema);
        Ok(self.client.query_one(&text, &[]).await?.get(0))
    }

    /// Waits until there are `count` tasks.
    async fn tasks(&self, count: u64) -> Vec<TaskRecord> {
        tasks(&self.store, count).await
    }

    async fn inbox(&self) -> i64 {
        let text = format!("SELECT count(*) FROM {}.inbox", self.schema);
        self.client.query_one(&text, &[]).await.unwrap().get(0)
    }
}

async fn tasks(store: &PostgresStore, count: u64) -> Vec<TaskRecord> {
    let mut changes = store.changes();
    let there = async {
        while store.count(TaskFilter::default()).await.unwrap() < count {
            changes.changed().await.unwrap();
        }
    };
    tokio::time::timeout(Duration::from_secs(20), there).await.expect("they become tasks");
    let filter = TaskFilter { with_payload: true, ..TaskFilter::default() };
    store.tasks(filter, Page { before: None, limit: 1000 }).await.unwrap().tasks
}

/// Removes the number and the times of a record, in which two equal submits differ.
fn without_time(record: TaskRecord) -> TaskRecord {
    let zero = Timestamp::from_microseconds(0);
    // A deadline is an absolute time, not a time after the submission.
    let expires_at = record.expires_at.filter(|at| Some(*at) != record.deadline);
    let expires_at = expires_at.map(|at| Timestamp::from_microseconds((at - record.submitted_at).as_micros() as i64));
    let is_later = record.state == TaskState::Scheduled;
    TaskRecord {
        id: TaskId(0),
        submitted_at: zero,
        run_at: if is_later { record.run_at } else { zero },
        expires_at,
        ..record
    }
}

/// Shows: T1
#[tokio::test]
async fn the_function_submits_what_the_store_submits() {
    let Some(shop) = Shop::open().await else { return };
    let base = || NewTask::new("mail").unwrap();
    let unique =
        |key: &str| UniqueKey { key: key.into(), on_duplicate: OnDuplicate::Skip, keep_for: Duration::from_secs(60) };
    let at = Timestamp::from_microseconds(4_102_444_800_000_000);
    let both: [(&str, NewTask); 8] = [
        ("'mail'", base()),
        ("'mail', 'hello'", NewTask { payload: "hello".into(), ..base() }),
        ("'mail', payload_bytes => '\\x00ff'", NewTask { payload: vec![0, 255].into(), ..base() }),
        (
            "'mail', queue => 'slow', priority => 200, task_group => 'ada', affinity => 'disk'",
            NewTask {
                queue: "slow".parse().unwrap(),
                priority: Priority(200),
                group: Some("ada".parse().unwrap()),
                affinity: Some("disk".parse().unwrap()),
                ..base()
            },
        ),
        (
            "'mail', tags => '{\"customer\": \"42\", \"ä\": \"ö\"}'",
            NewTask { tags: [("customer", "42"), ("ä", "ö")].into_iter().collect(), ..base() },
        ),
        (
            "'mail', run_at => '2100-01-01 00:00:00+00', deadline => '2100-01-01 00:00:00+00', timeout => '1.5 s', heartbeat_timeout => '2 s', retention => '7 days'",
            NewTask {
                when: onward_store::When::At(at),
                deadline: Some(at),
                timeout: Some(Duration::from_millis(1500)),
                heartbeat_timeout: Some(Duration::from_secs(2)),
                retention: Some(Duration::from_secs(7 * 24 * 3600)),
                ..base()
            },
        ),
        (
            "'mail', ttl => '1 hour', key => 'k', keep_key_for => '60 s'",
            NewTask {
                ttl: Some(Ttl { duration: Duration::from_secs(3600), from: TtlFrom::default() }),
                unique: Some(unique("k")),
                ..base()
            },
        ),
        ("'mail', parent => 1, depends_on => '{1}'", {
            let mut new = NewTask { parent: Some(TaskId(1)), ..base() };
            new.depends_on.tasks = vec![Dependency::Task(TaskId(1))];
            new
        }),
    ];
    for (number, (arguments, mut new)) in (0u64..).zip(both) {
        shop.submit(arguments).await.unwrap();
        let by_function = shop.tasks(2 * number + 1).await.remove(0);
        if let Some(unique) = &mut new.unique {
            unique.key = "another".into();
        }
        shop.store.apply(vec![Write::Submit(Box::new(new))]).await.unwrap();
        let by_store = shop.tasks(2 * number + 2).await.remove(0);
        let key = by_function.key.clone();
        assert_eq!(without_time(by_function), TaskRecord { key, ..without_time(by_store) }, "{arguments}");
    }
    assert_eq!(shop.inbox().await, 0);
}

/// Shows: T1, T3
#[tokio::test]
async fn what_is_submitted_with_a_key_that_is_taken_is_treated_as_by_the_store() {
    let Some(shop) = Shop::open().await else { return };
    shop.submit("'mail', 'first', key => 'k'").await.unwrap();
    shop.submit("'mail', 'second', key => 'k'").await.unwrap();
    shop.submit("'mail', 'third', key => 'k', on_duplicate => 'supersede'").await.unwrap();
    let tasks = shop.tasks(2).await;
    let reported: Vec<_> = tasks.iter().map(|task| (task.state, task.payload.clone().unwrap())).collect();
    assert_eq!(reported, [(TaskState::Waiting, "third".into()), (TaskState::Cancelled, "first".into())]);
}

/// Shows: T1
#[tokio::test]
async fn what_is_submitted_in_a_transaction_is_there_when_that_commits_and_never_otherwise() {
    let Some(mut shop) = Shop::open().await else { return };
    let text = format!("SELECT {}.onward_submit('mail')", shop.schema);
    let transaction = shop.client.transaction().await.unwrap();
    transaction.query(&text, &[]).await.unwrap();
    transaction.rollback().await.unwrap();
    let transaction = shop.client.transaction().await.unwrap();
    transaction.query(&text, &[]).await.unwrap();
    assert_eq!(shop.store.count(TaskFilter::default()).await.unwrap(), 0);
    transaction.commit().await.unwrap();
    assert_eq!(shop.tasks(1).await.len(), 1);
}

/// Shows: T1
#[tokio::test]
async fn nodes_that_empty_the_inbox_at_once_submit_each_task_once() {
    let Some(shop) = Shop::open().await else { return };
    let options = PostgresStore::options().schema(&shop.schema).durability(Durability::Normal);
    let _others = [open(&shop.url, options.clone()).await, open(&shop.url, options).await];
    for _ in 0..10 {
        let many =
            format!("SELECT {}.onward_submit('mail', number::text) FROM generate_series(1, 60) number", shop.schema);
        shop.client.query(&many, &[]).await.unwrap();
    }
    assert_eq!(shop.tasks(600).await.len(), 600);
    let left = async || shop.inbox().await;
    assert_eq!((left().await, shop.store.count(TaskFilter::default()).await.unwrap()), (0, 600));
}

#[tokio::test]
async fn tasks_submitted_without_a_worker_are_claimed_by_the_next() {
    let Some(shop) = Shop::open().await else { return };
    let Shop { url, schema, client, store } = shop;
    drop(store);
    client.query(&format!("SELECT {schema}.onward_submit('mail')"), &[]).await.unwrap();
    let store = open(&url, PostgresStore::options().schema(schema)).await;
    assert_eq!(store.count(TaskFilter::default()).await.unwrap(), 1);
}

/// The holder of the lock blocks every write to the store, so it must be short.
#[tokio::test]
async fn one_transaction_under_the_lock_takes_in_what_is_there() {
    let Some(server) = Server::with_settings(&["log_statement=all"]) else { return };
    let shop = Shop::on(server.url()).await;
    let begun = || server.log().matches("BEGIN ISOLATION LEVEL READ COMMITTED").count();
    let before = begun();
    for submitted in 1..=3 {
        shop.submit("'mail'").await.unwrap();
        shop.tasks(submitted).await;
    }
    assert!(begun() <= before + 3, "{} transactions for 3 tasks", begun() - before);
}

#[tokio::test]
async fn a_node_behind_a_pooler_finds_what_was_submitted_by_looking() {
    let Some(shop) = Shop::open().await else { return };
    let Ok(pooler) = Way::Pooler.url() else { return };
    let Shop { schema, client, store, .. } = shop;
    drop(store);
    let options = PostgresStore::options().schema(&schema).poll(Duration::from_millis(50));
    let behind = open(&pooler, options).await;
    client.query(&format!("SELECT {schema}.onward_submit('mail')"), &[]).await.unwrap();
    assert_eq!(tasks(&behind, 1).await.len(), 1);
}

/// The check runs in the submitter's transaction, not later.
#[tokio::test]
async fn what_cannot_be_is_refused_with_the_reason() {
    let Some(shop) = Shop::open().await else { return };
    let wrong = [
        ("''", "kind"),
        ("NULL", "kind"),
        ("repeat('k', 129)", "129 bytes"),
        ("E'two\\nlines'", "U+000A at position 4"),
        ("E'two\\u202elines'", "U+202E at position 4"),
        ("'mail', task_group => E'a\\u200b'", "U+200B at position 2"),
        ("' mail'", "white space"),
        ("'mail', queue => ''", "queue"),
        ("'mail', task_group => ''", "group"),
        ("'mail', affinity => ''", "affinity key"),
        ("'mail', priority => 256", "priority 256"),
        ("'mail', priority => -1", "priority -1"),
        ("'mail', key => ''", "key"),
        ("'mail', key => repeat('k', 513)", "key"),
        ("'mail', key => 'k', on_duplicate => 'explode'", "explode"),
        ("'mail', delay => '1 s', run_at => now()", "delay"),
        ("'mail', delay => '-1 s'", "delay"),
        ("'mail', ttl => '0'", "time to live"),
        ("'mail', timeout => '0'", "timeout"),
        ("'mail', keep_key_for => '-1 s'", "kept"),
        ("'mail', tags => '[1]'", "tags"),
        ("'mail', tags => '{\"a\": 1}'", "is no text"),
        ("'mail', tags => '{\"a=b\": \"1\"}'", "tag key"),
        ("'mail', tags => '{\"\": \"1\"}'", "tag key"),
        ("'mail', tags => jsonb_build_object('a', repeat('v', 257))", "256"),
        ("'mail', tags => (SELECT jsonb_object_agg(n::text, '') FROM generate_series(1, 33) n)", "32 tags"),
        ("'mail', depends_on => (SELECT array_agg(n) FROM generate_series(1::bigint, 1001) n)", "1000"),
        ("'mail', repeat('x', 1048577)", "limit"),
    ];
    for (arguments, part) in wrong {
        let error = shop.submit(arguments).await.unwrap_err();
        let refused = error.as_db_error().unwrap_or_else(|| panic!("{arguments}: {error}"));
        assert!(refused.message().contains(part), "{arguments}: {}", refused.message());
        assert!(refused.hint().is_some(), "{arguments}");
    }
    assert_eq!(shop.inbox().await, 0);
}

#[tokio::test]
async fn what_turns_out_to_be_wrong_later_stays_with_the_reason_and_disturbs_no_other() {
    let Some(shop) = Shop::open().await else { return };
    shop.submit("'mail', parent => 99").await.unwrap();
    shop.submit("'mail'").await.unwrap();
    assert_eq!(shop.tasks(1).await.len(), 1);
    let text = format!("SELECT error FROM {}.inbox", shop.schema);
    let error: String = shop.client.query_one(&text, &[]).await.unwrap().get(0);
    assert!(error.contains("99"), "{error}");
    assert_eq!(shop.store.check().await.unwrap().inbox_refused, 1);
}

/// A value that no column accepts is also rejected alone.
#[tokio::test]
async fn rows_that_the_server_refuses_stay_with_the_reason_and_hold_up_no_other() {
    let Some(shop) = Shop::open().await else { return };
    let schema = &shop.schema;
    let refuse = format!("ALTER TABLE {schema}.task ADD CONSTRAINT no_bad CHECK (kind <> 'bad')");
    shop.client.batch_execute(&refuse).await.unwrap();
    let submit = "SELECT onward_submit(kind) FROM unnest(ARRAY['mail', 'bad', 'mail', 'bad', 'mail']) kind";
    shop.client.query(&submit.replace("onward_submit", &format!("{schema}.onward_submit")), &[]).await.unwrap();
    assert!(shop.tasks(3).await.iter().all(|task| task.kind.as_str() == "mail"));
    let text = format!("SELECT kind, error FROM {schema}.inbox");
    let left = shop.client.query(&text, &[]).await.unwrap();
    let is_named = |row: &Row| row.get::<_, &str>(0) == "bad" && row.get::<_, &str>(1).contains("no_bad");
    assert!(left.len() == 2 && left.iter().all(is_named), "{left:?}");
    assert_eq!(shop.store.check().await.unwrap().inbox_refused, 2);
}

/// Shows: T1
#[tokio::test]
async fn a_role_that_may_do_nothing_else_submits_by_a_trigger() {
    let Some(shop) = Shop::open().await else { return };
    let schema = &shop.schema;
    let role = format!("role_{schema}");
    shop.client
        .batch_execute(&format!(
            "CREATE ROLE {role}; CREATE TABLE shop_{schema} (item text); GRANT INSERT ON shop_{schema} TO {role}; \
             GRANT USAGE ON SCHEMA {schema} TO {role}; GRANT EXECUTE ON FUNCTION {schema}.onward_submit TO {role}; \
             CREATE FUNCTION shop_{schema}_arrived() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
               PERFORM {schema}.onward_submit('mail', row_to_json(NEW)::text); RETURN NULL; END $$; \
             CREATE TRIGGER arrived AFTER INSERT ON shop_{schema} FOR EACH ROW EXECUTE FUNCTION shop_{schema}_arrived(); \
             SET ROLE {role}; INSERT INTO shop_{schema} VALUES ('tea')"
        ))
        .await
        .unwrap();
    let task = shop.tasks(1).await.remove(0);
    assert_eq!(task.payload.as_deref(), Some(&br#"{"item":"tea"}"#[..]));
    let refused = shop.client.batch_execute(&format!("INSERT INTO {schema}.inbox DEFAULT VALUES")).await;
    assert!(refused.is_err(), "the table itself is not theirs");
}
