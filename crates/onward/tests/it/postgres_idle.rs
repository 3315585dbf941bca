//! The cost of idle engines for their server, as counted by the server.

use std::sync::Arc;
use std::time::Duration;

use onward::store::PostgresStore;
use onward::{Engine, Failure};
use onward_store::tokio_postgres::{Client, NoTls, connect};
use onward_testkit::postgres::Server;

use crate::fixture::{start, stop, submit};

/// The number of engines.
const NODES: usize = 3;

/// The poll interval of each engine. It is a hundredth of the default, so that a test does not take
/// minutes.
const POLL: Duration = Duration::from_millis(50);

/// The lease. An engine with work renews it every third of this time, several times in a poll
/// interval.
const LEASE: Duration = Duration::from_millis(300);

/// The number of polls of each engine during which it is watched. They take longer than several
/// renewals.
const LOOKS: usize = 30;

/// The most times that the engines are watched until they are idle.
const WINDOWS: usize = 10;

/// A server that counts the statements of a role.
struct Counting {
    server: Server,
    client: Client,
}

impl Counting {
    async fn start() -> Option<Self> {
        let server = Server::with_settings(&["shared_preload_libraries=pg_stat_statements"])?;
        let (client, connection) = connect(&server.url(), NoTls).await.unwrap();
        tokio::spawn(connection);
        let made =
            "CREATE EXTENSION pg_stat_statements; CREATE ROLE node LOGIN; GRANT CREATE ON DATABASE postgres TO node";
        client.batch_execute(made).await.unwrap();
        Some(Self { server, client })
    }

    fn url(&self) -> String {
        self.server.url().replace("onward@", "node@")
    }

    /// Returns the statements of the nodes from now on until there are `calls`, with their counts.
    async fn asked(&self, calls: i64) -> Vec<(String, i64)> {
        self.client.batch_execute("SELECT pg_stat_statements_reset()").await.unwrap();
        let text = "SELECT query, calls FROM pg_stat_statements WHERE userid = 'node'::regrole ORDER BY query";
        loop {
            let rows = self.client.query(text, &[]).await.unwrap();
            let asked: Vec<(String, i64)> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
            if asked.iter().map(|(_, calls)| calls).sum::<i64>() >= calls {
                return asked;
            }
        }
    }
}

/// Returns engines that have run a task and have no more work.
async fn idle_engines(counting: &Counting, listen: bool) -> Vec<(Engine, tokio::task::JoinHandle<()>)> {
    let mut engines = Vec::new();
    for _ in 0..NODES {
        let store = PostgresStore::options().listen(listen).poll(POLL).open(&counting.url()).await.unwrap();
        let engine = Engine::builder().store(Arc::new(store)).lease(LEASE).open().await.unwrap();
        engine.handle("mail", |_| async { Ok::<(), Failure>(()) });
        let run = start(&engine);
        let done = submit(&engine, "mail").await;
        engine.wait(done).await.unwrap();
        engines.push((engine, run));
    }
    engines
}

async fn idle_engines_only_look(listen: bool) {
    let Some(counting) = Counting::start().await else { return };
    let engines = idle_engines(&counting, listen).await;
    // Once the engines have sent only one kind of statement for that long, their remaining work and
    // the effects of other engines are over.
    let mut asked = Vec::new();
    for _ in 0..WINDOWS {
        asked = counting.asked(i64::try_from(LOOKS * NODES).unwrap()).await;
        if asked.len() == 1 {
            break;
        }
    }
    assert_eq!(asked.len(), 1, "{asked:#?}");
    for (engine, run) in engines {
        stop(&engine, run).await;
    }
}

/// An idle engine sends one statement at each poll and no heartbeat. With the defaults these are
/// two a minute, because the interval is 30 seconds.
///
/// Shows: W10
#[tokio::test]
async fn an_idle_engine_asks_the_server_for_one_thing_at_each_look_and_writes_nothing() {
    idle_engines_only_look(true).await;
}

/// Without notifications it also sends one statement at each poll, by default every 5 seconds.
#[tokio::test]
async fn an_idle_engine_that_cannot_listen_asks_for_one_thing_too() {
    idle_engines_only_look(false).await;
}
