//! What engines without work cost their server, counted by the server.

use std::sync::Arc;
use std::time::Duration;

use onward::{Engine, Failure, PostgresStore};
use onward_store::tokio_postgres::{Client, NoTls, connect};
use onward_testkit::postgres::Server;

use crate::fixture::{start, stop, submit};

/// How many engines there are.
const NODES: usize = 3;

/// How often each looks at the least: 100 times as often as it does by default, so that a test need
/// not take minutes.
const POLL: Duration = Duration::from_millis(50);

/// A third of this is how often an engine with work gives a sign of life: several times in a look.
const LEASE: Duration = Duration::from_millis(300);

/// For how many looks of each they are watched: longer than for several signs of life.
const LOOKS: usize = 30;

/// How often they are watched at the most until they are idle.
const WINDOWS: usize = 10;

/// A server that counts what a role asks of it.
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

    /// What the nodes ask from now on until they have asked so much: each statement, and how often.
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

/// Engines that have done something, and have nothing to do any more.
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
    // What they still had to do, and what others did, is behind them when they have asked one thing
    // alone for so long.
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

/// One statement a look, and no heartbeat: two a minute with what is usual, which is one in 30
/// seconds.
///
/// Shows: W10
#[tokio::test]
async fn an_idle_engine_asks_the_server_for_one_thing_at_each_look_and_writes_nothing() {
    idle_engines_only_look(true).await;
}

/// The same where no messages come through: one statement in 5 seconds, as is usual.
#[tokio::test]
async fn an_idle_engine_that_cannot_listen_asks_for_one_thing_too() {
    idle_engines_only_look(false).await;
}
