//! The dead rows of tasks that come and go, while another session keeps an old snapshot and
//! afterwards.

use std::time::Duration;

use onward_store::{
    Claim, Clock, NewTask, OpenSession, Outcome, PostgresStore, Prune, SessionId, Store, StoreReads, SystemClock,
    TaskFilter, Write,
};
use onward_testkit::postgres::Server;
use onward_testkit::soak::{self, Tally};
use tokio_postgres::{Client, NoTls};

use super::fixture::options;
use super::server::open;

/// The number of rounds of each part, unless `ONWARD_ROUNDS` sets another.
const ROUNDS: u64 = 30;

/// The number of tasks that come and go in a round.
const TASKS: usize = 100;

/// The number of times that a part measures the tables.
const LOOKS: u64 = 10;

/// The number of ended tasks that are kept.
const KEPT: u64 = 500;

/// The bytes that a task may leave behind while nothing can be vacuumed: the versions of its rows,
/// and its share of the rows that a batch writes.
const BYTES_PER_LIFE: i64 = 4096;

/// The tables that change with every batch.
const TABLES: [&str; 8] = ["task", "history", "unique_key", "log", "small_state", "writer", "statistics", "day"];

/// A store on a server of its own, because transactions of other tests would prevent rows from
/// being vacuumed.
struct Site {
    server: Server,
    schema: String,
    store: PostgresStore,
    session: SessionId,
    client: Client,
}

impl Site {
    async fn open() -> Option<Self> {
        // A part takes less than a minute, which is autovacuum's default interval.
        let server = Server::with_settings(&["autovacuum_naptime=1s"])?;
        let store = open(&server.url(), options()).await;
        let schema = store.info().location.rsplit_once('#').unwrap().1.to_owned();
        let lease = Write::OpenSession(OpenSession::new("worker", Duration::from_secs(600)));
        let Outcome::SessionOpened(session) = store.apply(vec![lease]).await.unwrap()[0] else { panic!("no session") };
        let client = connect(&server.url()).await;
        Some(Self { server, schema, store, session, client })
    }

    /// Submits, runs and ends tasks, prunes them, and renews the session.
    async fn round(&self) -> u64 {
        let submits = (0..TASKS).map(|_| Write::Submit(Box::new(NewTask::new("mail").unwrap()))).collect();
        self.store.apply(submits).await.unwrap();
        let claim = vec![Write::RenewSession { session: self.session }, Write::Claim(Claim::any(self.session, TASKS))];
        let Outcome::Claimed(claimed) = self.store.apply(claim).await.unwrap().remove(1) else { panic!("no claim") };
        let complete = |task: &onward_store::ClaimedTask| Write::Complete { lease: task.lease, result: None };
        let outcomes = self.store.apply(claimed.tasks.iter().map(complete).collect()).await.unwrap();
        let prune = Prune { keep: Some(KEPT), older_than: None, limit: 2 * TASKS };
        self.store.apply(vec![Write::Prune(prune)]).await.unwrap();
        outcomes.iter().filter(|outcome| **outcome == Outcome::Done).count() as u64
    }

    /// Runs rounds and the server's periodic maintenance. Returns the number of ended tasks and the
    /// largest size of the tables: a vacuum that finds a table's last pages empty makes it smaller
    /// for a while.
    async fn part(&self, name: &str, rounds: u64) -> (u64, i64) {
        let (began, mut done, mut most) = (SystemClock.steady(), 0, 0);
        for round in 1..=rounds {
            done += self.round().await;
            if round % rounds.div_ceil(LOOKS) == 0 {
                most = most.max(self.sizes().await.iter().map(|(_, size)| size).sum());
            }
        }
        let took = (SystemClock.steady() - began) / u32::try_from(rounds).unwrap();
        for table in TABLES {
            self.client.batch_execute(&format!("VACUUM {}.{table}", self.schema)).await.unwrap();
        }
        let sizes = self.sizes().await;
        let kib: Vec<String> = sizes.iter().map(|(table, size)| format!("{table} {}", size / 1024)).collect();
        println!(
            "{name}: {done} lives, {took:?} a round of {TASKS}; at most {} KiB, then {}",
            most / 1024,
            kib.join(", ")
        );
        (done, most)
    }

    async fn sizes(&self) -> Vec<(&'static str, i64)> {
        let mut sizes = Vec::new();
        for table in TABLES {
            let text = format!("SELECT pg_total_relation_size('{}.{table}')", self.schema);
            sizes.push((table, self.client.query_one(&text, &[]).await.unwrap().get::<_, i64>(0)));
        }
        sizes
    }
}

async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

/// While the snapshot is kept, the tables grow by what each task leaves behind. Afterwards they do
/// not grow, because that space is reused.
///
/// Shows: B8
#[tokio::test]
async fn what_grew_under_an_old_snapshot_is_used_again_when_that_is_gone() {
    let Some(site) = Site::open().await else { return };
    let rounds = soak::number("ONWARD_ROUNDS").unwrap_or(ROUNDS);
    let (mut ended, before) = site.part("before", rounds).await;
    let mut other = connect(&site.server.url()).await;
    let pinned = other.build_transaction().isolation_level(tokio_postgres::IsolationLevel::RepeatableRead);
    let pinned = pinned.start().await.unwrap();
    pinned.query("SELECT 1 FROM pg_class LIMIT 1", &[]).await.unwrap();
    let (lives, under) = site.part("under an old snapshot", rounds).await;
    pinned.rollback().await.unwrap();
    ended += lives;
    let cleared = site.part("cleared", 1).await.0;
    let (first, after) = site.part("after", rounds).await;
    let (second, later) = site.part("later", rounds).await;
    ended += cleared + first + second;
    let attempted = (4 * rounds + 1) * TASKS as u64;
    let left = site.store.count(TaskFilter::default()).await.unwrap();
    let tally =
        Tally { attempted, acknowledged: ended, lost: attempted - ended, seed: soak::seed(), ..Tally::default() };
    println!("{tally}");
    assert_eq!((ended, left), (attempted, KEPT));
    assert!(under - before < BYTES_PER_LIFE * i64::try_from(lives).unwrap(), "{before} became {under}");
    assert!(after <= under + under / 10 && later <= after + after / 10, "{under}, {after} and {later}");
}
